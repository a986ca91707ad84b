/* SPDX-License-Identifier: MIT */
/* One IORING_OP_RECV of an io_uring(7) that completes again and again (IORING_RECV_MULTISHOT, Linux
 * 6.0), each time with one of the buffers that the kernel has been given in a ring
 * (IORING_REGISTER_PBUF_RING, Linux 5.19). A buffer goes back once it is written to the sink. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../method.h"
#include "socket_options.h"
#include "uring.h"

enum { DEPTH = NB_RECEIVER_OWN };
enum { ENTERS, WRITES, COMPLETIONS, ARMED, STARVED, OVERFLOWS };
enum { BUFFERS = 0 };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[DEPTH] = { "queue_depth", "buffers, a power of two; left out: 8, of small ones 64 KiB",
		    .flags = NB_USER, .minimum = 1, .maximum = 1024 },
};

static const struct nb_field proofs[] = {
	[ENTERS] = NB_CALLS("io_uring_enter_calls", "io_uring_enter(2) calls", NB_MUST_MOVE),
	[WRITES] = NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
	[COMPLETIONS] = { "completions", "buffers that the kernel filled", .flags = NB_MUST_MOVE },
	[ARMED] = { "requests", "multishot requests that were submitted" },
	[STARVED] = { "starved", "requests that ended because no buffer was free (ENOBUFS)" },
	[OVERFLOWS] = { "overflows",
			"waits at which the kernel kept completions back: their queue was "
			"full" },
};

struct state {
	struct nb_uring ring;
	struct io_uring_buf *free; /* ring of buffers; the tail is where the first's resv is */
	size_t free_size;
	uint32_t buffers;
	uint16_t tail;
	size_t stride; /* from one buffer to the next */
	int armed;
};

/* SEND_ZC came with multishot receive, which has no number of its own. */
static int probe(char *why, size_t room)
{
	return nb_uring_probe(IORING_OP_SEND_ZC, "multishot receive", "6.0", why, room);
}

/* Let the kernel fill a buffer (again). */
static void give(struct nb_flow *flow, struct state *state, uint16_t number)
{
	struct io_uring_buf *buffer = &state->free[state->tail & (state->buffers - 1)];

	buffer->addr = (uint64_t)(uintptr_t)(flow->buffer + number * state->stride);
	buffer->len = (uint32_t)flow->job->chunk;
	buffer->bid = number;
	__atomic_store_n(&state->free[0].resv, ++state->tail, __ATOMIC_RELEASE);
}

static int register_buffers(struct nb_flow *flow, struct state *state, struct nb_error *error)
{
	struct io_uring_buf_reg ring = { .ring_entries = state->buffers, .bgid = BUFFERS };
	void *room;

	state->free_size =
		(state->buffers * sizeof(*state->free) + flow->page - 1) / flow->page * flow->page;
	room = mmap(NULL, state->free_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (room == MAP_FAILED)
		return nb_fail_errno(error, "prepare run", "use a smaller queue_depth",
				     "a ring of %u buffers", state->buffers);
	state->free = room;
	ring.ring_addr = (uint64_t)(uintptr_t)room;
	if (nb_uring_register(&state->ring, IORING_REGISTER_PBUF_RING, &ring, 1))
		return nb_fail_errno(error, "prepare run",
				     "use a power of two as queue_depth, a smaller one, or raise "
				     "`ulimit -l`",
				     "registering a ring of %u buffers", state->buffers);
	for (uint32_t i = 0; i < state->buffers; i++)
		give(flow, state, (uint16_t)i);
	return 0;
}

static int open_ring(struct nb_flow *flow, struct nb_error *error)
{
	struct state *state = nb_flow_state(flow, sizeof(*state), error);
	int status;

	if (!state)
		return -NB_ERR_MEMORY;
	state->buffers = nb_uring_depth(flow->job->extra[DEPTH], flow->job->chunk);
	state->stride = ((size_t)flow->job->chunk + flow->page - 1) / flow->page * flow->page;
	status = nb_flow_buffer(flow, state->buffers * state->stride, error);
	/* Each buffer's completion has room, and that of the request's end. */
	if (!status)
		status = nb_uring_open(&state->ring, 2, 2 * state->buffers, flow->shares, error);
	return status ? status : register_buffers(flow, state, error);
}

static void arm(struct nb_flow *flow, struct state *state)
{
	struct io_uring_sqe *entry = nb_uring_prepare(&state->ring);

	memset(entry, 0, sizeof(*entry));
	entry->opcode = IORING_OP_RECV;
	entry->fd = flow->socket;
	entry->ioprio = IORING_RECV_MULTISHOT;
	entry->flags = IOSQE_BUFFER_SELECT;
	entry->buf_group = BUFFERS;
	state->ring.unsent++;
	state->armed = 1;
	nb_count(flow, ARMED, 1);
}

static int submit(struct nb_flow *flow, struct state *state, uint32_t wanted)
{
	int status = nb_uring_submit(&state->ring, wanted, 0);

	nb_set_count(flow, ENTERS, state->ring.calls);
	nb_set_count(flow, OVERFLOWS, state->ring.overflows);
	return status ? nb_uring_fail(flow) : 0;
}

static int begin(struct nb_flow *flow)
{
	struct state *state = flow->state;

	if (nb_uring_begin(flow, &state->ring))
		return -1;
	flow->ready = state->ring.fd;
	arm(flow, state);
	return submit(flow, state, 0);
}

/* What a completion says: bytes, 0 at the end of the stream, or a negative errno. */
static ssize_t take(struct nb_flow *flow, struct state *state)
{
	struct nb_completion completion = nb_uring_take(&state->ring);
	uint16_t number = (uint16_t)(completion.flags >> IORING_CQE_BUFFER_SHIFT);
	int status = 0;

	if (!(completion.flags & IORING_CQE_F_MORE))
		state->armed = 0;
	if (completion.res <= 0)
		return completion.res;
	nb_count(flow, COMPLETIONS, 1);
	if (flow->sink.fd >= 0)
		status = nb_flow_write_sink(flow, flow->buffer + number * state->stride,
					    (size_t)completion.res, WRITES);
	give(flow, state, number);
	return status ? -ECANCELED : completion.res;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct state *state = flow->state;
	ssize_t got;

	(void)most; /* as large as the buffers */
	do {
		while (!nb_uring_ready(&state->ring)) {
			if (!state->armed)
				arm(flow, state);
			if (submit(flow, state, !flow->shares))
				return -1;
			if (flow->shares && !nb_uring_ready(&state->ring))
				return NB_NOTHING;
		}
		got = take(flow, state);
		nb_count(flow, STARVED, got == -ENOBUFS);
	} while (got == -ENOBUFS || got == -EINTR);
	if (got > 0 && !state->armed && flow->shares) { /* epoll(7) waits for it */
		arm(flow, state);
		if (submit(flow, state, 0))
			return -1;
	}
	if (got >= 0 || flow->error.code)
		return got;
	errno = (int)-got;
	return nb_flow_fail(flow, "recv", "look at the sender's error", "from the connection");
}

static void close_ring(struct nb_flow *flow)
{
	struct state *state = flow->state;

	if (!state)
		return;
	nb_uring_close(&state->ring);
	if (state->free)
		munmap(state->free, state->free_size);
}

const struct nb_method nb_receive_uring = {
	.name = "uring",
	.about = "io_uring(7): multishot IORING_OP_RECV into provided buffers; write(2) to a file "
		 "sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS | NB_THREAD_EACH,
	.buffers = NB_URING_DEPTH,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.probe = probe,
	.open = open_ring,
	.connected = nb_socket_options_set,
	.begin = begin,
	.step = step,
	.close = close_ring,
};
