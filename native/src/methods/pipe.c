/* SPDX-License-Identifier: MIT */
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int nb_pipe_open(struct nb_flow *flow, size_t size, struct nb_error *error)
{
	struct nb_pipe *pipe = malloc(sizeof(*pipe));
	int ends[2];

	if (!pipe)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "free some memory",
			       "no memory for a pipe");
	pipe->in = pipe->out = pipe->discard = -1;
	flow->state = pipe;
	if (pipe2(ends, O_CLOEXEC))
		return nb_fail_errno(error, "prepare run",
				     "raise the limit on open files (ulimit -n)", "pipe");
	pipe->out = ends[0];
	pipe->in = ends[1];
	if ((size_t)fcntl(pipe->in, F_GETPIPE_SZ) < size &&
	    fcntl(pipe->in, F_SETPIPE_SZ, (int)size) < 0)
		return nb_fail_errno(error, "prepare run",
				     "use a smaller chunk, or raise /proc/sys/fs/pipe-max-size",
				     "a pipe of %zu bytes", size);
	return 0;
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
	free(pipe);
	flow->state = NULL;
}
