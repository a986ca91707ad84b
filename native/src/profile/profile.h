/* SPDX-License-Identifier: MIT */
/* What was sampled: each frame and each call stack once, within bounded memory, and its text for
 * the controller. */
#ifndef NB_PROFILE_H
#define NB_PROFILE_H

#include <stdio.h>

#include "../fail.h"

/* The kernel's functions by address, as /proc/kallsyms has them: modules and BPF programs
 * included. */
struct nb_kernel_symbol {
	uint64_t address;
	const char *name; /* behind a blank its module, as [module] */
	char type;	  /* as nm(1) has it */
};

struct nb_kernel_symbols {
	char *text; /* that the names are in */
	struct nb_kernel_symbol *symbols;
	size_t count; /* 0: this account does not see them (kernel.kptr_restrict) */
};

/* Read them; to be freed in either case. 0, or a negative code with the error filled. */
int nb_kernel_symbols_read(struct nb_kernel_symbols *symbols, const char *path,
			   struct nb_error *error);
void nb_kernel_symbols_free(struct nb_kernel_symbols *symbols);
/* The function that an address is in, or NULL. */
const struct nb_kernel_symbol *nb_kernel_symbol(const struct nb_kernel_symbols *symbols,
						uint64_t address);

enum { NB_PROFILE_BYTES = 64 * 1024 * 1024 };

struct nb_process;

struct nb_profile {
	const char *event;
	uint64_t frequency;
	uint64_t begin; /* CLOCK_MONOTONIC */
	uint64_t end;
	uint64_t samples;
	uint64_t lost;	    /* samples that found no room, here or in the kernel */
	uint64_t throttles; /* times that the kernel stopped sampling for being too frequent */
	size_t cpus;
	struct nb_kernel_symbols kernel;
	struct nb_process *processes; /* their names as they were when first sampled */
	size_t processes_count;
	void *frames, *stacks; /* trees of tsearch(3) */
	size_t bytes;	       /* that these take */
	uint32_t frames_count;
	FILE *lines; /* of the frames, in the order of their numbers */
	char *lines_text;
	size_t lines_length;
};

/* Add a sample of a process: where it was in the kernel, and its callers; nowhere where it ran in
 * user space. An address counts as its function's, so that stacks are alike. `period`: events since
 * the sample before. */
void nb_profile_add(struct nb_profile *profile, uint32_t pid, uint64_t period,
		    const uint64_t *chain, size_t length);

/* The text, to be freed, or NULL. Lines of ASCII:
 *   NAME VALUE                          event frequency begin end cpus samples lost ...
 *   f SYMBOL [MODULE]                   a frame; the first one is number 0
 *   p PID NAME                          a process; the first one is number 0
 *   s SAMPLES EVENTS PROCESS FRAME ...  a stack, the outermost frame first */
char *nb_profile_text(struct nb_profile *profile, size_t *length);
void nb_profile_free(struct nb_profile *profile);

/* End what the operation `profile` samples, in whatever state, and forget it. */
void nb_sampler_end(void);

#endif
