/* SPDX-License-Identifier: MIT */
/* How a worker leaves: by itself, or asked by SIGTERM, SIGHUP or SIGINT. */
#ifndef NB_LEAVING_H
#define NB_LEAVING_H

#include <signal.h>

#include "worker.h"

/* The signals that ask a worker to leave. */
struct nb_leaving {
	int fd; /* readable once one has come; -1: they end the process */
	sigset_t mask;
};

/* Take the signals: no operation is left half done by one. */
void nb_leaving_begin(struct nb_leaving *leaving);
/* Whether one of them has come. */
int nb_leaving_asked(const struct nb_leaving *leaving);
/* Tell the controller, undo everything, give up the run. What a flow or a tool does delays this by
 * seconds at most; operations take their own time. */
void nb_leave(struct nb_worker *worker);
/* The signals have their former meaning. */
void nb_leaving_end(const struct nb_leaving *leaving);

#endif
