/* SPDX-License-Identifier: MIT */
/* The pipe that splice(2) needs, shared by the methods that splice. */
#ifndef NB_PIPE_H
#define NB_PIPE_H

#include <errno.h>
#include <fcntl.h>

#include "../flow.h"

struct nb_pipe {
	int in;	     /* written to */
	int out;     /* read from */
	int discard; /* /dev/null, or -1 */
};

/* Make flow->state a pipe that holds at least `size` bytes. */
int nb_pipe_open(struct nb_flow *flow, size_t size, struct nb_error *error);
void nb_pipe_close(struct nb_flow *flow);
/* Splice `length` bytes out of the pipe to fd; counts calls and short ones in two proofs. Returns
 * bytes or <0. */
static inline ssize_t nb_pipe_empty(struct nb_flow *flow, int fd, size_t length, unsigned int calls,
				    unsigned int shorts)
{
	struct nb_pipe *pipe = flow->state;
	size_t done = 0;

	while (done < length) {
		ssize_t moved = nb_splice(pipe->out, NULL, fd, NULL, length - done, SPLICE_F_MOVE);

		nb_count(flow, calls, 1);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && fd != flow->socket)
			return nb_flow_fail_sink(flow, "splice");
		if (moved < 0)
			return nb_flow_fail(flow, "splice", "look at the other side's error",
					    "from the pipe to the connection");
		done += (size_t)moved;
		if (done < length)
			nb_count(flow, shorts, 1);
	}
	return (ssize_t)done;
}

#endif
