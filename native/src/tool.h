/* SPDX-License-Identifier: MIT */
/* An external program that is measured: started, its output read, waited for. */
#ifndef NB_TOOL_H
#define NB_TOOL_H

#include "fail.h"
#include "guard.h"
#include "job.h"
#include "program.h"

enum { /* bytes that are kept: what was printed last */
       NB_TOOL_OUTPUT = 2 * 1024 * 1024,
       NB_TOOL_ERRORS = 16 * 1024
};

struct nb_tool {
	pid_t pid; /* 0: not started */
	struct nb_guard guard;
	int told; /* to end, before it had by itself */
	int exited;
	int status;	     /* of waitpid */
	struct rusage usage; /* once exited */
	struct nb_output output;
	struct nb_output errors;
};

void nb_tool_init(struct nb_tool *tool);
int nb_tool_start(struct nb_tool *tool, const struct nb_job *job, struct nb_error *error);
/* Read what it has printed, and see whether it has exited. */
void nb_tool_poll(struct nb_tool *tool);
/* Whether it has printed what nb_tool_take has not given yet. */
int nb_tool_printed(const struct nb_tool *tool);
/* What it has printed since the last call, output before errors: at most `room` bytes into `text`.
 * Returns how many. */
size_t nb_tool_take(struct nb_tool *tool, char *text, size_t room);
/* Tell it, and what runs in its session, to end. */
void nb_tool_terminate(const struct nb_tool *tool);
/* Kill it and all that it has started. Waits for nothing. */
void nb_tool_kill(struct nb_tool *tool);
/* Wait until it has exited. 0, or -1 when it has not before `deadline`. */
int nb_tool_wait(struct nb_tool *tool, uint64_t deadline);
void nb_tool_free(struct nb_tool *tool);

/* Whether a TCP socket of root's, this account's or nobody's listens on the port in this network
 * namespace, on whatever address. Nothing connects to it: it may serve one connection. */
int nb_port_listens(uint64_t port);

#endif
