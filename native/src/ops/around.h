/* SPDX-License-Identifier: MIT */
/* What is around a change. The interfaces of the network namespace, which stand on which, and what
 * one loses with some changes for good: addresses that somebody gave it, and routes (lasting.c).
 *
 * And what can be read of the kernel's files and of interfaces, as a text of sections (sections.c).
 * Each begins with an operation, the index of its interface or 0, and what it is of
 * ("file:0 FOLDER", "link:INDEX INTERFACE"); a line " NAME VALUE" is of one file, number or offload
 * there. Only files that everybody may read and root write, of one line, count. */
#ifndef NB_AROUND_H
#define NB_AROUND_H

#include <limits.h>
#include <net/if.h>

#include "op.h"

struct nb_link {
	char name[IFNAMSIZ];
	uint32_t index, lower, master, flags, mtu;
};

/* An interface, those above it, and its own ports if it is a bond or a bridge, the lowest first;
 * "all": every one. *count of them, for free(). */
struct nb_link *nb_links(const char *interface, size_t *count);
/* Whether a path is below an interface's folder of /sys, conf/ or neigh/, whose *name may be "all"
 * or "default" too. */
int nb_link_of_path(const char *path, char name[IFNAMSIZ]);
/* The index of the interface with that name, or that a path names; 0: there is none. */
unsigned int nb_link_index(const char *of);
/* A name or path with the name that the interface with that index has by now (0: as it is): 0; 1:
 * it has gone; <0 with errno. */
int nb_link_follow(unsigned int index, const char *of, char now[PATH_MAX]);

/* A section "state INTERFACE" for each, with its flags where they are wanted, and a line for each
 * address that does not come back by itself (" ADDRESS/LENGTH address"), for all routes of a family
 * but the kernel's own (" routes6 COUNT SUM"), and for each route whose mtu follows the interface's
 * (" ADDRESS/LENGTH mtu NUMBER"). Nothing of what the kernel does not tell. */
void nb_lasting_add(FILE *text, const struct nb_link *links, size_t count, int flags);
/* Refuse an mtu, or what is to be written to a file, with which such lines, or what IPv6 itself
 * has been told of an interface, would go. */
int nb_lasting_check_mtu(const char *interface, uint32_t mtu, struct nb_error *error);
int nb_lasting_check_file(const char *path, const char *value, struct nb_error *error);

enum { NB_SECTION_VALUE = 4096, NB_SECTION_DEEP = 64 };

/* The operation of a section's header or of a name; NULL: there is none. */
const struct nb_op *nb_section_op(const char *header);
/* The section of a header, as it is now, for free(); "" where there is no such thing, NULL: no
 * memory. Its interface may have another name by now. */
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
	char of[PATH_MAX], words[PATH_MAX], value[NB_SECTION_VALUE];
};

/* From `next` on: 1; 0: there is none. */
int nb_section_next(struct nb_section_line *at);

#endif
