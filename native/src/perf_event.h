/* SPDX-License-Identifier: MIT */
/* perf_event_open(2), which the C library does not wrap. */
#ifndef NB_PERF_EVENT_H
#define NB_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/types.h>

/* The size of `attr` is filled in. `pid` -1: every process on `cpu`; `group` -1: a group of its
 * own. A descriptor (close-on-exec), or -1 with errno. */
int nb_perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group);
/* Why nb_perf_open() failed with that errno, in words: what the host lacks, or that root is needed.
 */
void nb_perf_explain(int number, char *why, size_t room);

#endif
