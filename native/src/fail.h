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

/* What a method, a meter, an operation or the job declares about itself; the hello is made of it.
 */

/* One option, counter, proof or read-back, as its owner declares it. `offset` and `room` are set
 * for the options of every run only. */
struct nb_field {
	const char *name;
	const char *about;
	const char *words;
	uint32_t flags;
	uint8_t type; /* 0: NB_COUNT */
	uint8_t unit;
	uint8_t per;
	uint64_t minimum;
	uint64_t maximum; /* 0: no bound */
	size_t offset;
	size_t room; /* of text; of a list of numbers, how many */
};

#define NB_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* In an initialiser: a table of fields of that name, and how many it has. */
#define NB_TABLE_OF(field, table) .field = table, .field##_count = NB_LENGTH(table)
#define NB_TABLE(table) NB_TABLE_OF(table, table)

/* A number that could not be read: the controller leaves it out. */
#define NB_MISSING UINT64_MAX

/* Add to a sum that is missing as long as nothing was added. */
static inline void nb_add_number(uint64_t *sum, uint64_t number)
{
	*sum = *sum == NB_MISSING ? number : *sum + number;
}

#endif
