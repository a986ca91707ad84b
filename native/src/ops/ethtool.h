/* SPDX-License-Identifier: MIT */
/* What the operations that go through ethtool's ioctl share (linux/ethtool.h, linux/sockios.h). */
#ifndef NB_ETHTOOL_H
#define NB_ETHTOOL_H

#include <linux/ethtool.h>

#include "netlink.h"

/* Give a command to an interface. Returns 0, or -1 with errno. */
int nb_ethtool(const char *interface, void *command);

/* The names of a set (enum ethtool_stringset), to be freed, and how many; NULL with errno. */
struct ethtool_gstrings *nb_ethtool_names(const char *interface, uint32_t set, uint32_t *count);
/* One of them, which has an end only when it is shorter than its room. */
int nb_ethtool_name_length(const struct ethtool_gstrings *names, uint32_t index);
const char *nb_ethtool_name(const struct ethtool_gstrings *names, uint32_t index);

#endif
