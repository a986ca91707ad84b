/* SPDX-License-Identifier: MIT */
/* splice(2) from the connection to a pipe, and from the pipe to the sink (/dev/null for discard).
 */
#include <errno.h>

#include "../direct.h"
#include "../method.h"
#include "pipe.h"
#include "socket_options.h"

enum { PIPE_SIZE = NB_RECEIVER_OWN };
enum { IN, OUT, SHORT };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[PIPE_SIZE] = NB_PIPE_SIZE,
};

static const struct nb_field proofs[] = {
	NB_CALLS("splice_in_calls", "splice(2) calls from the socket to the pipe", NB_MUST_MOVE),
	NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the sink", NB_MUST_MOVE),
	NB_CALLS("short_splices", "splice(2) calls that emptied the pipe only in part", 0),
};

static int open_pipe(struct nb_flow *flow, struct nb_error *error)
{
	return nb_pipe_open_to_sink(flow, flow->job->extra[PIPE_SIZE], flow->job->chunk, error);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct nb_pipe *pipe = flow->state;
	ssize_t got;

	do {
		got = nb_splice(flow->socket, NULL, pipe->in, NULL, most, SPLICE_F_MOVE);
		nb_count(flow, IN, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_receive(flow, "splice");
	if (got == 0)
		return 0;
	return nb_pipe_empty(flow, nb_pipe_sink(flow), (size_t)got, OUT, SHORT);
}

const struct nb_method nb_receive_splice = {
	.name = "splice",
	.about = "splice(2) socket to pipe, pipe to sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_pipe,
	.connected = nb_socket_options_share,
	.step = step,
	.close = nb_pipe_close,
};
