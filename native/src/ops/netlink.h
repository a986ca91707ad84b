/* SPDX-License-Identifier: MIT */
/* Interfaces by name, and requests to the kernel by netlink(7): one request, all its answers,
 * every length checked. */
#ifndef NB_NETLINK_H
#define NB_NETLINK_H

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "../wire.h"
#include "op.h"

struct nb_netlink {
	struct nb_writer request;
	struct nb_writer answers; /* whole messages, each at a multiple of 4 */
	char why[128];		  /* the kernel's own words on a request that failed, or "" */
	int protocol;		  /* NETLINK_ROUTE, unless set after the request is begun */
};

/* Begin a request of that type; `head` is its fixed part. */
void nb_netlink_begin(struct nb_netlink *netlink, uint16_t type, uint16_t flags, const void *head,
		      size_t length);
void nb_netlink_put(struct nb_netlink *netlink, uint16_t type, const void *data, size_t length);
/* Send it and collect the answers, a dump again when it was interrupted. Returns 0, or -1 with
 * errno. */
int nb_netlink_ask(struct nb_netlink *netlink);
void nb_netlink_free(struct nb_netlink *netlink);

/* The next answer of that type whose fixed part is there: fills `head`, and *attributes and *length
 * with what follows it. Starts at *at == 0; returns 0 at the end. */
int nb_netlink_next(const struct nb_netlink *netlink, size_t *at, uint16_t type, void *head,
		    size_t head_length, const void **attributes, size_t *length);

/* The data of an attribute, and its length; NULL: it is not there. */
const void *nb_attribute(const void *attributes, size_t length, uint16_t type, size_t *size);
/* The same for one of a fixed size, copied out: whether it is there. */
int nb_attribute_copy(const void *attributes, size_t length, uint16_t type, void *value,
		      size_t size);

/* The index of an interface, or a negative code: it is not there, or this is no name of one. */
int nb_interface(const char *name, const char *operation, struct nb_error *error);

/* By ethtool's ioctl (linux/ethtool.h, linux/sockios.h). */

/* Give a command to an interface. Returns 0, or -1 with errno. */
int nb_ethtool(const char *interface, void *command);

/* The names of a set (enum ethtool_stringset), to be freed, and how many; NULL with errno. */
struct ethtool_gstrings *nb_ethtool_names(const char *interface, uint32_t set, uint32_t *count);
/* One of them, which has an end only when it is shorter than its room. */
int nb_ethtool_name_length(const struct ethtool_gstrings *names, uint32_t index);
const char *nb_ethtool_name(const struct ethtool_gstrings *names, uint32_t index);

#endif
