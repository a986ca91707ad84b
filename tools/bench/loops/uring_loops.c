/* SPDX-License-Identifier: MIT */
/* The loops of an io_uring(7): chains of linked sends, and one receive that completes again and
 * again. */
#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "loop.h"

enum { DEPTH = 8, BUFFERS = 8 };

/* An io_uring(7) by its system calls. */
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

static void *map(int fd, size_t length, uint64_t what)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		    (off_t)what);
}

/* 0, or -1 with errno. The calling thread alone may submit. */
static int ring_open(struct ring *ring, uint32_t entries, uint32_t completions)
{
	struct io_uring_params given = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_CQSIZE,
		.cq_entries = completions,
	};
	int fd = (int)syscall(SYS_io_uring_setup, entries, &given);
	char *rings =
		fd < 0 ? MAP_FAILED
		       : map(fd, given.cq_off.cqes + given.cq_entries * sizeof(struct io_uring_cqe),
			     IORING_OFF_SQ_RING);

	*ring = (struct ring){ .fd = fd };
	if (rings == MAP_FAILED)
		return -1;
	ring->entries = map(fd, given.sq_entries * sizeof(*ring->entries), IORING_OFF_SQES);
	if (ring->entries == MAP_FAILED)
		return -1;
	ring->submitted = (uint32_t *)(void *)(rings + given.sq_off.tail);
	ring->mask = given.sq_entries - 1;
	ring->taken = (uint32_t *)(void *)(rings + given.cq_off.head);
	ring->completed = (uint32_t *)(void *)(rings + given.cq_off.tail);
	ring->completions_mask = given.cq_entries - 1;
	ring->completions = (struct io_uring_cqe *)(void *)(rings + given.cq_off.cqes);
	for (uint32_t i = 0; i < given.sq_entries; i++)
		((uint32_t *)(void *)(rings + given.sq_off.array))[i] = i;
	return 0;
}

/* Submit so many, and wait until at least `wanted` completions are there. 0, or -1. */
static int ring_enter(struct ring *ring, uint32_t count, uint32_t wanted)
{
	__atomic_store_n(ring->submitted, ring->tail, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring->fd, count, wanted, IORING_ENTER_GETEVENTS, NULL,
		       0) == (long)count
		       ? 0
		       : -1;
}

static int ring_register(const struct ring *ring, unsigned int operation, const void *argument,
			 unsigned int count)
{
	return (int)syscall(SYS_io_uring_register, ring->fd, operation, argument, count);
}

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

/* What a chain of sends consists of. */
struct chain {
	struct ring ring;
	int socket;
	const char *memory;
	size_t length; /* of each */
};

/* All completions that are there: 0, or -1 if a send was cut short. *flying: sends without one. */
static int take_sent(struct chain *chain, uint32_t *flying)
{
	struct ring *ring = &chain->ring;

	for (uint32_t there = ring_ready(ring); there; there--) {
		const struct io_uring_cqe *done = ring_take(ring);

		if (done->res != (int)chain->length)
			return -1;
		--*flying;
	}
	ring_taken(ring);
	return 0;
}

static void put_sends(struct chain *chain, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		*ring_next(&chain->ring) = (struct io_uring_sqe){
			.opcode = IORING_OP_SEND,
			.flags = i + 1 < count ? IOSQE_IO_LINK : 0,
			.fd = chain->socket,
			.addr = (uint64_t)(uintptr_t)chain->memory,
			.len = (uint32_t)chain->length,
			.msg_flags = MSG_WAITALL | MSG_NOSIGNAL,
		};
}

/* One chain, until each of its sends has completed. */
static int send_chain(struct chain *chain, uint32_t count, uint64_t *again)
{
	uint32_t flying = count;

	put_sends(chain, count);
	if (ring_enter(&chain->ring, count, count) || take_sent(chain, &flying))
		return -1;
	while (flying) {
		++*again;
		if (ring_enter(&chain->ring, 0, flying) || take_sent(chain, &flying))
			return -1;
	}
	return 0;
}

int send_uring(struct work *work)
{
	struct chain chain = { .socket = work->socket,
			       .memory = chunks_of_memory(work, 1),
			       .length = work->chunk };
	size_t chunk = work->chunk, total = work->bytes / chunk;
	uint64_t again = 0;

	if (!chain.memory || ring_open(&chain.ring, DEPTH, 8 * DEPTH))
		return -1;
	for (size_t sent = 0; sent < total;) {
		uint32_t count = (uint32_t)next_length(total, sent, DEPTH);

		if (send_chain(&chain, count, &again))
			return -1;
		sent += count;
	}
	return count(work, total, total * chunk, again);
}

/* The ring of buffers that the kernel fills. */
struct buffers {
	struct io_uring_buf *free;
	char *memory;
	size_t stride;
	uint16_t tail;
	uint32_t length;
};

static void give(struct buffers *buffers, uint16_t number)
{
	struct io_uring_buf *buffer = &buffers->free[buffers->tail & (BUFFERS - 1)];

	buffer->addr = (uint64_t)(uintptr_t)(buffers->memory + number * buffers->stride);
	buffer->len = buffers->length;
	buffer->bid = number;
	__atomic_store_n(&buffers->free[0].resv, ++buffers->tail, __ATOMIC_RELEASE);
}

static int open_buffers(struct buffers *buffers, const struct ring *ring, const struct work *work)
{
	struct io_uring_buf_reg given = { .ring_entries = BUFFERS };

	*buffers = (struct buffers){ .memory = chunks_of_memory(work, BUFFERS),
				     .stride = stride_of(work),
				     .length = (uint32_t)work->chunk };
	buffers->free =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	given.ring_addr = (uint64_t)(uintptr_t)buffers->free;
	if (!buffers->memory || buffers->free == MAP_FAILED ||
	    ring_register(ring, IORING_REGISTER_PBUF_RING, &given, 1))
		return -1;
	for (uint16_t i = 0; i < BUFFERS; i++)
		give(buffers, i);
	return 0;
}

static void put_receive(struct ring *ring, int fd)
{
	*ring_next(ring) = (struct io_uring_sqe){ .opcode = IORING_OP_RECV,
						  .flags = IOSQE_BUFFER_SELECT,
						  .ioprio = IORING_RECV_MULTISHOT,
						  .fd = fd };
}

int receive_uring(struct work *work)
{
	uint64_t chunks = 0, moved = 0, again = 0;
	struct buffers buffers;
	struct ring ring;
	int armed = 0;

	if (ring_open(&ring, 2, 2 * BUFFERS) || open_buffers(&buffers, &ring, work))
		return -1;
	for (;;) {
		if (!armed)
			put_receive(&ring, work->socket);
		if (ring_enter(&ring, !armed, 1))
			return -1;
		armed = 1;
		again++;
		for (uint32_t there = ring_ready(&ring); there; there--) {
			const struct io_uring_cqe *done = ring_take(&ring);

			armed = (done->flags & IORING_CQE_F_MORE) != 0;
			if (done->res == -ENOBUFS)
				continue;
			if (done->res <= 0)
				return done->res < 0 ? -1 : count(work, chunks, moved, again);
			give(&buffers, (uint16_t)(done->flags >> IORING_CQE_BUFFER_SHIFT));
			moved += (uint64_t)done->res;
			chunks++;
		}
		ring_taken(&ring);
	}
}
