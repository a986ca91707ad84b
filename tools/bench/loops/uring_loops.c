/* SPDX-License-Identifier: MIT */
/* The loops of an io_uring(7): chains of linked sends, and one receive that completes again and
 * again. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "loop.h"
#include "ring.h"

enum { DEPTH = 8, BUFFERS = 8 };

/* What a chain of sends consists of. */
struct chain {
	struct ring ring;
	uint8_t operation;
	uint16_t how;
	int socket;
	const char *memory;
	size_t length;	 /* of each */
	uint64_t owed;	 /* notifications that have not come */
	uint64_t copied; /* of those that came: the kernel made a copy */
};

/* All completions that are there: 0, or -1 if a send was cut short. *flying: sends without one. */
static int take_sent(struct chain *chain, uint32_t *flying)
{
	struct ring *ring = &chain->ring;

	for (uint32_t there = ring_ready(ring); there; there--) {
		const struct io_uring_cqe *done = ring_take(ring);

		if (done->flags & IORING_CQE_F_NOTIF) {
			chain->owed--;
			chain->copied += ((uint32_t)done->res & IORING_NOTIF_USAGE_ZC_COPIED) != 0;
			continue;
		}
		if (done->res != (int)chain->length)
			return -1;
		chain->owed += (done->flags & IORING_CQE_F_MORE) != 0;
		--*flying;
	}
	ring_taken(ring);
	return 0;
}

static void put_sends(struct chain *chain, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		*ring_next(&chain->ring) = (struct io_uring_sqe){
			.opcode = chain->operation,
			.flags = i + 1 < count ? IOSQE_IO_LINK : 0,
			.ioprio = chain->how,
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

/* Until at most so many notifications are owed. */
static int await_owed(struct chain *chain, uint64_t most, uint64_t *again)
{
	uint32_t flying = 0;

	while (chain->owed > most) {
		++*again;
		if (ring_enter(&chain->ring, 0, 1) || take_sent(chain, &flying))
			return -1;
	}
	return 0;
}

static int send_chains(struct work *work, struct chain *chain)
{
	size_t chunk = work->chunk, total = work->bytes / chunk;
	uint64_t again = 0;

	for (size_t sent = 0; sent < total;) {
		uint32_t count = (uint32_t)next_length(total, sent, DEPTH);

		if (send_chain(chain, count, &again) || await_owed(chain, 4 * DEPTH, &again))
			return -1;
		sent += count;
	}
	return await_owed(chain, 0, &again) ? -1 : count(work, total, total * chunk, again);
}

int send_uring(struct work *work)
{
	struct chain chain = { .operation = IORING_OP_SEND,
			       .socket = work->socket,
			       .memory = chunks_of_memory(work, 1),
			       .length = work->chunk };

	if (!chain.memory || ring_open(&chain.ring, DEPTH, 8 * DEPTH))
		return -1;
	return send_chains(work, &chain);
}

int send_uring_zc(struct work *work)
{
	struct chain chain = { .operation = IORING_OP_SEND_ZC,
			       .how = IORING_RECVSEND_FIXED_BUF | IORING_SEND_ZC_REPORT_USAGE,
			       .socket = work->socket,
			       .memory = chunks_of_memory(work, 1),
			       .length = work->chunk };
	struct iovec buffer = { (void *)(uintptr_t)chain.memory, work->chunk };

	if (!chain.memory || ring_open(&chain.ring, DEPTH, 8 * DEPTH) ||
	    ring_register(&chain.ring, IORING_REGISTER_BUFFERS, &buffer, 1))
		return -1;
	return send_chains(work, &chain);
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
