/* SPDX-License-Identifier: MIT */
/* The samples of one CPU: an event of perf_event_open(2) and its ring of memory. */
#ifndef NB_PROFILE_RING_H
#define NB_PROFILE_RING_H

#include "../fail.h"

enum nb_ring_event { NB_RING_CYCLES, NB_RING_CPU_CLOCK };

struct nb_ring {
	int fd;
	void *memory;
	size_t bytes; /* of the data, behind the first page */
};

/* A sample; `chain` begins with where the CPU was. */
struct nb_sample {
	uint32_t pid;
	uint64_t period; /* events since the sample before */
	size_t length;
	const uint64_t *chain;
};

/* What rings tell of; called by nb_ring_drain. */
struct nb_ring_reader {
	void (*sample)(struct nb_ring_reader *reader, const struct nb_sample *sample);
	uint64_t lost;	    /* samples for which the ring had no room */
	uint64_t throttles; /* times that the kernel stopped sampling for being too frequent */
};

/* Open a CPU's event, which does not count yet: 0, or a negative code with the error filled. */
int nb_ring_open(struct nb_ring *ring, int cpu, enum nb_ring_event event, uint64_t frequency,
		 struct nb_error *error);
int nb_ring_enable(const struct nb_ring *ring, int on);
void nb_ring_drain(struct nb_ring *ring, struct nb_ring_reader *reader);
void nb_ring_close(struct nb_ring *ring);

#endif
