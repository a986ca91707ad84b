/* SPDX-License-Identifier: MIT */
/* How a helper passes a meter's descriptors to a mover: messages of SCM_RIGHTS (unix(7)). */
#ifndef NB_METER_MESSAGE_H
#define NB_METER_MESSAGE_H

#include <stdint.h>
#include <string.h>

#include "../meter.h"

enum { NB_MESSAGE_FILES = 250 }; /* the kernel takes 253 at most */

struct nb_meter_message {
	uint32_t total;			  /* places in all messages together */
	uint32_t last;			  /* whether none follows */
	uint32_t count;			  /* descriptors in this one */
	uint32_t place[NB_MESSAGE_FILES]; /* of each of them */
};

/* The meter of that name whose files a helper opens, or NULL. */
static inline const struct nb_meter *nb_meter_by_helper(const char *name)
{
	for (size_t i = 0; nb_meters[i]; i++)
		if (!strcmp(nb_meters[i]->name, name) && nb_meters[i]->open_files)
			return nb_meters[i];
	return NULL;
}

#endif
