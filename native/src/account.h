/* SPDX-License-Identifier: MIT */
/* The account that a process runs as. */
#ifndef NB_ACCOUNT_H
#define NB_ACCOUNT_H

#include "fail.h"

/*
 * Become this user for good, with their groups, in their home, and with no way to more rights;
 * nothing of the environment, and no key of the session, comes along. "": stay who one is. Takes
 * root, unless one is that user. 0, or a negative code with the error filled.
 */
int nb_become(const char *user, struct nb_error *error);

#endif
