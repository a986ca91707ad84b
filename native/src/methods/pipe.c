/* SPDX-License-Identifier: MIT */
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int nb_pipe_open(struct nb_flow *flow, size_t room, uint64_t asked, size_t size,
		 struct nb_error *error)
{
	struct nb_pipe *pipe = nb_flow_state(flow, room, error);
	int ends[2];

	if (!pipe)
		return -NB_ERR_MEMORY;
	pipe->in = pipe->out = pipe->discard = -1;
	if (pipe2(ends, O_CLOEXEC))
		return nb_fail_errno(error, "prepare run",
				     "raise the limit on open files (ulimit -n)", "pipe");
	pipe->out = ends[0];
	pipe->in = ends[1];
	if (asked)
		size = (size_t)asked;
	if ((asked || (size_t)fcntl(pipe->in, F_GETPIPE_SZ) < size) &&
	    fcntl(pipe->in, F_SETPIPE_SZ, (int)size) < 0)
		return nb_fail_errno(
			error, "prepare run",
			"use a smaller chunk or pipe_size, or raise /proc/sys/fs/pipe-max-size",
			"a pipe of %zu bytes", size);
	pipe->size = (size_t)fcntl(pipe->in, F_GETPIPE_SZ);
	return 0;
}

int nb_pipe_open_to_sink(struct nb_flow *flow, uint64_t asked, size_t size, struct nb_error *error)
{
	struct nb_pipe *pipe;
	int status = nb_pipe_open(flow, sizeof(*pipe), asked, size, error);

	if (status || flow->sink.fd >= 0)
		return status;
	pipe = flow->state;
	pipe->discard = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return pipe->discard >= 0 ? 0
				  : nb_fail_errno(error, "open sink",
						  "create it again (mknod -m 666 /dev/null c 1 3)",
						  "/dev/null");
}

void nb_pipe_close(struct nb_flow *flow)
{
	struct nb_pipe *pipe = flow->state;

	if (!pipe)
		return;
	if (pipe->in >= 0)
		close(pipe->in);
	if (pipe->out >= 0)
		close(pipe->out);
	if (pipe->discard >= 0)
		close(pipe->discard);
}
