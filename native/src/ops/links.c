/* SPDX-License-Identifier: MIT */
#include "links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

static struct nb_link *list(size_t *count)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct nb_link *links = NULL, *more;
	struct nb_netlink netlink;
	const void *attributes;
	size_t at = 0, length, size;

	nb_netlink_begin(&netlink, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head));
	if (nb_netlink_ask(&netlink))
		at = netlink.answers.used;
	while (nb_netlink_next(&netlink, &at, RTM_NEWLINK, &head, sizeof(head), &attributes,
			       &length)) {
		const char *name = nb_attribute(attributes, length, IFLA_IFNAME, &size);
		struct nb_link *link;
		uint32_t elsewhere;

		if (!name || size > sizeof(link->name) ||
		    !(more = realloc(links, (*count + 1) * sizeof(*links))))
			continue;
		links = more;
		link = memset(&links[(*count)++], 0, sizeof(*link));
		memcpy(link->name, name, size);
		link->index = (uint32_t)head.ifi_index;
		link->flags = head.ifi_flags & (IFF_UP | IFF_NOARP | IFF_PROMISC | IFF_ALLMULTI);
		nb_attribute_copy(attributes, length, IFLA_MTU, &link->mtu, sizeof(link->mtu));
		nb_attribute_copy(attributes, length, IFLA_MASTER, &link->master,
				  sizeof(link->master));
		if (!nb_attribute_copy(attributes, length, IFLA_LINK_NETNSID, &elsewhere,
				       sizeof(elsewhere)))
			nb_attribute_copy(attributes, length, IFLA_LINK, &link->lower,
					  sizeof(link->lower));
	}
	nb_netlink_free(&netlink);
	return links;
}

/* The two ends of a veth name each other as what they stand on. */
static int is_above(const struct nb_link *link, const struct nb_link *lower)
{
	return (link->lower == lower->index && lower->lower != link->index) ||
	       lower->master == link->index;
}

static void swap(struct nb_link *one, struct nb_link *other)
{
	struct nb_link kept = *one;

	*one = *other;
	*other = kept;
}

struct nb_link *nb_links(const char *interface, size_t *count)
{
	size_t all = 0, taken = 0;
	struct nb_link *links = list(&all);

	*count = all;
	if (!strcmp(interface, "all"))
		return links;
	for (size_t i = 0; i < all; i++)
		if (!strcmp(links[i].name, interface))
			swap(&links[taken++], &links[i]);
	for (size_t at = 0; at < taken; at++)
		for (size_t i = taken; i < all; i++)
			if (is_above(&links[i], &links[at]) ||
			    (!at && links[i].master == links[at].index))
				swap(&links[taken++], &links[i]);
	*count = taken;
	return links;
}

int nb_link_of_path(const char *path, char name[IFNAMSIZ])
{
	const char *net = strncmp(path, "/sys/", 5) != 0 ? NULL : strstr(path, "/net/");

	return (net && sscanf(net, "/net/%15[^/]", name) == 1) ||
	       sscanf(path, "/proc/sys/net/%*[^/]/conf/%15[^/]", name) == 1 ||
	       sscanf(path, "/proc/sys/net/%*[^/]/neigh/%15[^/]", name) == 1;
}
