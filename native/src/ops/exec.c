/* SPDX-License-Identifier: MIT */
/* Programs, without a shell between. */
#include <sys/wait.h>

#include "../exec.h"
#include "op.h"

static const uint64_t LIMIT_NS = 8000000000;

static int get_exec(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	int status =
		nb_exec(target->words, target->length, LIMIT_NS, text->data, text->room, error);

	if (status < 0)
		return status;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return nb_fail(error, NB_ERR_SYSTEM, "exec", "try the command by hand on this host",
		       "%s: exit status %d: %.150s", target->words,
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		       text->data);
}

const struct nb_op nb_op_exec = { .name = "exec", .about = "run a program", .get = get_exec };
