/* SPDX-License-Identifier: MIT */
/* An io_uring(7) of one flow, by its system calls themselves: the worker is static and needs no
 * liburing. It is made by the serving thread and enabled by the flow's, which alone submits: then
 * the kernel completes requests only while that thread waits (IORING_SETUP_DEFER_TASKRUN). */
#ifndef NB_URING_H
#define NB_URING_H

#include <linux/io_uring.h>
#include <stddef.h>
#include <stdint.h>

#include "../flow.h"

enum { NB_URING_DEPTH = 8 };

struct nb_completion {
	uint64_t user_data;
	int32_t res;
	uint32_t flags; /* IORING_CQE_F_... */
};

struct nb_uring {
	int fd;
	void *rings; /* NULL: not open */
	size_t rings_size;
	struct io_uring_sqe *entries;
	size_t entries_size;
	uint32_t *submitted; /* shared with the kernel: tail of the submissions */
	uint32_t *flags;     /* IORING_SQ_... */
	uint32_t *taken;     /* head of the completions */
	uint32_t *completed; /* tail of the completions */
	uint32_t *lost;	     /* completions that found no room and no memory */
	uint32_t *places;    /* of submissions in `entries` */
	struct io_uring_cqe *completions;
	uint32_t mask;
	uint32_t completions_mask;
	uint32_t prepared;  /* tail of what is prepared */
	uint32_t unsent;    /* prepared and to be submitted */
	uint64_t calls;	    /* io_uring_enter(2) calls */
	uint64_t overflows; /* waits at which the kernel kept completions back for want of room */
};

/* Whether this host has an io_uring with an operation, IORING_OP_..., which is there since that
 * release of Linux: 0, or -1 with the reason. */
int nb_uring_probe(uint8_t operation, const char *name, const char *since, char *why, size_t room);
/* `polled`: epoll(7) waits for its completions, which with IORING_SETUP_DEFER_TASKRUN it does not
 * see (Linux 6.18). 0, or negative with *error filled. */
int nb_uring_open(struct nb_uring *ring, uint32_t entries, uint32_t completions, int polled,
		  struct nb_error *error);
/* Take the ring for the calling thread, a flow's. 0, or negative with flow->error filled. */
int nb_uring_begin(struct nb_flow *flow, struct nb_uring *ring);
void nb_uring_close(struct nb_uring *ring);
/* io_uring_register(2). 0, or -1 with errno. */
int nb_uring_register(struct nb_uring *ring, unsigned int operation, const void *argument,
		      unsigned int count);

/* Submit what is prepared and wait until `wanted` completions are there, or for timeout_ns, 0: for
 * ever. Returns 0, or -1 with errno: ETIME after the timeout, EOVERFLOW when completions are lost.
 */
int nb_uring_submit(struct nb_uring *ring, uint32_t wanted, uint64_t timeout_ns);
/* Fail a step by that. Negative. */
int nb_uring_fail(struct nb_flow *flow);

/* How many requests, or buffers, a queue has at once: what `queue_depth` asks for, or 8; of small
 * chunks as many as are 64 KiB, at most 64: at 1 KiB that saves a tenth of the CPU. */
static inline uint32_t nb_uring_depth(uint64_t asked, uint64_t chunk)
{
	uint32_t depth = NB_URING_DEPTH;

	while (depth < 64 && 2 * depth * chunk <= 65536)
		depth *= 2;
	return asked ? (uint32_t)asked : depth;
}

/* Whether the kernel keeps completions back because their queue was full. */
static inline int nb_uring_keeps_back(const struct nb_uring *ring)
{
	return (__atomic_load_n(ring->flags, __ATOMIC_RELAXED) & IORING_SQ_CQ_OVERFLOW) != 0;
}

/* A request to fill; it holds what it held when its place was used last, at first zeros. It is
 * submitted once ring->unsent counts it. Never more than `entries` between two calls of
 * nb_uring_submit. */
static inline struct io_uring_sqe *nb_uring_prepare(struct nb_uring *ring)
{
	return &ring->entries[ring->prepared++ & ring->mask];
}

/* How many completions are there. */
static inline uint32_t nb_uring_ready(const struct nb_uring *ring)
{
	return __atomic_load_n(ring->completed, __ATOMIC_ACQUIRE) - *ring->taken;
}

/* The next completion, which nb_uring_ready() has said to be there; it is taken. */
static inline struct nb_completion nb_uring_take(struct nb_uring *ring)
{
	uint32_t at = *ring->taken;
	const struct io_uring_cqe *entry = &ring->completions[at & ring->completions_mask];
	struct nb_completion completion = { entry->user_data, entry->res, entry->flags };

	__atomic_store_n(ring->taken, at + 1, __ATOMIC_RELEASE);
	return completion;
}

#endif
