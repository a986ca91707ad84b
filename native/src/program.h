/* SPDX-License-Identifier: MIT */
/* Programs: started without a shell, their output captured through pipes that do not block. */
#ifndef NB_PROGRAM_H
#define NB_PROGRAM_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "fail.h"

struct nb_cpus;

enum { NB_ARGUMENTS_MAX = 256 };

struct nb_output {
	int fd; /* -1: at its end */
	char *text;
	size_t used;
	size_t room;
	size_t taken;  /* bytes that nb_output_take has given */
	int keep_last; /* at the limit: drop the older half, not what comes */
	uint64_t lost; /* bytes that were dropped */
};

/* Words separated by NUL as an argv of at most NB_ARGUMENTS_MAX entries, NULL the last. Returns how
 * many there are; 0 where there is none, or one too many. */
size_t nb_program_arguments(char *text, size_t length, char **arguments);
/* Start a program in a session of its own, on these CPUs alone unless there are none. Returns its
 * pid, or -1 with the errno of what failed, exec included, in *number. */
pid_t nb_program_start(char **arguments, const struct nb_cpus *cpus, int out, int err, int *number);
/* Let this process open as many files as it may; programs that it starts have the usual limit,
 * which select(2) needs in some. */
void nb_program_raise_files(void);
/* Close descriptors from one to another, if they are open. Async-signal-safe. */
void nb_program_close(unsigned int first, unsigned int last);
/* Read what has been printed; at its end the descriptor is closed. */
void nb_output_read(struct nb_output *output);
/* What was read since the last call: at most `room` bytes into `text`. Returns how many. */
size_t nb_output_take(struct nb_output *output, char *text, size_t room);

/* Forget the environment, but for a PATH of the system's folders, and overwrite it in memory. For
 * processes with one thread. */
void nb_program_clear_environment(void);

#endif
