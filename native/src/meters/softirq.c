/* SPDX-License-Identifier: MIT */
/* Interrupts, soft interrupts and packets.
 *
 * What the kernel counts as a whole has NB_HOST_WIDE. /proc/interrupts and /proc/softirqs (proc(5))
 * are tables: the first line names the CPU of each column. /proc/net/softnet_stat has a line a CPU
 * in hexadecimal (softnet_seq_show(), net/core/net-procfs.c): processed, dropped, time_squeeze,
 * ..., received_rps (10th), and the CPU (13th).
 *
 * What its network namespace counts is this side's own: /proc/net/dev, /proc/net/snmp,
 * /proc/net/netstat and /proc/net/snmp6 (proc_net(5), and the kernel's
 * Documentation/networking/snmp_counter.rst). A packet of IP here is what the stack handles at
 * once: with segmentation offload (GSO) or after GRO it is several on the wire. The counters of ECN
 * marks (IpExt In*Pkts) count those on the wire. */
#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../job.h"
#include "../meter.h"
#include "../proc_text.h"

enum {
	INTERRUPTS,
	SOFTIRQS,
	NET_RX,
	NET_TX,
	TIMER,
	SCHED,
	RCU,
	PROCESSED,
	DROPPED,
	SQUEEZED,
	RECEIVED_RPS,
	KERNEL_COUNTS
};

enum {
	LINK_RX_BYTES,
	LINK_RX_PACKETS,
	LINK_TX_BYTES,
	LINK_TX_PACKETS,
	IP_OUT_REQUESTS,
	IP_IN_RECEIVES,
	IP_IN_DELIVERS,
	IP_OUT_OCTETS,
	IP_IN_OCTETS,
	IP_IN_NO_ECT,
	IP_IN_ECT,
	TCP_OUT_SEGMENTS,
	TCP_IN_SEGMENTS,
	NAMESPACE,
	LINK_INTERRUPTS,
};

enum { OWN = 2 * KERNEL_COUNTS, LINK_COUNTS = NAMESPACE, LINK_IRQS = 512 };
enum { SOFTNET_WORDS = 13, SOFTNET_RPS = 9, SOFTNET_CPU = 12 };

#define PACKETS .unit = NB_UNIT_PACKETS
#define BYTES .unit = NB_UNIT_BYTES
#define OF_KERNEL .flags = NB_HOST_WIDE
#define OF_CPU .flags = NB_HOST_WIDE, .per = NB_PER_CPU

/* clang-format off */
#define KERNEL_COUNT(at, name_, about_, ...) \
	[at] = { .name = name_, .about = about_ ", all CPUs", OF_KERNEL, __VA_ARGS__ }, \
	[KERNEL_COUNTS + (at)] = { .name = "cpu_" name_, .about = about_ ", each CPU", \
				   OF_CPU, __VA_ARGS__ }
#define OWN_COUNT(at, name_, about_, ...) \
	[OWN + (at)] = { .name = name_, .about = about_, __VA_ARGS__ }

static const struct nb_field counters[] = {
	KERNEL_COUNT(INTERRUPTS, "interrupts", "interrupts, those of timers and other CPUs too"),
	KERNEL_COUNT(SOFTIRQS, "softirqs", "soft interrupts of all kinds"),
	KERNEL_COUNT(NET_RX, "net_rx", "soft interrupts NET_RX"),
	KERNEL_COUNT(NET_TX, "net_tx", "soft interrupts NET_TX"),
	KERNEL_COUNT(TIMER, "timer", "soft interrupts TIMER"),
	KERNEL_COUNT(SCHED, "sched", "soft interrupts SCHED"),
	KERNEL_COUNT(RCU, "rcu", "soft interrupts RCU"),
	KERNEL_COUNT(PROCESSED, "processed",
		 "packets that NET_RX handled (softnet_stat)", PACKETS),
	KERNEL_COUNT(DROPPED, "dropped",
		 "packets that found the queue full (softnet_stat)", PACKETS),
	KERNEL_COUNT(SQUEEZED, "squeezed", "ends of NET_RX with work left (time_squeeze)"),
	KERNEL_COUNT(RECEIVED_RPS, "received_rps", "wake-ups by another CPU (softnet_stat)"),
	OWN_COUNT(LINK_RX_BYTES, "link_rx_bytes",
		 "bytes that the data interface received", BYTES),
	OWN_COUNT(LINK_RX_PACKETS, "link_rx_packets", "packets that it received", PACKETS),
	OWN_COUNT(LINK_TX_BYTES, "link_tx_bytes", "bytes that it sent", BYTES),
	OWN_COUNT(LINK_TX_PACKETS, "link_tx_packets", "packets that it sent", PACKETS),
	OWN_COUNT(IP_OUT_REQUESTS, "ip_out_requests",
		 "packets that IP sent, before segmentation (Ip OutRequests)", PACKETS),
	OWN_COUNT(IP_IN_RECEIVES, "ip_in_receives",
		 "packets that IP received, after GRO (Ip InReceives)", PACKETS),
	OWN_COUNT(IP_IN_DELIVERS, "ip_in_delivers",
		 "packets that IP delivered (Ip InDelivers)", PACKETS),
	OWN_COUNT(IP_OUT_OCTETS, "ip_out_octets", "bytes that IP sent (IpExt OutOctets)", BYTES),
	OWN_COUNT(IP_IN_OCTETS, "ip_in_octets",
		 "bytes that IP received (IpExt InOctets)", BYTES),
	OWN_COUNT(IP_IN_NO_ECT, "ip_in_no_ect",
		 "packets received, before GRO, without ECN (IpExt InNoECTPkts)", PACKETS),
	OWN_COUNT(IP_IN_ECT, "ip_in_ect",
		 "and with ECN (IpExt InECT0Pkts, InECT1Pkts, InCEPkts)", PACKETS),
	OWN_COUNT(TCP_OUT_SEGMENTS, "tcp_out_segments",
		 "segments that TCP sent (Tcp OutSegs)", PACKETS),
	OWN_COUNT(TCP_IN_SEGMENTS, "tcp_in_segments",
		 "what TCP received, after GRO (Tcp InSegs)", PACKETS),
	OWN_COUNT(NAMESPACE, "namespace", "number of the network namespace, which does not change"),
	OWN_COUNT(LINK_INTERRUPTS, "link_interrupts", "interrupts of the data interface's device"),
};
/* clang-format on */

enum { OF_INTERRUPTS, OF_SOFTIRQS, OF_SOFTNET, OF_SNMP, OF_DEV, OF_MORE, FILES };

struct state {
	struct nb_proc_text files[FILES];
	const char *interface; /* "": none is counted */
	int ip6;	       /* count packets of IPv6 */
	size_t cpus;
	size_t *columns;	      /* the CPU of each column of a table */
	unsigned int irqs[LINK_IRQS]; /* of the data link's device */
	size_t irqs_count;
	uint64_t namespace;
	uint64_t link_interrupts;
	uint64_t *kernel; /* while it is read; NULL: only what is this side's own */
};

static const char *const paths[FILES] = {
	[OF_INTERRUPTS] = "/proc/interrupts",
	[OF_SOFTIRQS] = "/proc/softirqs",
	[OF_SOFTNET] = "/proc/net/softnet_stat",
	[OF_SNMP] = "/proc/net/snmp",
	[OF_DEV] = "/proc/net/dev",
	[OF_MORE] = "/proc/net/netstat",
};

static int probe_softirq(char *why, size_t room)
{
	for (size_t i = 0; i <= OF_SNMP; i++)
		if (access(paths[i], R_OK)) {
			snprintf(why, room, "%s cannot be read", paths[i]);
			return -1;
		}
	return 0;
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
static size_t find_irqs(const char *interface, unsigned int *irqs)
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
		while (folder && count < LINK_IRQS && (entry = readdir(folder)))
			if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
				irqs[count++] = (unsigned int)strtoul(entry->d_name, NULL, 10);
		if (folder)
			closedir(folder);
	}
	return count;
}

static int open_softirq(struct nb_reading *reading, struct nb_error *error)
{
	const struct nb_job *job = reading->job;
	struct state *state = reading->state;
	struct stat place;

	for (size_t i = 0; i < FILES; i++)
		state->files[i].fd = -1;
	state->interface = job->interface;
	state->ip6 = strchr(job->address, ':') != NULL;
	state->namespace = stat("/proc/self/ns/net", &place) ? NB_MISSING : place.st_ino;
	state->irqs_count = find_irqs(job->interface, state->irqs);
	state->cpus = reading->cpus;
	state->columns = calloc(reading->cpus, sizeof(*state->columns));
	if (!state->columns)
		return nb_fail_memory(error, "a meter");
	for (size_t i = 0; i < FILES; i++) {
		const char *path = i == OF_MORE && state->ip6 ? "/proc/net/snmp6" : paths[i];

		if ((i != OF_DEV || job->interface[0]) && nb_proc_open(&state->files[i], path))
			return nb_fail_errno(error, "open meter",
					     "leave softirq out of meters:", "%s", path);
	}
	return 0;
}

static void add_of_cpu(const struct state *state, size_t count, size_t cpu, uint64_t number)
{
	if (!state->kernel || cpu >= state->cpus)
		return;
	nb_add_number(&state->kernel[count], number);
	nb_add_number(&state->kernel[KERNEL_COUNTS + count * state->cpus + cpu], number);
}

/* "   CPU0   CPU3": which CPUs the columns are of. How many. */
static size_t read_columns(struct state *state, char *line)
{
	char *end = strchr(line, '\n');
	uint64_t cpu;
	size_t columns = 0;

	for (; columns < state->cpus; columns++) {
		line = strstr(line, "CPU");
		if (!line || line > end)
			break;
		line += strlen("CPU");
		if (!nb_proc_number(&line, 10, &cpu))
			break;
		state->columns[columns] = (size_t)cpu;
	}
	return columns;
}

/* The count of a line of /proc/softirqs beside that of all. */
static int softirq_of(const char *name)
{
	static const struct {
		const char *name;
		int count;
	} kinds[] = {
		{ "NET_RX:", NET_RX }, { "NET_TX:", NET_TX }, { "TIMER:", TIMER },
		{ "SCHED:", SCHED },   { "RCU:", RCU },
	};

	for (size_t i = 0; i < NB_LENGTH(kinds); i++)
		if (!strncmp(name, kinds[i].name, strlen(kinds[i].name)))
			return kinds[i].count;
	return KERNEL_COUNTS;
}

static int is_of_link(const struct state *state, char *name)
{
	uint64_t irq;

	if (!state->irqs_count || !nb_proc_number(&name, 10, &irq) || *name != ':')
		return 0;
	for (size_t i = 0; i < state->irqs_count; i++)
		if (state->irqs[i] == irq)
			return 1;
	return 0;
}

/* /proc/interrupts or /proc/softirqs: `all` is the sum of its lines. */
static void read_table(struct state *state, char *line, size_t all)
{
	size_t columns = line ? read_columns(state, line) : 0;

	while (line && (line = nb_proc_next_line(line))) {
		char *name = line + strspn(line, " "), *at = name + strcspn(name, ":\n");
		int of_link = all == INTERRUPTS && is_of_link(state, name);
		int count = all == SOFTIRQS ? softirq_of(name) : KERNEL_COUNTS;
		uint64_t number;

		/* These have one number for all CPUs, and count no interrupt that was taken. */
		if (*at++ != ':' || !strncmp(name, "ERR:", 4) || !strncmp(name, "MIS:", 4) ||
		    !strncmp(name, "Err:", 4))
			continue;
		for (size_t i = 0; i < columns && nb_proc_number(&at, 10, &number); i++) {
			add_of_cpu(state, all, state->columns[i], number);
			if (count != KERNEL_COUNTS)
				add_of_cpu(state, (size_t)count, state->columns[i], number);
			if (of_link)
				nb_add_number(&state->link_interrupts, number);
		}
	}
}

static void read_softnet(const struct state *state, char *line)
{
	for (; line; line = nb_proc_next_line(line)) {
		uint64_t words[SOFTNET_WORDS] = { 0 };
		char *at = line;
		size_t count = 0;

		while (count < SOFTNET_WORDS && nb_proc_number(&at, 16, &words[count]))
			count++;
		if (count < SOFTNET_WORDS)
			return;
		add_of_cpu(state, PROCESSED, words[SOFTNET_CPU], words[0]);
		add_of_cpu(state, DROPPED, words[SOFTNET_CPU], words[1]);
		add_of_cpu(state, SQUEEZED, words[SOFTNET_CPU], words[2]);
		add_of_cpu(state, RECEIVED_RPS, words[SOFTNET_CPU], words[SOFTNET_RPS]);
	}
}

/* Columns of groups of snmp and netstat, and lines of snmp6. Several may add to one count. */
static const struct {
	const char *group, *name;
	int count;
} places[] = {
	{ "Ip", "OutRequests", IP_OUT_REQUESTS }, { "Ip", "InReceives", IP_IN_RECEIVES },
	{ "Ip", "InDelivers", IP_IN_DELIVERS },	  { "Tcp", "OutSegs", TCP_OUT_SEGMENTS },
	{ "Tcp", "InSegs", TCP_IN_SEGMENTS },	  { "IpExt", "OutOctets", IP_OUT_OCTETS },
	{ "IpExt", "InOctets", IP_IN_OCTETS },	  { "IpExt", "InNoECTPkts", IP_IN_NO_ECT },
	{ "IpExt", "InECT1Pkts", IP_IN_ECT },	  { "IpExt", "InECT0Pkts", IP_IN_ECT },
	{ "IpExt", "InCEPkts", IP_IN_ECT },
};

/* Whether a text begins with this word, and something else follows. */
static int is_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(text, word, length) && strchr(" \t\n:", text[length]);
}

static void add_named(const char *group, const char *name, uint64_t number, uint64_t *numbers)
{
	for (size_t i = 0; i < NB_LENGTH(places); i++)
		if (!strcmp(group, places[i].group) && is_word(name, places[i].name))
			nb_add_number(&numbers[places[i].count], number);
}

/* "Ip: Forwarding ..." is followed by "Ip: 1 ...": a name, and its number below it. */
static void read_group(char *text, const char *group, uint64_t *numbers)
{
	char *name = text, *at;
	uint64_t number;

	while (name && !is_word(name, group))
		name = nb_proc_next_line(name);
	at = name ? nb_proc_next_line(name) : NULL;
	if (!at)
		return;
	name += strcspn(name, " \n");
	at += strcspn(at, " \n");
	for (; *name == ' '; name += strcspn(name, " \n")) {
		name++;
		at += strspn(at, " -"); /* Tcp MaxConn is -1 */
		if (!nb_proc_number(&at, 10, &number))
			return;
		add_named(group, name, number, numbers);
	}
}

/* Lines "Ip6InReceives   123": named as those of IPv4. */
static void read_ip6(char *line, uint64_t *numbers)
{
	for (; line && !strncmp(line, "Ip6", 3); line = nb_proc_next_line(line)) {
		char *name = line + strlen("Ip6"), *at = name + strcspn(name, " \t\n");
		uint64_t number;

		if (!nb_proc_number(&at, 10, &number))
			continue;
		add_named("Ip", name, number, numbers);
		add_named("IpExt", name, number, numbers);
	}
}

static void read_interface(char *line, const char *interface, uint64_t *numbers)
{
	enum { RX_BYTES, RX_PACKETS, TX_BYTES = 8, TX_PACKETS, WORDS };
	uint64_t words[WORDS];
	size_t count = 0;
	char *at;

	while (line && !is_word(line + strspn(line, " "), interface))
		line = nb_proc_next_line(line);
	at = line ? strchr(line, ':') : NULL;
	if (!at)
		return;
	for (at++; count < WORDS && nb_proc_number(&at, 10, &words[count]);)
		count++;
	if (count < WORDS)
		return;
	numbers[LINK_RX_BYTES] = words[RX_BYTES];
	numbers[LINK_RX_PACKETS] = words[RX_PACKETS];
	numbers[LINK_TX_BYTES] = words[TX_BYTES];
	numbers[LINK_TX_PACKETS] = words[TX_PACKETS];
}

static void read_own(struct state *state, uint64_t *numbers)
{
	char *dev = nb_proc_read(&state->files[OF_DEV]);
	char *snmp = nb_proc_read(&state->files[OF_SNMP]);
	char *more = nb_proc_read(&state->files[OF_MORE]);

	memset(numbers, 0xff, LINK_COUNTS * sizeof(*numbers)); /* NB_MISSING */
	read_interface(dev, state->interface, numbers);
	read_group(snmp, "Tcp", numbers);
	if (state->ip6) {
		read_ip6(more, numbers);
		return;
	}
	read_group(snmp, "Ip", numbers);
	read_group(more, "IpExt", numbers);
}

static void read_softirq(struct nb_reading *reading, uint64_t *numbers)
{
	struct state *state = reading->state;
	size_t kernel = reading->without_host_wide ? 0 : KERNEL_COUNTS * (1 + reading->cpus);
	uint64_t *own = numbers + kernel;

	memset(numbers, 0xff, kernel * sizeof(*numbers)); /* NB_MISSING */
	read_own(state, own);
	state->kernel = kernel ? numbers : NULL;
	state->link_interrupts = NB_MISSING;
	if (kernel || state->irqs_count)
		read_table(state, nb_proc_read(&state->files[OF_INTERRUPTS]), INTERRUPTS);
	if (kernel) {
		read_table(state, nb_proc_read(&state->files[OF_SOFTIRQS]), SOFTIRQS);
		read_softnet(state, nb_proc_read(&state->files[OF_SOFTNET]));
	}
	own[NAMESPACE] = state->namespace;
	own[LINK_INTERRUPTS] = state->link_interrupts;
}

static void close_softirq(struct nb_reading *reading)
{
	struct state *state = reading->state;

	for (size_t i = 0; i < FILES; i++)
		nb_proc_close(&state->files[i]);
	free(state->columns);
}

const struct nb_meter nb_meter_softirq = {
	.name = "softirq",
	.about = "interrupts, soft interrupts, and packets of the data interface",
	NB_TABLE(counters),
	.probe = probe_softirq,
	.state_size = sizeof(struct state),
	.open = open_softirq,
	.read = read_softirq,
	.close = close_softirq,
};
