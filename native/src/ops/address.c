/* SPDX-License-Identifier: MIT */
/* Where an IP address is: the interface that has it, and the way to it. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink.h"

struct address {
	const char *text;
	int family;
	size_t length;
	unsigned char bytes[sizeof(struct in6_addr)];
	char interface[IFNAMSIZ]; /* of an address such as fe80::1%eth1, or "" */
};

static int parse(const struct nb_target *target, struct address *address, const char *operation,
		 struct nb_error *error)
{
	const char *text = nb_target_word(target, 0), *zone = strchr(text, '%');
	char plain[INET6_ADDRSTRLEN] = "";
	size_t length = zone ? (size_t)(zone - text) : strlen(text);

	memset(address, 0, sizeof(*address));
	address->text = text;
	if (length < sizeof(plain))
		memcpy(plain, text, length);
	if (inet_pton(AF_INET, plain, address->bytes) == 1)
		address->family = AF_INET;
	else if (inet_pton(AF_INET6, plain, address->bytes) == 1)
		address->family = AF_INET6;
	address->length =
		address->family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	if (zone && strlen(zone + 1) < IFNAMSIZ)
		strcpy(address->interface, zone + 1);
	if (address->family && (!zone || address->interface[0]))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, operation,
		       "write a numeric address such as 192.0.2.1", "'%.60s' is not an IP address",
		       text);
}

/* By index, not label. Of loopback, the first, the host has every address in its net. */
static int get_interface(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct nb_netlink netlink = { 0 };
	struct address address;
	struct ifaddrmsg head = { 0 };
	const void *attributes, *bytes;
	char name[IFNAMSIZ];
	size_t at = 0, length, size;
	int status = parse(target, &address, "interface", error);

	if (status)
		return status;
	nb_netlink_begin(&netlink, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head));
	if (nb_netlink_ask(&netlink))
		status = nb_fail_errno(error, "interface", "look at `dmesg` on that host",
				       "reading the host's addresses");
	while (!status && !ftell(text) &&
	       nb_netlink_next(&netlink, &at, RTM_NEWADDR, &head, sizeof(head), &attributes,
			       &length)) {
		bytes = nb_attribute(attributes, length, IFA_LOCAL, &size);
		bytes = bytes ? bytes : nb_attribute(attributes, length, IFA_ADDRESS, &size);
		if (head.ifa_family == address.family && bytes &&
		    !memcmp(bytes, address.bytes,
			    head.ifa_index == 1 ? (head.ifa_prefixlen + 7U) / 8 : size) &&
		    if_indextoname(head.ifa_index, name) &&
		    (!address.interface[0] || !strcmp(address.interface, name)))
			fprintf(text, "%s\n", name);
	}
	nb_netlink_free(&netlink);
	return status || ftell(text)
		       ? status
		       : nb_fail(error, NB_ERR_SYSTEM, "interface",
				 "see `ip address` there, and correct the host's address",
				 "no interface of this host has the address %s", address.text);
}

static void add_route(FILE *text, int family, const void *attributes, size_t length)
{
	char name[IF_NAMESIZE], word[INET6_ADDRSTRLEN];
	const void *gateway;
	uint32_t index;
	size_t size;

	if (nb_attribute_copy(attributes, length, RTA_OIF, &index, sizeof(index)) &&
	    if_indextoname(index, name))
		fprintf(text, "interface: %s\n", name);
	gateway = nb_attribute(attributes, length, RTA_GATEWAY, &size);
	if (gateway && inet_ntop(family, gateway, word, sizeof(word)))
		fprintf(text, "gateway: %s\n", word);
}

static int ask_route(struct nb_netlink *netlink, const struct address *address,
		     struct nb_error *error)
{
	struct rtmsg route = { .rtm_family = (unsigned char)address->family,
			       .rtm_dst_len = (unsigned char)(address->length * 8) };
	int index = 0;

	if (address->interface[0]) {
		index = nb_interface(address->interface, "route", error);
		if (index < 0)
			return index;
	}
	nb_netlink_begin(netlink, RTM_GETROUTE, 0, &route, sizeof(route));
	nb_netlink_put(netlink, RTA_DST, address->bytes, address->length);
	if (index)
		nb_netlink_put(netlink, RTA_OIF, &index, sizeof(index));
	if (!nb_netlink_ask(netlink))
		return 0;
	return nb_fail_errno(
		error, "route",
		"see `ip route get` there, and correct the address or the host's routes",
		"there is no route to %s", address->text);
}

static int get_route(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct nb_netlink netlink = { 0 };
	struct address address;
	struct rtmsg route;
	const void *attributes;
	size_t at = 0, length;
	int status = parse(target, &address, "route", error);

	if (!status)
		status = ask_route(&netlink, &address, error);
	if (!status && nb_netlink_next(&netlink, &at, RTM_NEWROUTE, &route, sizeof(route),
				       &attributes, &length))
		add_route(text, address.family, attributes, length);
	nb_netlink_free(&netlink);
	return status;
}

const struct nb_op nb_op_interface = {
	.name = "interface",
	.about = "name of the interface that has an IP address",
	.words = 1,
	.get = get_interface,
};

const struct nb_op nb_op_route = {
	.name = "route",
	.about = "the way to an IP address: interface, gateway",
	.words = 1,
	.get = get_route,
};
