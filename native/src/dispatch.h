/* SPDX-License-Identifier: MIT */
/* What happens to a run between orders: timers, pending connections, flow and tool events. */
#ifndef NB_DISPATCH_H
#define NB_DISPATCH_H

#include <poll.h>

#include "fail.h"
#include "run.h"

enum { NB_RUN_FDS = NB_PENDING_MAX + 8 };

/* Handle what is due or has happened. Returns bits of enum nb_event, or a negative code with the
 * error filled when the run has failed. */
int nb_run_dispatch(struct nb_run *run, uint64_t now, struct nb_error *error);
/* In NB_WARMUP_DRAIN: open the window once every byte of the warm-up has arrived. Returns events.
 */
int nb_dispatch_warmup(struct nb_run *run);
/* When nb_run_dispatch must be called at the latest; UINT64_MAX: at no time. */
uint64_t nb_run_due(const struct nb_run *run);
/* The descriptors to wait for: fills at most NB_RUN_FDS entries, returns how many. */
size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds);

#endif
