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
	size_t size; /* in bytes */
	int turn;    /* of two buffers, which one is filled next */
};

/* The options of the methods with a pipe. */
#define NB_PIPE_SIZE                                                                               \
	{ "pipe_size",	    "size of the pipe (F_SETPIPE_SZ); left out: what a chunk needs",       \
	  .flags = NB_USER, .type = NB_SIZE,                                                       \
	  .minimum = 4096,  .maximum = 1U << 30 }
/* Make flow->state a pipe of `asked` bytes, or, where that is 0, one that holds at least `size`. It
 * is the first part of `room` bytes of zeros that are freed with it. */
int nb_pipe_open(struct nb_flow *flow, size_t room, uint64_t asked, size_t size,
		 struct nb_error *error);
/* The same for a receiver, which empties it to nb_pipe_sink(). */
int nb_pipe_open_to_sink(struct nb_flow *flow, uint64_t asked, size_t size, struct nb_error *error);
void nb_pipe_close(struct nb_flow *flow);

/* Where a receiver's pipe is emptied to: the sink, or /dev/null. */
static inline int nb_pipe_sink(const struct nb_flow *flow)
{
	const struct nb_pipe *pipe = flow->state;

	return flow->sink.fd >= 0 ? flow->sink.fd : pipe->discard;
}

/* Splice `length` bytes out of the pipe to fd; counts calls and short ones in two proofs.
 * Returns bytes or <0. In the step of its method, where it is half of
 * what a chunk costs outside the kernel. */
static inline __attribute__((always_inline)) ssize_t nb_pipe_empty(struct nb_flow *flow, int fd,
								   size_t length,
								   unsigned int calls,
								   unsigned int shorts)
{
	struct nb_pipe *pipe = flow->state;
	size_t done = 0;

	while (done < length) {
		ssize_t moved = nb_splice(pipe->out, NULL, fd, NULL, length - done, SPLICE_F_MOVE);

		nb_count(flow, calls, 1);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && fd == flow->socket && nb_flow_later(flow))
			return nb_flow_leave(flow, NULL, length - done, done);
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
