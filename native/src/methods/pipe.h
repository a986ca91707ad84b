/* SPDX-License-Identifier: MIT */
/* The pipe that splice(2) needs, shared by the methods that splice. */
#ifndef NB_PIPE_H
#define NB_PIPE_H

#include "../flow.h"

struct nb_pipe {
	int in;	     /* written to */
	int out;     /* read from */
	int discard; /* /dev/null, or -1 */
};

/* Make flow->state a pipe that holds at least `size` bytes. */
int nb_pipe_open(struct nb_flow *flow, size_t size, struct nb_error *error);
void nb_pipe_close(struct nb_flow *flow);
/* Splice `length` bytes out of the pipe to fd; counts calls and short ones in two proofs. Returns bytes or <0. */
ssize_t nb_pipe_empty(struct nb_flow *flow, int fd, size_t length, unsigned int calls, unsigned int shorts);

#endif
