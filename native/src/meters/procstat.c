/* SPDX-License-Identifier: MIT */
/* /proc/stat (proc(5)): where the time of all CPUs went, in ticks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../job.h"
#include "../meter.h"
#include "cpu_times.h"

/* Behind those of each state and CPU. */
enum { CPUS = 2 * NB_CPU_STATES, PINNED_IDLE, PINNED_CPUS, PEER_IDLE, PEER_CPUS };

/* clang-format off */
#define STATE(at, name_, about_, bits) \
	[at] = { .name = name_, .about = "all CPUs " about_, .unit = NB_UNIT_TICKS, \
		 .flags = bits }, \
	[NB_CPU_STATES + (at)] = { .name = "cpu_" name_, .about = "each CPU " about_, \
				   .unit = NB_UNIT_TICKS, .per = NB_PER_CPU }

static const struct nb_field counters[] = {
	STATE(NB_CPU_USER, "user", "in user mode", NB_CPU_TIME),
	STATE(NB_CPU_NICE, "nice", "in user mode, niced", NB_CPU_TIME),
	STATE(NB_CPU_SYSTEM, "system", "in the kernel", NB_CPU_TIME),
	STATE(NB_CPU_IDLE, "idle", "idle", NB_IDLE_TIME),
	STATE(NB_CPU_IOWAIT, "iowait", "idle with I/O outstanding", NB_IDLE_TIME),
	STATE(NB_CPU_IRQ, "irq", "in hard interrupts", NB_CPU_TIME),
	STATE(NB_CPU_SOFTIRQ, "softirq", "in soft interrupts", NB_CPU_TIME),
	STATE(NB_CPU_STEAL, "steal", "held up by the hypervisor", NB_IDLE_TIME),
	[CPUS] = { "cpus", "CPUs that the file has a line of" },
	[PINNED_IDLE] = { "pinned_idle", "idle, iowait and steal of the CPUs that this side's "
			  "flows are pinned to", .unit = NB_UNIT_TICKS },
	[PINNED_CPUS] = { "pinned_cpus", "how many these are" },
	[PEER_IDLE] = { "peer_idle", "the same of the other side's CPUs, of this kernel",
			.unit = NB_UNIT_TICKS },
	[PEER_CPUS] = { "peer_cpus", "how many these are" },
};
/* clang-format on */

/* A container may have no /proc/stat, or an empty one. */
static int probe_stat(char *why, size_t room)
{
	char text[5];

	if (nb_read_file("/proc/stat", text, sizeof(text)) < 0)
		snprintf(why, room, "/proc/stat: %s", strerrordesc_np(errno));
	else if (strcmp(text, "cpu ") != 0)
		snprintf(why, room, "/proc/stat counts no CPU time");
	else
		return 0;
	return -1;
}

static int open_stat(struct nb_reading *reading, struct nb_error *error)
{
	struct nb_proc_text *stat = reading->state;

	if (nb_proc_open(stat, "/proc/stat"))
		return nb_fail_errno(error, "open meter",
				     "leave procstat out of meters:", "/proc/stat");
	return 0;
}

/* Time of some CPUs in which they did not work for this kernel. */
static uint64_t idle(const uint64_t *of_cpus, size_t cpus, const struct nb_cpus *which)
{
	static const int states[] = { NB_CPU_IDLE, NB_CPU_IOWAIT, NB_CPU_STEAL };
	uint64_t sum = 0;

	for (size_t i = 0; i < NB_LENGTH(states); i++) {
		uint64_t one = nb_cpus_sum(which, of_cpus + (size_t)states[i] * cpus, cpus);

		if (one == NB_MISSING)
			return one;
		sum += one;
	}
	return sum;
}

static void read_stat(struct nb_reading *reading, uint64_t *numbers)
{
	size_t cpus = nb_items(reading, &counters[NB_CPU_STATES]);
	uint64_t *of_cpus = numbers + NB_CPU_STATES, *sums = of_cpus + NB_CPU_STATES * cpus;
	const struct nb_cpus *own = &reading->job->cpus, *peer = &reading->job->peer_cpus;

	nb_cpu_times_read(reading->state, cpus, numbers);
	sums[0] = 0;
	for (size_t cpu = 0; cpu < cpus; cpu++)
		sums[0] += of_cpus[NB_CPU_IDLE * cpus + cpu] != NB_MISSING;
	sums[1] = idle(of_cpus, cpus, own);
	sums[2] = own->count;
	sums[3] = idle(of_cpus, cpus, peer);
	sums[4] = peer->count;
}

static void close_stat(struct nb_reading *reading)
{
	nb_proc_close(reading->state);
}

const struct nb_meter nb_meter_procstat = {
	.name = "procstat",
	.about = "where the time of all CPUs went (/proc/stat)",
	.flags = NB_HOST_WIDE,
	NB_TABLE(counters),
	.probe = probe_stat,
	.state_size = sizeof(struct nb_proc_text),
	.open = open_stat,
	.read = read_stat,
	.close = close_stat,
};
