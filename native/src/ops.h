/* SPDX-License-Identifier: MIT */
/*
 * Operations on the host, as data: what settings are made of. A held operation remembers what was there before, and is undone in
 * reverse when the controller asks or is gone. One row a kind of operation.
 */
#ifndef NB_OPS_H
#define NB_OPS_H

#include "fail.h"
#include "rows.h"
#include "wire.h"

enum { NB_OP_TEXT = 65536 };

struct nb_op {
	const char *name;
	const char *about;
	/* Read into `text` (NB_OP_TEXT bytes, NUL-terminated). */
	int (*get)(const char *target, size_t length, char *text, struct nb_error *error);
	/* Change; optional. */
	int (*set)(const char *target, size_t length, const char *value, struct nb_error *error);
};

extern const struct nb_op nb_ops[]; /* ends with a NULL name */
extern const struct nb_field nb_op_arguments[];
extern const size_t nb_op_arguments_count;

struct nb_held;

/* Execute one NB_OP payload; *held grows where it asks for that. Writes what was there before and after. */
int nb_op_execute(const unsigned char *payload, size_t length, struct nb_held **held, struct nb_writer *answer,
		  struct nb_error *error);
/* Undo everything held, in reverse; goes on after a failure and reports the first. */
int nb_op_undo(struct nb_held **held, struct nb_error *error);

#endif
