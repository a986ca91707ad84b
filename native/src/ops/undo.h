/* SPDX-License-Identifier: MIT */
/* The undo stack: what held operations read before they changed it, undone in reverse. */
#ifndef NB_UNDO_H
#define NB_UNDO_H

#include "client.h"

enum { NB_UNDO_ENTRIES = 4096, NB_UNDO_BYTES = 16 << 20 };

struct nb_undo_entry;

/* Scopes nest: nothing is held in a scope while one above it holds something. 0, or a negative
 * code. */
int nb_undo_check_scope(const struct nb_undo_entry *top, uint32_t scope, struct nb_error *error);
/* Push what undoes an operation, as a copy: `value` is what its target reads now. Refused where the
 * stack would have more than NB_UNDO_ENTRIES, or texts of more than NB_UNDO_BYTES. */
int nb_undo_push(struct nb_undo_entry **stack, uint32_t scope, const struct nb_op *op,
		 const struct nb_target *target, const char *value, struct nb_error *error);
/* Note what is held beside the last entry (an operation with `keep`), right before its change is
 * made and right after: when it is undone, what others have changed since is left. */
void nb_undo_note(struct nb_undo_entry *top, int is_after);
/* Pop the last entry without undoing it. */
void nb_undo_release(struct nb_undo_entry **stack);
/*
 * Undo what is held in this scope and those above it, in reverse, and check that it reads as it
 * did. What fails is tried again once the rest is undone, as it may have needed that. Reports the
 * last failure and how many are left. The host's log says for whom (NULL: nobody) it was done.
 */
int nb_undo(struct nb_undo_entry **stack, uint32_t scope, const struct nb_client *client,
	    struct nb_error *error);

#endif
