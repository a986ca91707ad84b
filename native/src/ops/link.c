/* SPDX-License-Identifier: MIT */
/* Numbers of an interface that are not its driver's: MTU, queue length, sizes of segments
 * (rtnetlink(7), linux/if_link.h). */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

/* In if_link.h since Linux 6.3. */
enum { GSO_IPV4_MAX_SIZE = 63, GRO_IPV4_MAX_SIZE = 64 };
enum { MTU_OF_IPV6 = 1280, LOWER_UP = 1 << 16 };

static const char OPERATION[] = "link";

struct key {
	const char *name;
	uint16_t attribute; /* u32; 0: the state, which is made of several */
	int only_read;
	const char *moves; /* the key that the kernel moves along, up to 64K */
};

static const struct key keys[] = {
	{ "mtu", IFLA_MTU, 0, NULL },
	{ "txqueuelen", IFLA_TXQLEN, 0, NULL },
	{ "gso_max_size", IFLA_GSO_MAX_SIZE, 0, "gso_ipv4_max_size" },
	{ "gro_max_size", IFLA_GRO_MAX_SIZE, 0, "gro_ipv4_max_size" },
	{ "gso_ipv4_max_size", GSO_IPV4_MAX_SIZE, 0, NULL },
	{ "gro_ipv4_max_size", GRO_IPV4_MAX_SIZE, 0, NULL },
	{ "tso_max_size", IFLA_TSO_MAX_SIZE, 1, NULL },
	{ "state", 0, 1, NULL },
};

static const struct key *key_named(const char *name, struct nb_error *error)
{
	for (size_t i = 0; i < NB_LENGTH(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	nb_fail(error, NB_ERR_REQUEST, OPERATION, "use the same netbench version on both sides",
		"a link has no '%.40s'", name);
	return NULL;
}

/* RFC 2863's operational states, numbered as in linux/if.h. */
static const char *state(unsigned int flags, uint8_t operational)
{
	static const char *const states[] = { NULL,	 "not present", "down", "lower layer down",
					      "testing", "dormant",	"up" };

	if (!(flags & IFF_UP))
		return "down";
	if (!(flags & LOWER_UP))
		return "no carrier";
	return operational < NB_LENGTH(states) && states[operational] ? states[operational] : "up";
}

static void add_key(const struct key *key, const struct ifinfomsg *link, const void *attributes,
		    size_t length, struct nb_text *text)
{
	uint8_t operational = 0;
	uint32_t number;

	if (!key->attribute) {
		nb_attribute_copy(attributes, length, IFLA_OPERSTATE, &operational,
				  sizeof(operational));
		nb_text_add(text, "%s\n", state(link->ifi_flags, operational));
	} else if (nb_attribute_copy(attributes, length, key->attribute, &number, sizeof(number))) {
		nb_text_add(text, "%u\n", number);
	}
}

static int fail_link(struct nb_netlink *netlink, struct nb_error *error, const char *interface,
		     const struct key *key)
{
	int number = errno;

	if (!netlink->why[0] || number == EPERM || number == EOPNOTSUPP)
		return nb_fail_device(error, OPERATION, interface, key->name);
	nb_fail_errno(error, OPERATION, "choose another value: the driver rejects this one",
		      "%s of %s: %s", key->name, interface, netlink->why);
	return -NB_ERR_SYSTEM;
}

static int get_link(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	const struct key *key = key_named(nb_target_word(target, 1), error);
	int index = key ? nb_interface(interface, OPERATION, error) : -NB_ERR_REQUEST, status = 0;
	struct ifinfomsg link = { .ifi_index = index };
	struct nb_netlink netlink;
	const void *attributes;
	size_t at = 0, length;

	if (index < 0)
		return index;
	nb_netlink_begin(&netlink, RTM_GETLINK, 0, &link, sizeof(link));
	if (nb_netlink_ask(&netlink))
		status = fail_link(&netlink, error, interface, key);
	else if (nb_netlink_next(&netlink, &at, RTM_NEWLINK, &link, sizeof(link), &attributes,
				 &length))
		add_key(key, &link, attributes, length, text);
	nb_netlink_free(&netlink);
	if (!status && !text->used)
		status = nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
				 "use a newer kernel, or leave this setting out",
				 "this kernel does not report %s of %s", key->name, interface);
	return status;
}

static int is_lasting_ipv6(const struct ifaddrs *address, const char *interface)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address->ifa_addr;

	return six && six->sin6_family == AF_INET6 && !strcmp(address->ifa_name, interface) &&
	       !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

/* Below IPv6's smallest MTU the kernel takes its addresses away, and does not bring them back. */
static int check_mtu(const char *interface, uint32_t mtu, struct nb_error *error)
{
	struct ifaddrs *all = NULL, *one;

	if (mtu >= MTU_OF_IPV6)
		return 0;
	if (getifaddrs(&all))
		return nb_fail_errno(error, OPERATION, "look at `dmesg` on that host",
				     "reading the addresses of %s", interface);
	one = all;
	while (one && !is_lasting_ipv6(one, interface))
		one = one->ifa_next;
	freeifaddrs(all);
	return one ? nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			     "use an mtu of 1280 or more, or remove its IPv6 addresses",
			     "with an mtu of %u the kernel removes the IPv6 addresses of %s "
			     "permanently",
			     mtu, interface)
		   : 0;
}

static int read_number(const char *value, const struct key *key, const char *interface,
		       uint32_t *number, struct nb_error *error)
{
	char *end;
	unsigned long long read = strtoull(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || end[strspn(end, "\n")] || read > INT32_MAX)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write a whole number",
			       "'%.40s' for %s of %s", value, key->name, interface);
	*number = (uint32_t)read;
	return key->attribute == IFLA_MTU ? check_mtu(interface, *number, error) : 0;
}

static int set_link(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	const struct key *key = key_named(nb_target_word(target, 1), error);
	int index = key ? nb_interface(interface, OPERATION, error) : -NB_ERR_REQUEST, status;
	struct ifinfomsg link = { .ifi_index = index };
	struct nb_netlink netlink;
	uint32_t number;

	if (index < 0)
		return index;
	if (key->only_read)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "only read it",
			       "%s of %s cannot be set", key->name, interface);
	status = read_number(value, key, interface, &number, error);
	if (status)
		return status;
	nb_netlink_begin(&netlink, RTM_NEWLINK, 0, &link, sizeof(link));
	nb_netlink_put(&netlink, key->attribute, &number, sizeof(number));
	if (nb_netlink_ask(&netlink))
		status = fail_link(&netlink, error, interface, key);
	nb_netlink_free(&netlink);
	return status;
}

static size_t moves(const struct nb_target *target, char *other)
{
	const struct key *key = key_named(nb_target_word(target, 1), NULL);
	const char *interface = nb_target_word(target, 0);
	size_t name = strlen(interface) + 1, length;

	if (!key || !key->moves || name > IFNAMSIZ)
		return 0;
	length = strlen(key->moves);
	memcpy(other, interface, name);
	memcpy(other + name, key->moves, length + 1);
	return name + length;
}

const struct nb_op nb_op_link = {
	.name = "link",
	.about = "a number of an interface (mtu, txqueuelen, gso_max_size, gro_max_size and those "
		 "of IPv4, tso_max_size), or its "
		 "state",
	.words = 2,
	.get = get_link,
	.set = set_link,
	.moves = moves,
};
