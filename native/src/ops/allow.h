/* SPDX-License-Identifier: MIT */
/*
 * What a host allows to be changed: the lines of /etc/netbench/allow (docs/explanation/safety.md),
 * or, without that file, what is allowed to a login by sudo.
 */
#ifndef NB_ALLOW_H
#define NB_ALLOW_H

#include <stddef.h>

#include "../fail.h"

struct nb_allow {
	const char *name; /* what messages call it */
	char *text;	  /* NULL: anything is allowed */
	int is_file;
};

/* Something that must be allowed: a keyword of the file, and what would stand behind it. */
struct nb_need {
	const char *keyword;
	char name[512]; /* of a command: its words, each with its end */
	size_t length;	/* of a command's words */
};

struct nb_need nb_need(const char *keyword, const char *name);
/* Read the file, and see that only root can have written it. 0, or a negative code; text is to be
 * freed. */
int nb_allow_read(struct nb_allow *allow, int by_sudo, struct nb_error *error);
/* Whether some line has that keyword. */
int nb_allow_has(const struct nb_allow *allow, const char *keyword);
/* Whether one of these needs is met: 0, or a negative code that names the nearest line. */
int nb_allow_any(const struct nb_allow *allow, const struct nb_need *needs, size_t count,
		 struct nb_error *error);
/* Whether that interface ("": none) may be changed: any, where no line names one. */
int nb_allow_interface(const struct nb_allow *allow, const char *name, struct nb_error *error);

#endif
