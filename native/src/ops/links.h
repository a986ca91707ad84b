/* SPDX-License-Identifier: MIT */
/* The interfaces of the network namespace, and which stand on which. */
#ifndef NB_LINKS_H
#define NB_LINKS_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
