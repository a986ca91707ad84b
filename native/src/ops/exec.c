/* SPDX-License-Identifier: MIT */
/* Programs, without a shell between; also those that prepare and start the boot of a kernel, and
 * look at what is there for it: as root, so whoever may boot a host may do anything there. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "../program.h"
#include "op.h"

static const uint64_t LIMIT_NS = 8000000000;
static const uint64_t BOOT_LIMIT_NS = 900000000000; /* an initrd is made in minutes */

/* As sh(1) counts it. */
static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int get_exec(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	int status =
		nb_exec(target->words, target->length, LIMIT_NS, text->data, text->room, error);

	if (status <= 0)
		return status;
	return nb_fail(error, NB_ERR_SYSTEM, "exec", "try the command by hand on this host",
		       "%s: exit status %d: %.150s", target->words, exit_status(status),
		       text->data);
}

/* The exit status in the first line, and the output behind it. */
static int get_boot(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	char head[] = "000\n";
	size_t length = strlen(head);
	int status = nb_exec(target->words, target->length, BOOT_LIMIT_NS, text->data + length,
			     text->room - length, error);

	if (status < 0)
		return status;
	snprintf(head, sizeof(head), "%03d\n", exit_status(status) & 0xff);
	memcpy(text->data, head, length);
	text->used = strlen(text->data);
	return 0;
}

const struct nb_op nb_op_exec = { .name = "exec", .about = "run a program", .get = get_exec };

const struct nb_op nb_op_boot = {
	.name = "boot",
	.about = "run a program for the boot of a kernel: its exit status, and what it prints",
	.get = get_boot,
};
