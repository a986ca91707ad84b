/* SPDX-License-Identifier: MIT */
/* Which files a helper reads and writes, and what must be allowed for that. */
#ifndef NB_PERMIT_FILE_H
#define NB_PERMIT_FILE_H

#include "allow.h"

/* A file of the kernel's own, and not by way of `..` or of a link that leads out of there. */
int nb_permit_place(const char *path, int changes, struct nb_error *error);
/* One that a helper reads besides those of settings: none of them holds a secret. */
int nb_permit_is_readable(const char *path);
/* Whether the host allows a change of that file. */
int nb_permit_file(const struct nb_allow *allow, const char *path, struct nb_error *error);

#endif
