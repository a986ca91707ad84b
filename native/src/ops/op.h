/* SPDX-License-Identifier: MIT */
/* A kind of operation on the host: how it reads and changes something. Each lives in one file of
 * this folder and one row of table.c. A held operation remembers what was there before (undo.c). */
#ifndef NB_OP_H
#define NB_OP_H

#include <stdio.h>

#include "fail.h"

enum { NB_OP_TEXT = 1 << 20 };

/* What an operation acts on: words separated by NUL, with an end behind the last. */
struct nb_target {
	const char *words;
	size_t length;
};

struct nb_op {
	const char *name;
	const char *about;
	size_t words; /* that its target has; 0: a program and its arguments */
	int lasting;  /* what it sets is never undone: it ends with the process */
	int lines;    /* each line of its text needs permission to be written */
	int named;    /* a further word of its target has the names of lines: no other is read */
	/* Read. */
	int (*get)(const struct nb_target *target, FILE *text, struct nb_error *error);
	/* Change; optional. Takes what `get` read too, unless there is a `restore`. */
	int (*set)(const struct nb_target *target, const char *value, struct nb_error *error);
	/* Make `get` read that text again; left out: `set`. */
	int (*restore)(const struct nb_target *target, const char *text, struct nb_error *error);
	/* Of an operation that is held beside others: the lines of a text that are the `same` in
	 * two others, or not. It is put back as far as it is there, and as its `restore` sees what
	 * differs. */
	void (*keep)(const char *text, const char *one, const char *other, int same, FILE *kept);
};

extern const struct nb_op *const nb_ops[]; /* ends with NULL */

/* What an operation is asked with, the same for all kinds; an answer is of NB_OP_VALUE. */
enum { NB_OP_VALUE = 2 };
extern const struct nb_field nb_op_arguments[];
extern const size_t nb_op_arguments_count;

const char *nb_target_word(const struct nb_target *target, size_t index);
/* A copy with an end behind it, or NULL. */
char *nb_text_copy(const char *text, size_t length);
/* The first line in which two texts differ: where it begins in both. */
size_t nb_text_differs(const char *one, const char *other);
/* What an operation reads, for free(). NULL with the error filled: also where it is longer than
 * NB_OP_TEXT. */
char *nb_op_read(const struct nb_op *op, const struct nb_target *target, struct nb_error *error);
/* Write what was read again, as an undo does. */
int nb_op_restore(const struct nb_op *op, const struct nb_target *target, const char *text,
		  struct nb_error *error);

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
