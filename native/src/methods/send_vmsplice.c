/* SPDX-License-Identifier: MIT */
/* vmsplice(2) of the user's pages to a pipe, splice(2) from there to the connection: nothing is
 * copied. The connection has the pages themselves until the other side has acknowledged them, so
 * the user's memory is a ring of chunks, and one is used again only once SIOCOUTQ (tcp(7)) says
 * that it has left. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../direct.h"
#include "../method.h"
#include "../pattern.h"
#include "pipe.h"
#include "socket_options.h"

enum { PIPE_SIZE = NB_SENDER_OWN, DEPTH };
enum { IN, OUT, SHORT, LOOKS, POLLS };
enum { DEPTH_DEFAULT = 16, DEPTH_LEAST = 2, WAIT_NS = 50000 };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[PIPE_SIZE] = NB_PIPE_SIZE,
	[DEPTH] = { "queue_depth", "chunks of memory that are sent in turn; left out: 16",
		    .flags = NB_USER, .minimum = 1, .maximum = 1024 },
};

static const struct nb_field proofs[] = {
	[IN] = NB_CALLS("vmsplice_calls", "vmsplice(2) calls from memory to the pipe",
			NB_MUST_MOVE),
	[OUT] = NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the socket",
			 NB_MUST_MOVE),
	[SHORT] =
		NB_CALLS("short_splices", "splice(2) calls that emptied the pipe only in part", 0),
	[LOOKS] = NB_CALLS("ioctl_calls", "ioctl(2) calls for what has not left (SIOCOUTQ)", 0),
	[POLLS] = NB_CALLS("poll_calls", "ppoll(2) calls that waited for a chunk to leave", 0),
};

struct state {
	struct nb_pipe pipe; /* first: nb_pipe_empty() and others take flow->state for it */
	size_t stride;	     /* from one chunk of the ring to the next */
	size_t slots;	     /* in the ring */
	size_t slot;	     /* to send next */
	uint64_t sent;	     /* bytes that the connection has been given */
	uint64_t left;	     /* bytes of them that have left, when it was last asked */
	uint64_t *ends;	     /* of each slot: `sent` after it was sent last */
};

/* A ring of chunks, all of the same content. */
static int open_ring(struct nb_flow *flow, struct nb_error *error)
{
	struct state *state = flow->state;
	const struct nb_job *job = flow->job;
	size_t page = flow->page;
	int status;

	state->stride = ((size_t)(job->align + job->chunk) + page - 1) / page * page;
	state->slots = (size_t)job->extra[DEPTH];
	if (!state->slots)
		state->slots = state->stride * DEPTH_DEFAULT <= NB_SMALL_BUFFERS ? DEPTH_DEFAULT
										 : DEPTH_LEAST;
	state->ends = calloc(state->slots, sizeof(*state->ends));
	if (!state->ends)
		return nb_fail_memory(error, "chunks");
	status = nb_flow_buffer(flow, state->slots * state->stride, error);
	for (size_t i = 0; !status && job->source != NB_SOURCE_ZERO && i < state->slots; i++)
		nb_pattern((unsigned char *)flow->allocated + i * state->stride, state->stride, 0);
	return status;
}

static int open_memory(struct nb_flow *flow, struct nb_error *error)
{
	/* One page more: a chunk that does not start at a page touches one more. */
	int status = nb_pipe_open(flow, sizeof(struct state), flow->job->extra[PIPE_SIZE],
				  (size_t)flow->job->chunk + flow->page, error);

	return status ? status : open_ring(flow, error);
}

/* Wait until the chunk that is to be used again has left. */
static __attribute__((noinline)) int await_slot(struct nb_flow *flow, struct state *state)
{
	while (state->left < state->ends[state->slot]) {
		int queued = 0;

		nb_count(flow, LOOKS, 1);
		if (ioctl(flow->socket, SIOCOUTQ, &queued))
			return (int)nb_flow_fail(flow, "SIOCOUTQ",
						 "report it as a defect of netbench",
						 "of the connection");
		state->left = state->sent -
			      ((uint64_t)queued < state->sent ? (uint64_t)queued : state->sent);
		if (state->left >= state->ends[state->slot])
			break;
		nb_count(flow, POLLS, 1);
		if (nb_flow_pause(flow, WAIT_NS, "wait for acknowledgements"))
			return -1;
	}
	return 0;
}

/* Through the pipe, as much at a time as it holds. In the step, of which it is what a chunk costs.
 */
static inline __attribute__((always_inline)) ssize_t pass_on(struct nb_flow *flow,
							     unsigned char *from, size_t length)
{
	const struct state *state = flow->state;
	size_t left = length;

	do {
		size_t room = state->pipe.size - ((uintptr_t)from & (flow->page - 1));
		struct iovec part = { .iov_base = from, .iov_len = left < room ? left : room };
		ssize_t moved = nb_vmsplice(state->pipe.in, &part, 1, 0), sent;

		nb_count(flow, IN, 1);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return nb_flow_fail(flow, "vmsplice",
					    "allow it, where a container forbids it (seccomp)",
					    "from memory to the pipe");
		sent = nb_pipe_empty(flow, flow->socket, (size_t)moved, OUT, SHORT);
		if (sent < 0)
			return sent;
		from += moved;
		left -= (size_t)moved;
	} while (left);
	return (ssize_t)length;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct state *state = flow->state;
	int status = state->left < state->ends[state->slot] ? await_slot(flow, state) : 0;
	ssize_t sent;

	if (status)
		return status;
	sent = pass_on(flow, flow->buffer + state->slot * state->stride, most);
	if (sent < 0)
		return sent;
	state->sent += most;
	state->ends[state->slot] = state->sent;
	state->slot = state->slot + 1 == state->slots ? 0 : state->slot + 1;
	return sent;
}

static void close_memory(struct nb_flow *flow)
{
	struct state *state = flow->state;

	if (state)
		free(state->ends);
	nb_pipe_close(flow);
}

const struct nb_method nb_send_vmsplice = {
	.name = "vmsplice",
	.about = "vmsplice(2) memory to a pipe; splice(2) to the socket",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_BUFFERS | NB_ALONE,
	.buffers = DEPTH_LEAST,
	.small_buffers = DEPTH_DEFAULT,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_memory,
	.connected = nb_socket_options_share,
	.step = step,
	.close = close_memory,
};
