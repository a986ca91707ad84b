/* SPDX-License-Identifier: MIT */
/*
 * Samples of where all CPUs of this kernel are, user and kernel, with call chains: one profile at a
 * time. The process that asks needs root or CAP_PERFMON, and CAP_SYSLOG for the kernel's symbols.
 */
#ifndef NB_PROFILE_SAMPLER_H
#define NB_PROFILE_SAMPLER_H

#include "../fail.h"

enum nb_sampler_state { NB_SAMPLER_IDLE, NB_SAMPLER_READY, NB_SAMPLER_ON };

/* Open events and rings of all CPUs, and read the kernel's symbols; what was sampled before is
 * forgotten. 0, or a negative code with the error filled. */
int nb_sampler_prepare(uint64_t frequency, struct nb_error *error);
int nb_sampler_start(struct nb_error *error);
/* Stop, and make the report: a text of ASCII lines. */
int nb_sampler_stop(struct nb_error *error);
/* Release everything, in whatever state. */
void nb_sampler_end(void);

enum nb_sampler_state nb_sampler_state(void);
uint64_t nb_sampler_frequency(void);
/* The report of the last profile, and its length; "" where there is none. */
const char *nb_sampler_report(size_t *length);

#endif
