/* SPDX-License-Identifier: MIT */
/*
 * Interrupts, soft interrupts and packets. What the kernel counts as a whole (kernel_counts.c) has
 * NB_HOST_WIDE; what its network namespace counts (link_counts.c) is this side's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../job.h"
#include "../meter.h"
#include "kernel_counts.h"
#include "link_counts.h"

enum { OWN = 2 * NB_KERNEL_COUNTS, NAMESPACE = NB_LINK_COUNTS, LINK_INTERRUPTS, OWN_COUNTS };

#define PACKETS .unit = NB_UNIT_PACKETS
#define BYTES .unit = NB_UNIT_BYTES
#define OF_KERNEL .flags = NB_HOST_WIDE
#define OF_CPU .flags = NB_HOST_WIDE, .per = NB_PER_CPU

/* clang-format off */
#define KERNEL_COUNT(at, name_, about_, ...) \
	[at] = { .name = name_, .about = about_ ", all CPUs", OF_KERNEL, __VA_ARGS__ }, \
	[NB_KERNEL_COUNTS + (at)] = { .name = "cpu_" name_, .about = about_ ", each CPU", \
				      OF_CPU, __VA_ARGS__ }
#define OWN_COUNT(at, name_, about_, ...) \
	[OWN + (at)] = { .name = name_, .about = about_, __VA_ARGS__ }

static const struct nb_field counters[] = {
	KERNEL_COUNT(NB_INTERRUPTS, "interrupts", "interrupts, those of timers and other CPUs too"),
	KERNEL_COUNT(NB_SOFTIRQS, "softirqs", "soft interrupts of all kinds"),
	KERNEL_COUNT(NB_NET_RX, "net_rx", "soft interrupts NET_RX"),
	KERNEL_COUNT(NB_NET_TX, "net_tx", "soft interrupts NET_TX"),
	KERNEL_COUNT(NB_TIMER, "timer", "soft interrupts TIMER"),
	KERNEL_COUNT(NB_SCHED, "sched", "soft interrupts SCHED"),
	KERNEL_COUNT(NB_RCU, "rcu", "soft interrupts RCU"),
	KERNEL_COUNT(NB_PROCESSED, "processed",
		 "packets that NET_RX handled (softnet_stat)", PACKETS),
	KERNEL_COUNT(NB_DROPPED, "dropped",
		 "packets that found the queue full (softnet_stat)", PACKETS),
	KERNEL_COUNT(NB_SQUEEZED, "squeezed", "ends of NET_RX with work left (time_squeeze)"),
	KERNEL_COUNT(NB_RECEIVED_RPS, "received_rps", "wake-ups by another CPU (softnet_stat)"),
	OWN_COUNT(NB_LINK_RX_BYTES, "link_rx_bytes",
		 "bytes that the data interface received", BYTES),
	OWN_COUNT(NB_LINK_RX_PACKETS, "link_rx_packets", "packets that it received", PACKETS),
	OWN_COUNT(NB_LINK_TX_BYTES, "link_tx_bytes", "bytes that it sent", BYTES),
	OWN_COUNT(NB_LINK_TX_PACKETS, "link_tx_packets", "packets that it sent", PACKETS),
	OWN_COUNT(NB_IP_OUT_REQUESTS, "ip_out_requests",
		 "packets that IP sent, before segmentation (Ip OutRequests)", PACKETS),
	OWN_COUNT(NB_IP_IN_RECEIVES, "ip_in_receives",
		 "packets that IP received, after GRO (Ip InReceives)", PACKETS),
	OWN_COUNT(NB_IP_IN_DELIVERS, "ip_in_delivers",
		 "packets that IP delivered (Ip InDelivers)", PACKETS),
	OWN_COUNT(NB_IP_OUT_OCTETS, "ip_out_octets", "bytes that IP sent (IpExt OutOctets)", BYTES),
	OWN_COUNT(NB_IP_IN_OCTETS, "ip_in_octets",
		 "bytes that IP received (IpExt InOctets)", BYTES),
	OWN_COUNT(NB_IP_IN_NO_ECT, "ip_in_no_ect",
		 "packets received, before GRO, without ECN (IpExt InNoECTPkts)", PACKETS),
	OWN_COUNT(NB_IP_IN_ECT, "ip_in_ect",
		 "and with ECN (IpExt InECT0Pkts, InECT1Pkts, InCEPkts)", PACKETS),
	OWN_COUNT(NB_TCP_OUT_SEGMENTS, "tcp_out_segments",
		 "segments that TCP sent (Tcp OutSegs)", PACKETS),
	OWN_COUNT(NB_TCP_IN_SEGMENTS, "tcp_in_segments",
		 "what TCP received, after GRO (Tcp InSegs)", PACKETS),
	OWN_COUNT(NAMESPACE, "namespace", "number of the network namespace, which does not change"),
	OWN_COUNT(LINK_INTERRUPTS, "link_interrupts", "interrupts of the data interface's device"),
};
/* clang-format on */

struct state {
	struct nb_kernel_counts kernel;
	struct nb_link_counts link;
	uint64_t namespace;
};

static int probe_softirq(char *why, size_t room)
{
	static const char *const files[] = { "/proc/interrupts", "/proc/softirqs",
					     "/proc/net/softnet_stat", "/proc/net/snmp" };

	for (size_t i = 0; i < NB_LENGTH(files); i++)
		if (access(files[i], R_OK)) {
			snprintf(why, room, "%s cannot be read", files[i]);
			return -1;
		}
	return 0;
}

static int open_softirq(struct nb_reading *reading, struct nb_error *error)
{
	const struct nb_job *job = reading->job;
	struct state *state = reading->state;
	struct stat place;
	int status;

	state->link.dev.fd = state->link.snmp.fd = state->link.more.fd = -1;
	state->kernel.interrupts.fd = state->kernel.softirqs.fd = state->kernel.softnet.fd = -1;
	state->namespace = stat("/proc/self/ns/net", &place) ? NB_MISSING : place.st_ino;
	state->kernel.irqs_count = nb_link_irqs(job->interface, state->kernel.irqs, NB_LINK_IRQS);
	status = nb_kernel_counts_open(&state->kernel, reading->cpus, error);
	return status ? status
		      : nb_link_counts_open(&state->link, job->interface,
					    strchr(job->address, ':') != NULL, error);
}

static void read_softirq(struct nb_reading *reading, uint64_t *numbers)
{
	struct state *state = reading->state;
	size_t kernel = reading->without_host_wide ? 0 : NB_KERNEL_COUNTS * (1 + reading->cpus);
	uint64_t *own = numbers + kernel;

	for (size_t i = 0; i < kernel; i++)
		numbers[i] = NB_MISSING;
	nb_link_counts_read(&state->link, own);
	own[NAMESPACE] = state->namespace;
	nb_kernel_counts_read(&state->kernel, kernel ? numbers : NULL, &own[LINK_INTERRUPTS]);
}

static void close_softirq(struct nb_reading *reading)
{
	struct state *state = reading->state;

	nb_kernel_counts_close(&state->kernel);
	nb_link_counts_close(&state->link);
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
