/* SPDX-License-Identifier: MIT */
/* Programs that prepare and start the boot of a kernel, and those that look at what is there for
 * it: as root, so whoever may boot a host may do anything there. */
#include <string.h>
#include <sys/wait.h>

#include "../exec.h"
#include "op.h"

static const uint64_t LIMIT_NS = 900000000000; /* an initrd is made in minutes */

/* The exit status in the first line, as sh(1) counts it, and the output behind it. */
static int get_boot(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	static const char digits[] = "0123456789";
	enum { HEAD = 4 };
	int status = nb_exec(target->words, target->length, LIMIT_NS, text->data + HEAD,
			     text->room - HEAD, error),
	    code;

	if (status < 0)
		return status;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	text->data[0] = digits[code / 100 % 10];
	text->data[1] = digits[code / 10 % 10];
	text->data[2] = digits[code % 10];
	text->data[3] = '\n';
	text->used = strlen(text->data);
	return 0;
}

const struct nb_op nb_op_boot = { .name = "boot",
				  .about = "run a program for the boot of a kernel: its exit "
					   "status, and what it prints",
				  .get = get_boot };
