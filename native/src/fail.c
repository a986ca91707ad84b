/* SPDX-License-Identifier: MIT */
#include "fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct nb_error *error, int code, int number, const char *operation,
		 const char *remedy)
{
	memset(error, 0, sizeof(*error));
	error->code = (uint32_t)code;
	error->error = (uint32_t)number;
	snprintf(error->operation, sizeof(error->operation), "%s", operation);
	snprintf(error->remedy, sizeof(error->remedy), "%s", remedy);
}

int nb_fail(struct nb_error *error, enum nb_code code, const char *operation, const char *remedy,
	    const char *format, ...)
{
	va_list args;

	if (!error)
		return -(int)code;
	fill(error, code, 0, operation, remedy);
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -(int)code;
}

int nb_fail_errno(struct nb_error *error, const char *operation, const char *remedy,
		  const char *format, ...)
{
	int number = errno;
	const char *words = strerrordesc_np(number) ? strerrordesc_np(number) : "unknown error";
	enum nb_code code = NB_ERR_SYSTEM;
	size_t used, room;
	va_list args;

	if (number == EPIPE || number == ECONNRESET || number == ECONNABORTED ||
	    number == ECONNREFUSED)
		code = NB_ERR_PEER;
	else if (number == ENOMEM)
		code = NB_ERR_MEMORY;
	if (!error)
		return -(int)code;
	fill(error, (int)code, number, operation, remedy);
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	used = strlen(error->message);
	room = sizeof(error->message) - strlen(words) -
	       sizeof(": "); /* a long path is cut, the reason is not */
	if (used > room)
		used = room;
	snprintf(error->message + used, sizeof(error->message) - used, ": %s", words);
	return -(int)code;
}

int nb_fail_memory(struct nb_error *error, const char *what)
{
	return nb_fail(error, NB_ERR_MEMORY, "allocate", "free some memory, or ask for less",
		       "no memory for %s", what);
}
