/* SPDX-License-Identifier: MIT */
/* An operation that the controller asks for: decoded, and executed. */
#ifndef NB_OP_REQUEST_H
#define NB_OP_REQUEST_H

#include "../wire.h"
#include "client.h"
#include "undo.h"

/* Decode one NB_OP payload, in which the request's texts stay. 0, or a negative code with the error
 * filled. */
int nb_op_decode(struct nb_op_request *request, const unsigned char *payload, size_t length,
		 struct nb_error *error);

/* Execute one NB_OP payload; where it is to be held, *stack grows. Writes what was read before and
 * after. 0, or a negative code with the error filled: also where the client may not ask for it. */
int nb_op_execute(const unsigned char *payload, size_t length, struct nb_client *client,
		  struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error);

#endif
