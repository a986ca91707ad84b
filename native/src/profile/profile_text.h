/* SPDX-License-Identifier: MIT */
/* What was sampled, and its text for the controller. */
#ifndef NB_PROFILE_TEXT_H
#define NB_PROFILE_TEXT_H

#include "kernel_symbols.h"
#include "processes.h"
#include "ring.h"
#include "stacks.h"

struct nb_profile {
	const char *event;
	uint64_t frequency;
	uint64_t begin; /* CLOCK_MONOTONIC */
	uint64_t end;
	uint64_t lost;
	uint64_t throttles;
	size_t cpus;
	struct nb_kernel_symbols kernel;
	struct nb_processes processes;
	struct nb_stacks stacks;
};

/* Add a sample: a kernel's address counts as its function's, so that stacks are alike. */
void nb_profile_add(struct nb_profile *profile, const struct nb_sample *sample);

/*
 * The text, to be freed, or NULL. Lines of ASCII:
 *   NAME VALUE                          event frequency begin end cpus samples lost ...
 *   f k SYMBOL [MODULE]                 a frame; the first one is number 0
 *   f u OFFSET MAPPING                  of a process: the offset in a file, in hex, and its path
 *   p PID NAME                          a process; the first one is number 0
 *   s SAMPLES EVENTS PROCESS FRAME ...  a stack, the outermost frame first
 */
char *nb_profile_text(struct nb_profile *profile, size_t *length);
void nb_profile_free(struct nb_profile *profile);

#endif
