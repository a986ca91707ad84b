/* SPDX-License-Identifier: MIT */
/* As whom the clients of an export read. */
#ifndef NB_EXPORT_READER_H
#define NB_EXPORT_READER_H

#include "export_target.h"

struct nb_export_reader {
	unsigned int user;
	unsigned int group;
};

/*
 * All users of all clients read as one: the owner of the file that is exported, or nobody where
 * root owns it and anybody may read it.
 */
struct nb_export_reader nb_export_reader(const struct nb_export_target *target);

#endif
