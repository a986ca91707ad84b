/* SPDX-License-Identifier: MIT */
/* Numbers of an interface that are not its driver's: MTU, queue length, sizes of segments
 * (rtnetlink(7), linux/if_link.h). */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "around.h"
#include "netlink.h"

/* In if_link.h since Linux 6.3. */
enum { GSO_IPV4_MAX_SIZE = 63, GRO_IPV4_MAX_SIZE = 64 };
enum { LOWER_UP = 1 << 16, OPER_UNKNOWN = 0, OPER_UP = 6 };

static const char OPERATION[] = "link";

struct key {
	const char *name;
	uint16_t attribute; /* u32; 0: the state, which is made of several */
	int only_read;
};

static const struct key keys[] = {
	{ "mtu", IFLA_MTU, 0 },
	{ "txqueuelen", IFLA_TXQLEN, 0 },
	{ "gso_max_size", IFLA_GSO_MAX_SIZE, 0 },
	{ "gro_max_size", IFLA_GRO_MAX_SIZE, 0 },
	{ "gso_ipv4_max_size", GSO_IPV4_MAX_SIZE, 0 },
	{ "gro_ipv4_max_size", GRO_IPV4_MAX_SIZE, 0 },
	{ "tso_max_size", IFLA_TSO_MAX_SIZE, 1 },
	{ "min_mtu", IFLA_MIN_MTU, 1 },
	{ "max_mtu", IFLA_MAX_MTU, 1 },
	{ "state", 0, 1 },
};

static const struct key *key_named(const char *name, struct nb_error *error)
{
	for (size_t i = 0; i < NB_LENGTH(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	nb_fail(error, NB_ERR_REQUEST, OPERATION, NB_SAME_VERSION, "a link has no '%.40s'", name);
	return NULL;
}

static const char *state(unsigned int flags, uint8_t operational)
{
	if (!(flags & IFF_UP))
		return "down";
	if (!(flags & LOWER_UP))
		return "no carrier";
	return operational == OPER_UP || operational == OPER_UNKNOWN ? "up" : "not up";
}

static void add_key(const struct key *key, const struct ifinfomsg *link, const void *attributes,
		    size_t length, FILE *text)
{
	uint8_t operational = 0;
	uint32_t number;

	if (!key->attribute) {
		nb_attribute_copy(attributes, length, IFLA_OPERSTATE, &operational,
				  sizeof(operational));
		fprintf(text, "%s\n", state(link->ifi_flags, operational));
	} else if (nb_attribute_copy(attributes, length, key->attribute, &number, sizeof(number))) {
		fprintf(text, "%u\n", number);
	}
}

static int fail_link(struct nb_netlink *netlink, struct nb_error *error, const char *interface,
		     const struct key *key)
{
	int number = errno;

	if (!netlink->why[0] || number == EPERM || number == EOPNOTSUPP)
		return nb_fail_device(error, OPERATION, interface, key->name);
	return nb_fail_errno(error, OPERATION, "choose another value: the driver rejects this one",
			     "%s of %s: %s", key->name, interface, netlink->why);
}

static int get_link(const struct nb_target *target, FILE *text, struct nb_error *error)
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
	if (!status && !ftell(text))
		status = nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
				 "use a newer kernel, or leave this setting out",
				 "this kernel does not report %s of %s", key->name, interface);
	return status;
}

static int restore_link(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	const struct key *key = key_named(nb_target_word(target, 1), error);
	int index = key ? nb_interface(interface, OPERATION, error) : -NB_ERR_REQUEST, status = 0;
	struct ifinfomsg link = { .ifi_index = index };
	struct nb_netlink netlink;
	unsigned long long read;
	uint32_t number;
	char *end;

	if (index < 0)
		return index;
	if (key->only_read)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "only read it",
			       "%s of %s cannot be set", key->name, interface);
	read = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || end[strspn(end, "\n")] || read > INT32_MAX)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write a whole number",
			       "'%.40s' for %s of %s", value, key->name, interface);
	number = (uint32_t)read;
	nb_netlink_begin(&netlink, RTM_NEWLINK, 0, &link, sizeof(link));
	nb_netlink_put(&netlink, key->attribute, &number, sizeof(number));
	if (nb_netlink_ask(&netlink))
		status = fail_link(&netlink, error, interface, key);
	nb_netlink_free(&netlink);
	return status;
}

static int set_link(const struct nb_target *target, const char *value, struct nb_error *error)
{
	int status = strcmp(nb_target_word(target, 1), "mtu") != 0
			     ? 0
			     : nb_lasting_check_mtu(target->words,
						    (uint32_t)strtoul(value, NULL, 10), error);

	return status ? status : restore_link(target, value, error);
}

static int get_index(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *of = target->words;
	char name[IFNAMSIZ];
	int is_all = nb_link_of_path(of, name) && !strcmp(name, "all"), is_there;
	struct nb_link *links = NULL;
	unsigned int index;
	size_t count = 0;

	errno = 0;
	index = strchr(of, ' ') ? (unsigned int)atoi(of) : nb_link_index(of);
	is_there = is_all || (index && if_indextoname(index, name));
	if (is_there)
		links = nb_links(name, &count);
	if (is_there ? !links : errno && errno != ENXIO && errno != ENODEV)
		return nb_fail_errno(error, "index", "look at `dmesg` there", "of %s", of);
	if (is_there)
		fprintf(text, is_all ? "\n" : "%u %s\n", index, name);
	for (size_t i = is_all ? 0 : 1; i < count; i++)
		fprintf(text, "%u %s\n", links[i].index, links[i].name);
	free(links);
	return 0;
}

const struct nb_op nb_op_index = {
	.name = "index",
	.about = "indices and names of the interface of a name, a path, or such a text, and of "
		 "those above; of what is of all first an empty line",
	.words = 1,
	.get = get_index,
};

const struct nb_op nb_op_link = {
	.name = "link",
	.about = "a number of an interface (mtu, txqueuelen, gso_max_size, gro_max_size and those "
		 "of IPv4, tso_max_size), or its state",
	.words = 2,
	.get = get_link,
	.set = set_link,
	.restore = restore_link,
};
