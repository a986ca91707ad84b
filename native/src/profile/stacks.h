/* SPDX-License-Identifier: MIT */
/* Call stacks that were sampled, each once, with how often: within bounded memory. */
#ifndef NB_PROFILE_STACKS_H
#define NB_PROFILE_STACKS_H

#include <stddef.h>
#include <stdint.h>

enum { NB_STACKS_BYTES = 64 * 1024 * 1024 };

struct nb_stack {
	uint64_t samples;
	uint64_t events; /* what the samples stand for: the sum of their periods */
	uint32_t process;
	uint32_t length;
	uint64_t frames[]; /* the leaf first */
};

struct nb_stacks {
	struct nb_stack **table; /* open addressing; NULL: free */
	size_t room;		 /* a power of two */
	size_t count;
	size_t bytes;
	uint64_t samples;
	uint64_t dropped; /* samples that found no room */
};

void nb_stacks_add(struct nb_stacks *stacks, uint32_t process, const uint64_t *frames,
		   size_t length, uint64_t events);
void nb_stacks_free(struct nb_stacks *stacks);

#endif
