/* SPDX-License-Identifier: MIT */
/* splice(2) from the source to a pipe, and from the pipe to the connection. */
#include <errno.h>
#include <fcntl.h>

#include "../direct.h"
#include "../method.h"
#include "pipe.h"
#include "socket_options.h"

enum { PIPE_SIZE = NB_SENDER_OWN };
enum { IN, OUT, SHORT };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[PIPE_SIZE] = NB_PIPE_SIZE,
};

static const struct nb_field proofs[] = {
	NB_CALLS("splice_in_calls", "splice(2) calls from the source to the pipe", NB_MUST_MOVE),
	NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the socket", NB_MUST_MOVE),
	NB_CALLS("short_splices", "splice(2) calls that moved less than asked", 0),
};

static int open_pipe(struct nb_flow *flow, struct nb_error *error)
{
	/* One page more: a chunk that does not start at a page touches one more. */
	return nb_pipe_open(flow, sizeof(struct nb_pipe), flow->job->extra[PIPE_SIZE],
			    (size_t)flow->job->chunk + 4096, error);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct nb_pipe *pipe = flow->state;
	size_t length = nb_source_clamp(&flow->source, most);
	off_t offset = (off_t)flow->source.offset;
	ssize_t got;

	do {
		got = nb_splice(nb_source_fd(&flow->source),
				nb_source_wraps(&flow->source) ? &offset : NULL, pipe->in, NULL,
				length, SPLICE_F_MOVE);
		nb_count(flow, IN, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_source(flow, "splice", "use a source that can be spliced");
	if ((size_t)got < length)
		nb_count(flow, SHORT, 1);
	nb_source_advance(&flow->source, (size_t)got);
	return nb_pipe_empty(flow, flow->socket, (size_t)got, OUT, SHORT);
}

static ssize_t resume(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	(void)from; /* it is in the pipe */
	return nb_pipe_empty(flow, flow->socket, length, OUT, SHORT);
}

const struct nb_method nb_send_splice = {
	.name = "splice",
	.about = "splice(2) source to pipe, pipe to socket",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_pipe,
	.connected = nb_socket_options_share,
	.step = step,
	.resume = resume,
	.close = nb_pipe_close,
};
