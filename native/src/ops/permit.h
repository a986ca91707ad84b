/* SPDX-License-Identifier: MIT */
/* What a process does for its client: nothing that its duty, or its host, does not allow. */
#ifndef NB_PERMIT_H
#define NB_PERMIT_H

#include "client.h"
#include "request.h"

/* A mover has no undo: it takes locks, which end with it, and otherwise only reads. */
int nb_permit_mover(const struct nb_client *client, const struct nb_op_request *request,
		    struct nb_error *error);
/* A helper does what /etc/netbench/allow lists (docs/explanation/safety.md). */
int nb_permit_helper(const struct nb_client *client, const struct nb_op_request *request,
		     struct nb_error *error);

#endif
