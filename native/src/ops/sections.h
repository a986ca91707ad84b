/* SPDX-License-Identifier: MIT */
/*
 * What can be read of the kernel's files and of interfaces, as a text of sections. Each begins with
 * what it is of ("file FOLDER", or an operation and its interface); a line " NAME VALUE" is of one
 * file, number or offload there. Only files that everybody may read and root write, of one line,
 * count.
 */
#ifndef NB_SECTIONS_H
#define NB_SECTIONS_H

#include <limits.h>

#include "op.h"

enum { NB_SECTION_VALUE = 4096, NB_SECTION_DEEP = 64 };

/* The operation of a section's header or of a name; NULL: there is none. */
const struct nb_op *nb_section_op(const char *header);
/* The section of a header, as it is now, for free(); "" where there is no such thing. */
char *nb_section_read(const char *header);
/* Whether it is in /proc/sys, /proc/irq or /sys, and in no file system below these (debugfs), whose
 * folders are root's. */
int nb_section_is_kernels(const char *path);
/* A folder's files, and those of the folders down to `depth` below it. */
void nb_section_folder(FILE *text, const char *path, int depth);
/* An interface and those above it, the lowest first. "all": of every one what lasts; or `wide`,
 * its flags and qdisc too, and not the files of its conf/. */
void nb_section_links(FILE *text, const char *interface, int wide);

/* A line of a text that can be written, as an operation. */
struct nb_section_line {
	const char *next, *header, *line;
	size_t length, name; /* of the line; of its blank and its name */
	const struct nb_op *op;
	struct nb_target target;
	char words[PATH_MAX], value[NB_SECTION_VALUE];
};

/* From `next` on: 1; 0: there is none. */
int nb_section_next(struct nb_section_line *at);

#endif
