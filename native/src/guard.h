/* SPDX-License-Identifier: MIT */
/* Programs that do not outlive the worker, nor what they have started by then. */
#ifndef NB_GUARD_H
#define NB_GUARD_H

#include <sys/resource.h>
#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "fail.h"

struct nb_cpus;

/* A process that adopts and kills what a program leaves. */
struct nb_guard {
	pid_t pid;    /* 0: none */
	int lifeline; /* once it is closed, or the worker ends, everything is killed */
	int report;   /* readable once the program has ended */
	int leaves;   /* what it left may stay, if it ended by itself */
};

struct nb_ending {
	int status; /* of waitpid */
	struct rusage usage;
};

/* Start a program as nb_program_start does. Returns its pid, or -1 with an errno in *number. */
pid_t nb_guard_start(struct nb_guard *guard, char **arguments, const struct nb_cpus *cpus, int out,
		     int err, int *number);
/* Whether the program has ended, and how; what must not stay is gone then. Waits for nothing. */
int nb_guard_ended(struct nb_guard *guard, struct nb_ending *ending);
/* Kill the program and all that it has started. Waits for nothing. */
void nb_guard_kill(struct nb_guard *guard);
void nb_guard_free(struct nb_guard *guard);

/* Run argv (separated by NUL, `length` bytes) to its end and capture its output. Returns its
 * waitpid status or a negative code. */
int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error);

#endif
