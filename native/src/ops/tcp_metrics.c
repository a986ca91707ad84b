/* SPDX-License-Identifier: MIT */
/*
 * What TCP has learnt of addresses in this network namespace, and begins the next connection to
 * them with: round-trip time, reordering, ssthresh; by ip(8), see ip-tcp_metrics(8). sysctl
 * net.ipv4.tcp_no_metrics_save ends the saving alone: what is saved is used all the same.
 */
#include <stdlib.h>
#include <string.h>

#include "../guard.h"
#include "op.h"

static const char OPERATION[] = "tcp_metrics", NONE[] = "none";

/* What `ip tcp_metrics` prints to that, for free(); NULL with the error filled. */
static char *ask(const char *what, struct nb_error *error)
{
	static const uint64_t limit = 8000000000;
	char words[64], *output = malloc(NB_OP_TEXT);
	int length = snprintf(words, sizeof(words), "ip%ctcp_metrics%c%s", 0, 0, what), status;

	if (!output) {
		nb_fail_memory(error, "an answer");
		return NULL;
	}
	status = nb_exec(words, (size_t)length, limit, output, NB_OP_TEXT, error);
	if (!status)
		return output;
	if (status > 0)
		nb_fail(error, NB_ERR_SYSTEM, OPERATION,
			"let root run it, outside of user namespaces", "ip tcp_metrics %s: %.150s",
			what, output);
	free(output);
	return NULL;
}

static int get_tcp_metrics(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	char *output = ask("show", error);
	size_t count = 0;

	(void)target;
	if (!output)
		return -NB_ERR_SYSTEM;
	for (const char *at = output; *at; at++)
		count += *at == '\n';
	free(output);
	if (count)
		fprintf(text, "%zu\n", count);
	else
		fprintf(text, "%s\n", NONE);
	return 0;
}

static int set_tcp_metrics(const struct nb_target *target, const char *value,
			   struct nb_error *error)
{
	char *output;

	if (strcmp(nb_target_word(target, 0), "addresses") != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write addresses",
			       "all addresses are forgotten, or none: '%.40s'",
			       nb_target_word(target, 0));
	if (strcmp(value, NONE) != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write none",
			       "TCP can only be made to forget: '%.40s'", value);
	output = ask("flush", error);
	free(output);
	return output ? 0 : -NB_ERR_SYSTEM;
}

const struct nb_op nb_op_tcp_metrics = {
	.name = "tcp_metrics",
	.about = "of how many addresses TCP knows what to begin a connection with; `none` makes it "
		 "forget them",
	.words = 1,
	.get = get_tcp_metrics,
	.set = set_tcp_metrics,
};
