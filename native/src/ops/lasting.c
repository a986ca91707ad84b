/* SPDX-License-Identifier: MIT */
#include "around.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ipv6_route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../pattern.h"
#include "../proc_text.h"
#include "netlink.h"

enum { PROTOCOL = 11, OF_LINK_LOCAL = 3 }; /* IFA_PROTO and IFAPROT_..., Linux 5.18 */
enum { MTU_OF_IPV6 = 1280 };

static const char CONF[] = "/proc/sys/net/ipv6/conf/";
static const char SET_OF_IPV6[] = "IPv6, with what is set of it"; /* neigh/, a token, a secret */

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

/* Where a path of an interface has its name; NULL: it is of none. */
static const char *name_in(const char *path)
{
	const char *net = strncmp(path, "/sys/", 5) != 0 ? NULL : strstr(path, "/net/");
	int conf = 0, neigh = 0;

	sscanf(path, "/proc/sys/net/%*[^/]/conf/%n", &conf);
	sscanf(path, "/proc/sys/net/%*[^/]/neigh/%n", &neigh);
	return net ? net + strlen("/net/") : conf + neigh ? path + conf + neigh : NULL;
}

int nb_link_of_path(const char *path, char name[IFNAMSIZ])
{
	const char *at = name_in(path);

	return (at && sscanf(at, "%15[^/]", name) == 1) ||
	       (!strcmp(path, "/proc/sys/net/ipv4/ip_forward") && strcpy(name, "all"));
}

unsigned int nb_link_index(const char *of)
{
	char name[IFNAMSIZ];

	return if_nametoindex(nb_link_of_path(of, name) ? name : of);
}

int nb_link_follow(unsigned int index, const char *of, char now[PATH_MAX])
{
	const char *at = name_in(of) ? name_in(of) : of;
	char name[IFNAMSIZ];

	if (index && !if_indextoname(index, name))
		return errno == ENXIO ? 1 : -1;
	if (index)
		snprintf(now, PATH_MAX, "%.*s%s%s", (int)(at - of), of, name,
			 at + strcspn(at, "/"));
	else
		snprintf(now, PATH_MAX, "%s", of);
	return 0;
}

/* Whether the kernel makes an address anew by itself once the link is ready. */
static int comes_back(const struct ifaddrmsg *head, const void *address, const void *attributes,
		      size_t length)
{
	uint8_t maker = OF_LINK_LOCAL; /* where the kernel does not tell */

	if (head->ifa_family != AF_INET6)
		return 0;
	nb_attribute_copy(attributes, length, PROTOCOL, &maker, sizeof(maker));
	return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)address) ||
	       (IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)address) && maker == OF_LINK_LOCAL);
}

static void add_addresses(const struct nb_netlink *all, uint32_t interface, FILE *text)
{
	struct ifaddrmsg head;
	const void *attributes;
	size_t at = 0, length, size;

	while (nb_netlink_next(all, &at, RTM_NEWADDR, &head, sizeof(head), &attributes, &length)) {
		uint16_t own = head.ifa_family == AF_INET ? IFA_LOCAL : IFA_ADDRESS;
		const void *address = nb_attribute(attributes, length, own, &size);
		char word[INET6_ADDRSTRLEN];

		if (head.ifa_index == interface && address &&
		    size >= (head.ifa_family == AF_INET ? 4 : 16) &&
		    !comes_back(&head, address, attributes, length) &&
		    inet_ntop(head.ifa_family, address, word, sizeof(word)))
			fprintf(text, " %s/%u address\n", word, head.ifa_prefixlen);
	}
}

/* Whether a route goes out there, by one of its hops at least. */
static int goes_out(uint32_t interface, const void *attributes, size_t length)
{
	size_t size = 0, at = 0;
	const char *hops = nb_attribute(attributes, length, RTA_MULTIPATH, &size);
	struct rtnexthop hop;
	uint32_t out;

	if (nb_attribute_copy(attributes, length, RTA_OIF, &out, sizeof(out)))
		return out == interface;
	for (; hops && at + sizeof(hop) <= size; at += RTNH_ALIGN(hop.rtnh_len)) {
		memcpy(&hop, hops + at, sizeof(hop));
		if ((uint32_t)hop.rtnh_ifindex == interface)
			return 1;
		if (hop.rtnh_len < sizeof(hop))
			break;
	}
	return 0;
}

/* An mtu that was given to a route and is not locked moves with that of its interface. */
static void add_mtu(const struct rtmsg *head, const void *attributes, size_t length, FILE *text)
{
	size_t size = 0, room = 0;
	const void *metrics = nb_attribute(attributes, length, RTA_METRICS, &room);
	const void *to = nb_attribute(attributes, length, RTA_DST, &size);
	uint32_t mtu, lock = 0;
	char word[INET6_ADDRSTRLEN] = "::";

	if (head->rtm_family != AF_INET6 || !metrics ||
	    !nb_attribute_copy(metrics, room, RTAX_MTU, &mtu, sizeof(mtu)))
		return;
	nb_attribute_copy(metrics, room, RTAX_LOCK, &lock, sizeof(lock));
	if (to && size >= 16)
		inet_ntop(AF_INET6, to, word, sizeof(word));
	if (!(lock & (1 << RTAX_MTU)))
		fprintf(text, " %s/%u mtu %u\n", word, head->rtm_dst_len, mtu);
}

static void add_routes(const struct nb_netlink *all, uint32_t interface, FILE *text)
{
	static const uint16_t parts[] = { RTA_DST, RTA_GATEWAY, RTA_TABLE, RTA_PRIORITY,
					  RTA_PREFSRC };
	static const char *const names[] = { "routes4", "routes6" };
	unsigned long long counts[NB_LENGTH(names)] = { 0 }, sums[NB_LENGTH(names)] = { 0 };
	struct rtmsg head;
	const void *attributes;
	size_t at = 0, length, size;

	while (nb_netlink_next(all, &at, RTM_NEWROUTE, &head, sizeof(head), &attributes, &length)) {
		/* A sum of these does not depend on the order of routes. */
		uint64_t one = nb_digest(NB_DIGEST_START, &head.rtm_dst_len, 1);
		size_t kind;

		if ((head.rtm_family != AF_INET && head.rtm_family != AF_INET6) ||
		    head.rtm_flags & RTM_F_CLONED || head.rtm_protocol == RTPROT_KERNEL ||
		    head.rtm_protocol == RTPROT_REDIRECT ||
		    !goes_out(interface, attributes, length))
			continue;
		for (size_t i = 0; i < NB_LENGTH(parts); i++) {
			const void *part = nb_attribute(attributes, length, parts[i], &size);

			one = nb_digest(one ^ parts[i], part, part ? size : 0);
		}
		kind = head.rtm_family == AF_INET6;
		counts[kind]++;
		sums[kind] += one;
		add_mtu(&head, attributes, length, text);
	}
	for (size_t i = 0; i < NB_LENGTH(names); i++)
		if (counts[i])
			fprintf(text, " %s %llu %016llx\n", names[i], counts[i], sums[i]);
}

static void dump(struct nb_netlink *netlink, uint16_t type)
{
	struct rtmsg head = { .rtm_family = AF_UNSPEC };

	nb_netlink_begin(netlink, type, NLM_F_DUMP, &head,
			 type == RTM_GETADDR ? sizeof(struct ifaddrmsg) : sizeof(head));
	if (nb_netlink_ask(netlink))
		netlink->answers.used = 0;
}

void nb_lasting_add(FILE *text, const struct nb_link *links, size_t count, int flags)
{
	struct nb_netlink addresses, routes;

	dump(&addresses, RTM_GETADDR);
	dump(&routes, RTM_GETROUTE);
	for (size_t i = 0; i < count; i++) {
		fprintf(text, "state %s\n", links[i].name);
		if (flags)
			fprintf(text, " flags %#x\n", links[i].flags);
		add_addresses(&addresses, links[i].index, text);
		add_routes(&routes, links[i].index, text);
	}
	nb_netlink_free(&addresses);
	nb_netlink_free(&routes);
}

static int fail(const char *interface, const char *line, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_UNSUPPORTED, "keep the host as it is",
		       "leave this level out, or remove that before the campaign",
		       "the kernel would take it from %s and not bring it back: %.*s", interface,
		       (int)strcspn(line, "\n"), line);
}

/* Whether a file of an interface can be read, and reads otherwise. */
static int is_other(const char *interface, const char *name, const char *than)
{
	char path[PATH_MAX], line[64];

	snprintf(path, sizeof(path), "%s%s/%s", CONF, interface, name);
	return nb_read_file(path, line, sizeof(line)) > 0 && strcmp(line, than) != 0;
}

/* Whether a route's mtu would be another one, there and back (fib6_nh_mtu_change). */
static int is_lost(const char *line, const struct nb_link *link, uint32_t mtu)
{
	unsigned int number, there;
	char text[16];

	if (sscanf(line, " %*s mtu %u", &number) != 1)
		return 0;
	snprintf(text, sizeof(text), "%u\n", number);
	there = number >= mtu || !is_other(link->name, "mtu", text) ? mtu : number;
	return number != (there >= link->mtu || there == mtu ? link->mtu : there);
}

/* Of an interface, and those above it. */
static int check_mtu(const char *interface, uint32_t mtu, struct nb_error *error)
{
	size_t count, length;
	struct nb_link *links = nb_links(interface, &count), *next = links, *link = links;
	char *text = NULL;
	FILE *lines = open_memstream(&text, &length);
	int status = lines ? 0 : nb_fail_memory(error, "addresses and routes");

	if (lines) {
		nb_lasting_add(lines, links, count, 0);
		fclose(lines);
	}
	for (const char *at = text; !status && at && *at; at = strchr(at, '\n') + 1) {
		link = *at == ' ' ? link : next++;
		if (*at == ' ' ? is_lost(at, link, mtu)
			       : mtu < MTU_OF_IPV6 && is_other(link->name, "disable_ipv6", "1\n"))
			status = fail(link->name, *at == ' ' ? at + 1 : SET_OF_IPV6, error);
	}
	free(text);
	free(links);
	return status;
}

/* Where one interface begins to forward, default routes that routers advertised go from all. */
static int check_routers(struct nb_error *error)
{
	FILE *file = fopen("/proc/net/ipv6_route", "re");
	char line[256], name[IFNAMSIZ];
	unsigned int flags, bits;
	int status = 0;

	while (!status && file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %x %*s %*s %*s %*s %*s %*s %x %15s", &bits, &flags, name) ==
			    3 &&
		    !bits && flags & (RTF_DEFAULT | RTF_ADDRCONF) &&
		    is_other(name, "accept_ra", "2\n"))
			status = fail(name, "the default route that a router advertised", error);
	if (file)
		fclose(file);
	return status;
}

int nb_lasting_check_mtu(const char *interface, uint32_t mtu, struct nb_error *error)
{
	char bridge[64];

	/* What is written stays (BR_MTU_SET_BY_USER, net/bridge/br_device.c). */
	snprintf(bridge, sizeof(bridge), "/sys/class/net/%.15s/bridge", interface);
	if (!access(bridge, F_OK))
		return nb_fail(error, NB_ERR_UNSUPPORTED, "set mtu", "set it on the bridge's ports",
			       "%.15s is a bridge: it would follow its ports no longer", interface);
	return check_mtu(interface, mtu, error);
}

/* Sysctls that keep a value until the next boot (Documentation/admin-guide/sysctl/kernel.rst). */
static const struct {
	const char *path;
	unsigned long value; /* 0: each */
} one_way[] = { { "/proc/sys/kernel/kexec_load_disabled", 1 },
		{ "/proc/sys/kernel/kexec_load_limit_panic", 0 },
		{ "/proc/sys/kernel/kexec_load_limit_reboot", 0 },
		{ "/proc/sys/kernel/modules_disabled", 1 },
		{ "/proc/sys/kernel/unprivileged_bpf_disabled", 1 },
		{ "/proc/sys/kernel/yama/ptrace_scope", 3 },
		{ "/proc/sys/net/netfilter/nf_hooks_lwtunnel", 1 },
		{ "/proc/sys/kernel/tainted", 0 },
		{ "/sys/kernel/security/lockdown", 0 } };

int nb_lasting_check_file(const char *path, const char *value, struct nb_error *error)
{
	unsigned long number = strtoul(value, NULL, 0);
	const char *name = strrchr(path, '/') + 1;
	char interface[IFNAMSIZ], now[32];

	for (size_t i = 0; i < sizeof(one_way) / sizeof(one_way[0]); i++)
		if (!strcmp(path, one_way[i].path) &&
		    (number == one_way[i].value || !one_way[i].value))
			return nb_fail(error, NB_ERR_UNSUPPORTED, "write file",
				       "leave this level out", "it stays until the next boot");
	if (!strcmp(name, "tcp_fastopen_key") && !value[strspn(value, "0-\n")])
		return nb_fail(error, NB_ERR_UNSUPPORTED, "write file",
			       "give the host a key before the campaign, or leave this level out",
			       "it has none, and would keep one of zeros, which everybody knows");
	if (!nb_link_of_path(path, interface))
		return 0;
	if (!strncmp(path, "/sys/", 5)) {
		if (!strcmp(name, "mtu"))
			return nb_lasting_check_mtu(interface, (uint32_t)number, error);
		if (!strcmp(name, "flags") && !(number & IFF_UP))
			return fail(interface, "addresses and routes", error);
	}
	if (strncmp(path, CONF, strlen(CONF)) != 0)
		return 0;
	if (!strcmp(name, "addr_gen_mode"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, "write file", "leave this level out",
			       "it makes addresses, or a stable_secret, that stay");
	if (!strcmp(name, "forwarding") && number && strcmp(interface, "default") != 0)
		return check_routers(error);
	snprintf(now, sizeof(now), "%lu\n", number);
	if (strcmp(name, "disable_ipv6") != 0 || !strcmp(interface, "default") ||
	    !is_other(interface, name, now))
		return 0;
	return nb_fail(error, NB_ERR_UNSUPPORTED, "keep the host as it is",
		       "leave this level out: `ip: 4` measures IPv4 alone",
		       "the kernel would take what IPv6 has been told of %s, and not bring it back",
		       interface);
}
