/* SPDX-License-Identifier: MIT */
/*
 * Operations on the host, as data: what settings are made of. A held operation remembers what was
 * there before, and is undone in reverse when the controller asks or is gone.
 *
 * A kind of operation lives in one file under ops/ and one row of ops/table.c.
 */
#ifndef NB_OPS_H
#define NB_OPS_H

#include "fail.h"
#include "rows.h"
#include "wire.h"

enum { NB_OP_TEXT = 262144, NB_OP_SCOPES = 256, NB_OP_MOVED = 64 };

/* What an operation acts on: words separated by NUL, with an end behind the last. */
struct nb_target {
	const char *words;
	size_t length;
};

/* What an operation reads. Adding to a text that is full only marks it: the caller of `get` makes
 * an error of that. */
struct nb_text {
	char *data; /* with its end */
	size_t used;
	size_t room;
	int full;
};

struct nb_op {
	const char *name;
	const char *about;
	size_t words; /* that its target has; 0: a program and its arguments */
	int lasting;  /* what it sets is never undone: it ends with the process */
	/* Read. */
	int (*get)(const struct nb_target *target, struct nb_text *text, struct nb_error *error);
	/* Change; optional. Takes what `get` read too, unless there is a `restore`. */
	int (*set)(const struct nb_target *target, const char *value, struct nb_error *error);
	/* Make `get` read that text again; left out: `set`. */
	int (*restore)(const struct nb_target *target, const char *text, struct nb_error *error);
	/* The other target of this kind that the kernel moves along, written into room for
	 * NB_OP_MOVED bytes; 0: none. */
	size_t (*moves)(const struct nb_target *target, char *other);
};

extern const struct nb_op *const nb_ops[]; /* ends with NULL */
extern const struct nb_field nb_op_arguments[];
extern const size_t nb_op_arguments_count;

struct nb_undo_entry;

/* Execute one NB_OP payload; *held grows where it asks for that. Writes what was there before and
 * after. */
int nb_op_execute(const unsigned char *payload, size_t length, struct nb_undo_entry **held,
		  struct nb_writer *answer, struct nb_error *error);
/* Whether a payload is an operation that could be executed; does nothing with it. */
int nb_op_check(const unsigned char *payload, size_t length, struct nb_error *error);
/*
 * Undo what is held in this scope and those above it, in reverse, and see that it reads as it did.
 * Goes on after a failure, and reports the first and how many there were.
 */
int nb_op_undo(struct nb_undo_entry **held, uint32_t scope, struct nb_error *error);

/* For the kinds of operations. */

const char *nb_target_word(const struct nb_target *target, size_t index);
void nb_text_add(struct nb_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A line of what `set` takes: "NAME VALUE", or "NAME: VALUE AND MORE" as `get` writes it. */
struct nb_line {
	char name[64];
	char value[128]; /* to the end of the line */
	int read;	 /* as `get` writes it */
};

/* The next line that is not blank: 1; 0: there is none; -1: one that is too long, or has no value.
 */
int nb_next_line(const char **at, struct nb_line *line);

/* A failed system call on something of the device or the kernel: NB_ERR_UNSUPPORTED where it has no
 * such thing. Takes errno. */
int nb_fail_device(struct nb_error *error, const char *operation, const char *interface,
		   const char *what);

#endif
