/* SPDX-License-Identifier: MIT */
/* The host's own log of operations: in its system log, or in a file where it has none. */
#ifndef NB_AUDIT_H
#define NB_AUDIT_H

#include "client.h"
#include "op.h"

/* What was done: to what, what it read before and after, and the error it ended with; each text may
 * be NULL. A log that cannot be written is not waited for. */
struct nb_deed {
	const char *verb;
	const struct nb_op *op;
	const struct nb_target *target;
	const char *before;
	const char *after;
	const struct nb_error *error;
};

/* Write one line; `client` NULL: nobody is to know. */
void nb_audit(const struct nb_client *client, const struct nb_deed *deed);

#endif
