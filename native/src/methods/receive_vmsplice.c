/* SPDX-License-Identifier: MIT */
/* read(2) from the connection into one of two buffers, vmsplice(2) of its pages to a pipe,
 * splice(2) from there to the sink. Two buffers, because the kernel may still have the pages of the
 * one before (Torvalds on vmsplice(2): with a buffer of twice the pipe, a part can be filled again
 * once the other one has gone in). */
#include <errno.h>
#include <fcntl.h>

#include "../direct.h"
#include "../method.h"
#include "pipe.h"
#include "socket_options.h"

enum { PIPE_SIZE = NB_RECEIVER_OWN };
enum { BUFFERS = 2 };
enum { READS, IN, OUT, SHORT };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[PIPE_SIZE] = NB_PIPE_SIZE,
};

static const struct nb_field proofs[] = {
	[READS] = NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	[IN] = NB_CALLS("vmsplice_calls", "vmsplice(2) calls from a buffer to the pipe",
			NB_MUST_MOVE),
	[OUT] = NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the sink",
			 NB_MUST_MOVE),
	[SHORT] =
		NB_CALLS("short_splices", "splice(2) calls that emptied the pipe only in part", 0),
};

static size_t half(const struct nb_flow *flow)
{
	return ((size_t)flow->job->chunk + flow->page - 1) / flow->page * flow->page;
}

static int open_buffers(struct nb_flow *flow, struct nb_error *error)
{
	int status =
		nb_pipe_open_to_sink(flow, flow->job->extra[PIPE_SIZE], flow->job->chunk, error);

	return status ? status : nb_flow_buffer(flow, BUFFERS * half(flow), error);
}

/* Through the pipe, as much at a time as it holds. */
static int pass_on(struct nb_flow *flow, unsigned char *from, size_t length)
{
	const struct nb_pipe *pipe = flow->state;

	for (size_t done = 0; done < length;) {
		size_t left = length - done;
		struct iovec part = { .iov_base = from + done,
				      .iov_len = left < pipe->size ? left : pipe->size };
		ssize_t moved = nb_vmsplice(pipe->in, &part, 1, 0);

		nb_count(flow, IN, 1);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return (int)nb_flow_fail(flow, "vmsplice",
						 "allow it, where a container forbids it (seccomp)",
						 "from the buffer to the pipe");
		if (nb_pipe_empty(flow, nb_pipe_sink(flow), (size_t)moved, OUT, SHORT) < 0)
			return -1;
		done += (size_t)moved;
	}
	return 0;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct nb_pipe *pipe = flow->state;
	unsigned char *buffer = flow->buffer + (pipe->turn ? half(flow) : 0);
	ssize_t got;

	do {
		got = nb_read(flow->socket, buffer, most);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_receive(flow, "read");
	if (got > 0 && pass_on(flow, buffer, (size_t)got))
		return -1;
	pipe->turn = !pipe->turn;
	return got;
}

const struct nb_method nb_receive_vmsplice = {
	.name = "vmsplice",
	.about = "read(2) into one of two buffers, vmsplice(2) to a pipe, splice(2) to the sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS,
	.buffers = BUFFERS,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_buffers,
	.connected = nb_socket_options_share,
	.step = step,
	.close = nb_pipe_close,
};
