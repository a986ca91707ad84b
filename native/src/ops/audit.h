/* SPDX-License-Identifier: MIT */
/* The host's own log of operations: in its system log, or in a file where it has none. */
#ifndef NB_AUDIT_H
#define NB_AUDIT_H

#include "client.h"
#include "op.h"

/* What was done to what; what it read before and after, and its error, may each be NULL. */
struct nb_deed {
	const char *verb, *before, *after;
	const struct nb_op *op;
	const struct nb_target *target;
	const struct nb_error *error;
};

/* Write one line, without waiting for who reads it; `client` NULL: nobody is to know. */
void nb_audit(const struct nb_client *client, const struct nb_deed *deed);

#endif
