/* SPDX-License-Identifier: MIT */
/* The account that a process runs as. */
#ifndef NB_ACCOUNT_H
#define NB_ACCOUNT_H

#include "fail.h"

/*
 * Become this user for good, with their groups and no way to more rights; "": stay who one is.
 * Takes root, unless one is that user. 0, or a negative code with the error filled.
 */
int nb_become(const char *user, struct nb_error *error);

#endif
