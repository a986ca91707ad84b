/* SPDX-License-Identifier: MIT */
/* The interfaces of the network namespace, which stand on which, and what one loses with some
 * changes for good: addresses that somebody gave it, and routes. */
#ifndef NB_LASTING_H
#define NB_LASTING_H

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

/*
 * A section "state INTERFACE" for each, with its flags where they are wanted, and a line for each
 * address that does not come back by itself (" ADDRESS/LENGTH address"), for all routes of a family
 * but the kernel's own (" routes6 COUNT SUM"), apart those that have other interfaces too
 * (" multipath6 COUNT SUM"), and for each route whose mtu follows the interface's
 * (" ADDRESS/LENGTH mtu NUMBER"). Nothing of what the kernel does not tell.
 */
void nb_lasting_add(FILE *text, const struct nb_link *links, size_t count, int flags);
/* Refuse an mtu, or what is to be written to a file, with which such lines, or what IPv6 itself
 * has been told of an interface, would go. */
int nb_lasting_check_mtu(const char *interface, uint32_t mtu, struct nb_error *error);
int nb_lasting_check_file(const char *path, const char *value, struct nb_error *error);

#endif
