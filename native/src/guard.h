/* SPDX-License-Identifier: MIT */
/* A program and all that it starts, also what leaves its session: none of it outlives the program,
 * nor the worker, however that ends. */
#ifndef NB_GUARD_H
#define NB_GUARD_H

#include <sys/resource.h>
#include <sys/types.h>

#include <stdint.h>

struct nb_cpus;

struct nb_guard {
	pid_t pid;    /* of a process that adopts and kills what is left; 0: none */
	int lifeline; /* once it is closed, or the worker ends, everything is killed */
	int report;   /* readable once the program has ended */
};

struct nb_ending {
	int status; /* of waitpid */
	struct rusage usage;
};

/* Start a program as nb_program_start does. Returns its pid, or -1 with an errno in *number. */
pid_t nb_guard_start(struct nb_guard *guard, char **arguments, const struct nb_cpus *cpus, int out,
		     int err, int *number);
/* Whether the program has ended, and how; what it left is gone then. Waits for nothing. */
int nb_guard_ended(struct nb_guard *guard, struct nb_ending *ending);
/* Tell the program, and what runs in its session, to end (SIGTERM). */
void nb_guard_terminate(const struct nb_guard *guard);
/* Kill the program and all that it has started. Waits for nothing. */
void nb_guard_kill(struct nb_guard *guard);
void nb_guard_free(struct nb_guard *guard);

#endif
