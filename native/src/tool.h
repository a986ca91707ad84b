/* SPDX-License-Identifier: MIT */
/* An external program run as a cell: started, listened to, waited for. */
#ifndef NB_TOOL_H
#define NB_TOOL_H

#include <sys/resource.h>

#include "job.h"

struct nb_output {
	int fd; /* -1: at its end */
	char *text;
	size_t used;
	size_t room;
	uint64_t lost; /* bytes over the limit */
};

struct nb_tool {
	pid_t pid; /* 0: not started */
	int pidfd; /* readable once it has exited */
	int exited;
	int status;	     /* of waitpid */
	struct rusage usage; /* once exited */
	struct nb_output output;
	struct nb_output errors;
};

void nb_tool_init(struct nb_tool *tool);
int nb_tool_start(struct nb_tool *tool, const struct nb_job *job, struct nb_error *error);
/* Take in what it printed, see whether it has exited. */
void nb_tool_poll(struct nb_tool *tool);
int nb_tool_printed(const struct nb_tool *tool, const char *text);
void nb_tool_kill(struct nb_tool *tool);
void nb_tool_free(struct nb_tool *tool);

/* Run argv (separated by NUL, `length` bytes) to its end and capture its output. Returns its
 * waitpid status or a negative code.
 */
int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error);

#endif
