/* SPDX-License-Identifier: MIT */
/* Programs, without a shell between; also those that prepare and start the boot of a kernel, and
 * look at what is there for it: as root, so whoever may boot a host may do anything there. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../guard.h"
#include "op.h"

static const uint64_t LIMIT_NS = 30000000000;
enum { TAIL = 150 };
static const char SPACE[] = " \t\n\v\f\r";
static const uint64_t BOOT_LIMIT_NS = 900000000000; /* an initrd is made in minutes */

/* As sh(1) counts it. */
static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One end of a line behind it, and no space around: an undo writes what was read, bare. */
static void print_bare(const char *output, FILE *text)
{
	const char *begin = output + strspn(output, SPACE);
	size_t length = strlen(begin);

	while (length && strchr(SPACE, begin[length - 1]))
		length--;
	fprintf(text, "%.*s%s", (int)length, begin, length ? "\n" : "");
}

/* Its last lines, where a failure is told, as a rule; where one does not fit, its end. */
static const char *tail(const char *text)
{
	size_t length = strlen(text);
	const char *from = length > TAIL ? text + length - TAIL : text;
	const char *line = from > text ? strchr(from, '\n') : NULL;

	return line && line[1] ? line + 1 : from;
}

/* A program that fails is an error, unless its exit status is told: in the first line, and the
 * output behind it. */
static int run(const struct nb_target *target, uint64_t limit_ns, int tells, FILE *text,
	       struct nb_error *error)
{
	char *output = malloc(NB_OP_TEXT);
	int status = output ? nb_exec(target->words, target->length, limit_ns, output,
				      NB_OP_TEXT - 4, error)
			    : nb_fail_memory(error, "output");

	if (status >= 0 && tells)
		fprintf(text, "%03d\n", exit_status(status) & 0xff);
	else if (status > 0)
		status = nb_fail(error, NB_ERR_SYSTEM, "exec",
				 "try the command by hand on this host", "%s: exit status %d: %s",
				 target->words, exit_status(status), tail(output));
	if (status >= 0 && tells)
		fprintf(text, "%s", output);
	else if (status >= 0)
		print_bare(output, text);
	free(output);
	return status < 0 ? status : 0;
}

static int get_exec(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	return run(target, LIMIT_NS, 0, text, error);
}

static int get_boot(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	return run(target, BOOT_LIMIT_NS, 1, text, error);
}

const struct nb_op nb_op_exec = { .name = "exec", .about = "run a program", .get = get_exec };

const struct nb_op nb_op_boot = {
	.name = "boot",
	.about = "run a program for the boot of a kernel: its exit status, and what it prints",
	.get = get_boot,
};
