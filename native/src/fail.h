/* SPDX-License-Identifier: MIT */
/* Errors as values: a code, an errno, what was being done, and what to do about it. */
#ifndef NB_FAIL_H
#define NB_FAIL_H

#include "netbench.h"

/* The remedy where one side does not understand the other. */
#define NB_SAME_VERSION "use the same netbench version on both sides"

/* Fill `error` and return -code, so that a caller can `return nb_fail(...)`. `error` may be NULL.
 */
int nb_fail(struct nb_error *error, enum nb_code code, const char *operation, const char *remedy,
	    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same for a failed system call: takes errno, adds its words to the message. */
int nb_fail_errno(struct nb_error *error, const char *operation, const char *remedy,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same where malloc(3) gave nothing for that. */
int nb_fail_memory(struct nb_error *error, const char *what);

#endif
