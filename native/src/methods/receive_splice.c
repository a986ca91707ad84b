/* SPDX-License-Identifier: MIT */
/* splice(2) from the connection to a pipe, and from the pipe to the sink (/dev/null for discard).
 */
#include <errno.h>
#include <fcntl.h>

#include "../direct.h"
#include "../method.h"
#include "pipe.h"

enum { IN, OUT, SHORT };

static const struct nb_field proofs[] = {
	NB_CALLS("splice_in_calls", "splice(2) calls from the socket to the pipe", NB_MUST_MOVE),
	NB_CALLS("splice_out_calls", "splice(2) calls from the pipe to the sink", NB_MUST_MOVE),
	NB_CALLS("short_splices", "splice(2) calls that emptied the pipe only in part", 0),
};

static int open_pipe(struct nb_flow *flow, struct nb_error *error)
{
	struct nb_pipe *pipe;
	int status = nb_pipe_open(flow, flow->job->chunk, error);

	if (status || flow->sink.fd >= 0)
		return status;
	pipe = flow->state;
	pipe->discard = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return pipe->discard >= 0 ? 0
				  : nb_fail_errno(error, "open sink",
						  "create it again (mknod -m 666 /dev/null c 1 3)",
						  "/dev/null");
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
		return nb_flow_fail(flow, "splice", "look at the sender's error",
				    "from the connection to the pipe");
	if (got == 0)
		return 0;
	return nb_pipe_empty(flow, flow->sink.fd >= 0 ? flow->sink.fd : pipe->discard, (size_t)got,
			     OUT, SHORT);
}

const struct nb_method nb_receive_splice = {
	.name = "splice",
	.about = "splice(2) socket to pipe, pipe to sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE,
	.proofs = proofs,
	.proofs_count = NB_LENGTH(proofs),
	.open = open_pipe,
	.step = step,
	.close = nb_pipe_close,
};
