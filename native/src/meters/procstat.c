/* SPDX-License-Identifier: MIT */
/* /proc/stat (proc(5)): where the time of all CPUs went, in ticks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../job.h"
#include "../meter.h"
#include "cpu_times.h"

enum { PINNED_BUSY = 2 * NB_CPU_STATES, PEER_BUSY }; /* behind those of each state and CPU */

static const struct nb_field counters[] = {
	{ .name = "user",
	  .about = "all CPUs in user mode",
	  .unit = NB_UNIT_TICKS,
	  .flags = NB_CPU_TIME },
	{ .name = "nice",
	  .about = "all CPUs in user mode, niced",
	  .unit = NB_UNIT_TICKS,
	  .flags = NB_CPU_TIME },
	{ .name = "system",
	  .about = "all CPUs in the kernel",
	  .unit = NB_UNIT_TICKS,
	  .flags = NB_CPU_TIME },
	{ .name = "idle", .about = "all CPUs idle", .unit = NB_UNIT_TICKS },
	{ .name = "iowait", .about = "all CPUs idle with I/O outstanding", .unit = NB_UNIT_TICKS },
	{ .name = "irq",
	  .about = "all CPUs in hard interrupts",
	  .unit = NB_UNIT_TICKS,
	  .flags = NB_CPU_TIME },
	{ .name = "softirq",
	  .about = "all CPUs in soft interrupts",
	  .unit = NB_UNIT_TICKS,
	  .flags = NB_CPU_TIME },
	{ .name = "steal", .about = "taken by the hypervisor", .unit = NB_UNIT_TICKS },
	{ .name = "cpu_user",
	  .about = "each CPU in user mode",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_nice",
	  .about = "each CPU in user mode, niced",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_system",
	  .about = "each CPU in the kernel",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_idle", .about = "each CPU idle", .unit = NB_UNIT_TICKS, .per = NB_PER_CPU },
	{ .name = "cpu_iowait",
	  .about = "each CPU idle with I/O outstanding",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_irq",
	  .about = "each CPU in hard interrupts",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_softirq",
	  .about = "each CPU in soft interrupts",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	{ .name = "cpu_steal",
	  .about = "taken from each CPU by the hypervisor",
	  .unit = NB_UNIT_TICKS,
	  .per = NB_PER_CPU },
	[PINNED_BUSY] = { .name = "pinned_busy",
			  .about = "user, system, irq and softirq of the CPUs that this side's "
				   "flows are pinned to",
			  .unit = NB_UNIT_TICKS },
	[PEER_BUSY] = { .name = "peer_busy",
			.about = "the same of the other side's CPUs, of this kernel",
			.unit = NB_UNIT_TICKS },
};

/* A container may have no /proc/stat, or an empty one. */
static int probe_stat(char *why, size_t room)
{
	char text[4];
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int number = errno;

	if (fd >= 0)
		close(fd);
	if (length < 0)
		snprintf(why, room, "/proc/stat: %s", strerrordesc_np(number));
	else if (length < (ssize_t)sizeof(text) || memcmp(text, "cpu ", sizeof(text)))
		snprintf(why, room, "/proc/stat counts no CPU time");
	else
		return 0;
	return -1;
}

static int open_stat(struct nb_reading *reading, struct nb_error *error)
{
	struct nb_proc_text *stat = calloc(1, sizeof(*stat));

	reading->state = stat;
	if (!stat || nb_proc_open(stat, "/proc/stat"))
		return nb_fail_errno(error, "open meter",
				     "leave procstat out of meters:", "/proc/stat");
	return 0;
}

/* Time of some CPUs, without that of niced processes, of which soakers are some. */
static uint64_t busy(const uint64_t *of_cpus, size_t cpus, const struct nb_cpus *which)
{
	static const int states[] = { NB_CPU_USER, NB_CPU_SYSTEM, NB_CPU_IRQ, NB_CPU_SOFTIRQ };
	uint64_t sum = 0;

	for (uint64_t c = 0; c < which->count; c++) {
		uint64_t cpu = which->each[c];

		if (cpu >= cpus || of_cpus[cpu] == NB_MISSING)
			return NB_MISSING;
		for (size_t i = 0; i < NB_LENGTH(states); i++)
			sum += of_cpus[(size_t)states[i] * cpus + cpu];
	}
	return which->count ? sum : NB_MISSING;
}

static void read_stat(struct nb_reading *reading, uint64_t *numbers)
{
	size_t cpus = nb_items(reading, &counters[NB_CPU_STATES]);
	uint64_t *of_cpus = numbers + NB_CPU_STATES, *sums = of_cpus + NB_CPU_STATES * cpus;

	nb_cpu_times_read(reading->state, cpus, numbers);
	sums[0] = busy(of_cpus, cpus, &reading->job->cpus);
	sums[1] = busy(of_cpus, cpus, &reading->job->peer_cpus);
}

static void close_stat(struct nb_reading *reading)
{
	if (reading->state)
		nb_proc_close(reading->state);
	free(reading->state);
}

const struct nb_meter nb_meter_procstat = {
	.name = "procstat",
	.about = "where the time of all CPUs went (/proc/stat)",
	.flags = NB_HOST_WIDE,
	.counters = counters,
	.counters_count = NB_LENGTH(counters),
	.probe = probe_stat,
	.open = open_stat,
	.read = read_stat,
	.close = close_stat,
};
