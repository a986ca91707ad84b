/* SPDX-License-Identifier: MIT */
/*
 * /proc/net/dev, /proc/net/snmp, /proc/net/netstat and /proc/net/snmp6 (proc_net(5), and the
 * kernel's Documentation/networking/snmp_counter.rst). A packet of IP here is what the stack
 * handles at once: with segmentation offload (GSO) or after GRO it is several on the wire. The
 * counters of ECN marks (IpExt In*Pkts) count those on the wire.
 */
#include "link_counts.h"

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../field.h"

/* A column of a group of snmp or netstat, or a line of snmp6. Several may add to one count. */
struct place {
	const char *group;
	const char *name;
	int count;
};

static const struct place of_ip[] = {
	{ "Ip:", "OutRequests", NB_IP_OUT_REQUESTS },
	{ "Ip:", "InReceives", NB_IP_IN_RECEIVES },
	{ "Ip:", "InDelivers", NB_IP_IN_DELIVERS },
};
static const struct place of_tcp[] = {
	{ "Tcp:", "OutSegs", NB_TCP_OUT_SEGMENTS },
	{ "Tcp:", "InSegs", NB_TCP_IN_SEGMENTS },
};
static const struct place of_ip_ext[] = {
	{ "IpExt:", "OutOctets", NB_IP_OUT_OCTETS },  { "IpExt:", "InOctets", NB_IP_IN_OCTETS },
	{ "IpExt:", "InNoECTPkts", NB_IP_IN_NO_ECT }, { "IpExt:", "InECT1Pkts", NB_IP_IN_ECT },
	{ "IpExt:", "InECT0Pkts", NB_IP_IN_ECT },     { "IpExt:", "InCEPkts", NB_IP_IN_ECT },
};
static const struct place of_ip6[] = {
	{ "", "Ip6OutRequests", NB_IP_OUT_REQUESTS }, { "", "Ip6InReceives", NB_IP_IN_RECEIVES },
	{ "", "Ip6InDelivers", NB_IP_IN_DELIVERS },   { "", "Ip6OutOctets", NB_IP_OUT_OCTETS },
	{ "", "Ip6InOctets", NB_IP_IN_OCTETS },	      { "", "Ip6InNoECTPkts", NB_IP_IN_NO_ECT },
	{ "", "Ip6InECT1Pkts", NB_IP_IN_ECT },	      { "", "Ip6InECT0Pkts", NB_IP_IN_ECT },
	{ "", "Ip6InCEPkts", NB_IP_IN_ECT },
};

int nb_link_counts_open(struct nb_link_counts *counts, const char *interface, int ip6,
			struct nb_error *error)
{
	static const char REMEDY[] = "leave softirq out of meters:";
	const char *more = ip6 ? "/proc/net/snmp6" : "/proc/net/netstat";

	counts->interface = interface;
	counts->ip6 = ip6;
	if (interface[0] && nb_proc_open(&counts->dev, "/proc/net/dev"))
		return nb_fail_errno(error, "open meter", REMEDY, "/proc/net/dev");
	if (nb_proc_open(&counts->snmp, "/proc/net/snmp"))
		return nb_fail_errno(error, "open meter", REMEDY, "/proc/net/snmp");
	if (nb_proc_open(&counts->more, more))
		return nb_fail_errno(error, "open meter", REMEDY, "%s", more);
	return 0;
}

/* Whether a text begins with this word, and something else follows. */
static int is_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(text, word, length) && strchr(" \t\n:", text[length]);
}

/* "Ip: Forwarding ..." is followed by "Ip: 1 ...": a name, and its number below it. */
static void read_group(char *text, const struct place *places, size_t count, uint64_t *numbers)
{
	size_t length = strlen(places[0].group), left = count;
	char *name = text, *at;

	while (name && strncmp(name, places[0].group, length) != 0)
		name = nb_proc_next_line(name);
	at = name ? nb_proc_next_line(name) : NULL;
	if (!at)
		return;
	for (name += length, at += length; *name == ' ' && left; name += strcspn(name, " \n")) {
		uint64_t number;

		name++;
		at += strspn(at, " -"); /* Tcp MaxConn is -1 */
		if (!nb_proc_number(&at, 10, &number))
			return;
		for (size_t i = 0; i < count; i++)
			if (is_word(name, places[i].name)) {
				nb_add_number(&numbers[places[i].count], number);
				left--;
			}
	}
}

static void read_ip6(char *line, uint64_t *numbers)
{
	for (; line && !strncmp(line, "Ip6", 3); line = nb_proc_next_line(line))
		for (size_t i = 0; i < NB_LENGTH(of_ip6); i++) {
			char *at = line + strlen(of_ip6[i].name);
			uint64_t number;

			if (is_word(line, of_ip6[i].name) && nb_proc_number(&at, 10, &number))
				nb_add_number(&numbers[of_ip6[i].count], number);
		}
}

static void read_interface(char *line, const char *interface, uint64_t *numbers)
{
	enum { RX_BYTES, RX_PACKETS, TX_BYTES = 8, TX_PACKETS, WORDS };
	uint64_t words[WORDS];
	size_t count = 0;

	for (; line; line = nb_proc_next_line(line)) {
		char *at = line + strspn(line, " ");

		if (!is_word(at, interface) || at[strlen(interface)] != ':')
			continue;
		at += strlen(interface) + 1;
		while (count < WORDS && nb_proc_number(&at, 10, &words[count]))
			count++;
		if (count < WORDS)
			return;
		numbers[NB_LINK_RX_BYTES] = words[RX_BYTES];
		numbers[NB_LINK_RX_PACKETS] = words[RX_PACKETS];
		numbers[NB_LINK_TX_BYTES] = words[TX_BYTES];
		numbers[NB_LINK_TX_PACKETS] = words[TX_PACKETS];
		return;
	}
}

void nb_link_counts_read(struct nb_link_counts *counts, uint64_t *numbers)
{
	char *dev = nb_proc_read(&counts->dev), *snmp = nb_proc_read(&counts->snmp);
	char *more = nb_proc_read(&counts->more);

	for (size_t i = 0; i < NB_LINK_COUNTS; i++)
		numbers[i] = NB_MISSING;
	if (dev)
		read_interface(dev, counts->interface, numbers);
	if (snmp)
		read_group(snmp, of_tcp, NB_LENGTH(of_tcp), numbers);
	if (snmp && !counts->ip6)
		read_group(snmp, of_ip, NB_LENGTH(of_ip), numbers);
	if (more && counts->ip6)
		read_ip6(more, numbers);
	else if (more)
		read_group(more, of_ip_ext, NB_LENGTH(of_ip_ext), numbers);
}

void nb_link_counts_close(struct nb_link_counts *counts)
{
	nb_proc_close(&counts->dev);
	nb_proc_close(&counts->snmp);
	nb_proc_close(&counts->more);
}

/* A /sys of another network namespace may have an interface of the same name. */
static int is_of_this_namespace(const char *interface)
{
	char path[128], index[16];

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", interface);
	return nb_read_file(path, index, sizeof(index)) > 0 &&
	       strtoul(index, NULL, 10) == if_nametoindex(interface);
}

/* Message-signalled interrupts of a device; a virtio device has those of the PCI device behind it.
 */
size_t nb_link_irqs(const char *interface, unsigned int *irqs, size_t room)
{
	static const char *const places[] = { "msi_irqs", "../msi_irqs" };
	size_t count = 0;

	if (!interface[0] || !is_of_this_namespace(interface))
		return 0;
	for (size_t i = 0; i < NB_LENGTH(places) && !count; i++) {
		struct dirent *entry;
		char path[128];
		DIR *folder;

		snprintf(path, sizeof(path), "/sys/class/net/%s/device/%s", interface, places[i]);
		folder = opendir(path);
		while (folder && count < room && (entry = readdir(folder)))
			if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
				irqs[count++] = (unsigned int)strtoul(entry->d_name, NULL, 10);
		if (folder)
			closedir(folder);
	}
	return count;
}
