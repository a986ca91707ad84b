/* SPDX-License-Identifier: MIT */
#ifndef NB_EXEC_H
#define NB_EXEC_H

#include "fail.h"

/*
 * Run argv (separated by NUL, `length` bytes) to its end and capture its output. Returns its
 * waitpid status or a negative code.
 */
int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error);

#endif
