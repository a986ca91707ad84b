/* SPDX-License-Identifier: MIT */
/* An io_uring(7) by its system calls. */
#ifndef RING_H
#define RING_H

#include <linux/io_uring.h>
#include <stdint.h>

struct ring {
	int fd;
	uint32_t tail; /* of the submissions */
	uint32_t *submitted;
	uint32_t mask;
	struct io_uring_sqe *entries;
	uint32_t head; /* of the completions */
	uint32_t *taken;
	uint32_t *completed;
	uint32_t completions_mask;
	struct io_uring_cqe *completions;
};

/* 0, or -1 with errno. The calling thread alone may submit. */
int ring_open(struct ring *ring, uint32_t entries, uint32_t completions);
/* Submit so many, and wait until at least `wanted` completions are there. 0, or -1. */
int ring_enter(struct ring *ring, uint32_t count, uint32_t wanted);
int ring_register(const struct ring *ring, unsigned int operation, const void *argument,
		  unsigned int count);

/* The next request to fill. */
static inline struct io_uring_sqe *ring_next(struct ring *ring)
{
	return &ring->entries[ring->tail++ & ring->mask];
}

static inline uint32_t ring_ready(const struct ring *ring)
{
	return __atomic_load_n(ring->completed, __ATOMIC_ACQUIRE) - ring->head;
}

/* The next completion, which is there; it stays until ring_taken(). */
static inline const struct io_uring_cqe *ring_take(struct ring *ring)
{
	return &ring->completions[ring->head++ & ring->completions_mask];
}

static inline void ring_taken(const struct ring *ring)
{
	__atomic_store_n(ring->taken, ring->head, __ATOMIC_RELEASE);
}

#endif
