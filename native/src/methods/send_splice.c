/* SPDX-License-Identifier: MIT */
/* splice(2) from the source to a pipe, and from the pipe to the connection. */
#include <errno.h>
#include <fcntl.h>

#include "../direct.h"
#include "../method.h"
#include "pipe.h"
#include "socket_options.h"

enum { PIPE_SIZE = NB_SENDER_WAIT + 1, MORE };
enum { IN, OUT, SHORT };
enum { IN_LENGTHS, OUT_LENGTHS };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[NB_SENDER_WAIT] = NB_WAIT_OPTION,
	[PIPE_SIZE] = NB_PIPE_SIZE,
	[MORE] = NB_SPLICE_MORE,
};

static const struct nb_field proofs[] = {
	NB_CALLS("splice_in_calls", "splice(2) calls from the source to the pipe", NB_MUST_MOVE),
	NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the socket", NB_MUST_MOVE),
	NB_CALLS("short_splices", "splice(2) calls that moved less than asked", 0),
	NB_RETURNED("splice_in", "splice(2) calls to the pipe by what they moved"),
	NB_RETURNED("splice_out", "splice(2) calls to the socket by what they moved"),
};

static int open_pipe(struct nb_flow *flow, struct nb_error *error)
{
	/* One page more: a chunk that does not start at a page touches one more. */
	int status = nb_pipe_open(flow, sizeof(struct nb_pipe), flow->job->extra[PIPE_SIZE],
				  (size_t)flow->job->chunk + 4096, error);
	struct nb_pipe *pipe = flow->state;

	if (!status && flow->job->extra[MORE])
		pipe->flags = SPLICE_F_MORE;
	return status;
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
	if (got > 0)
		nb_count_length(flow, IN_LENGTHS, got);
	if ((size_t)got < length)
		nb_count(flow, SHORT, 1);
	nb_source_advance(&flow->source, (size_t)got);
	return nb_pipe_empty(flow, flow->socket, (size_t)got, OUT, SHORT, OUT_LENGTHS);
}

static ssize_t resume(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	(void)from; /* it is in the pipe */
	return nb_pipe_empty(flow, flow->socket, length, OUT, SHORT, OUT_LENGTHS);
}

const struct nb_method nb_send_splice = {
	.name = "splice",
	.about = "splice(2) source to pipe, pipe to socket",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_DESCRIPTORS,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_pipe,
	.connected = nb_socket_options_set_wait,
	.step = step,
	.resume = resume,
	.close = nb_pipe_close,
};
