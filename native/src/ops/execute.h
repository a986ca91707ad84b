/* SPDX-License-Identifier: MIT */
#ifndef NB_OP_EXECUTE_H
#define NB_OP_EXECUTE_H

#include "../wire.h"
#include "client.h"
#include "undo.h"

/* Execute one NB_OP payload; where it is to be held, *stack grows. Writes what was read before and
 * after. 0, or a negative code with the error filled: also where the client may not ask for it. */
int nb_op_execute(const unsigned char *payload, size_t length, struct nb_client *client,
		  struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error);

#endif
