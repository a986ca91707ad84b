/* SPDX-License-Identifier: MIT */
/* Events of all CPUs, whatever runs there: perf_event_open(2) with pid -1. Each group is one read,
 * as PERF_FORMAT_GROUP lays it out: how many, the times for which the group was enabled and really
 * counted, the values. Where the CPU has fewer counters than events, the kernel lets groups take
 * turns, and the two times differ. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../meter.h"
#include "../perf_event.h"

enum { KERNEL = 1, USER = 2, BOTH = KERNEL | USER };
enum { CYCLES, MISSES, SOFTWARE, GROUPS };
enum { EVENTS = 13, FIRST_TIME = EVENTS, COUNTS = EVENTS + 4, HEAD = 3 };

static const struct {
	size_t first;
	size_t count;
	size_t times; /* the counter of its time enabled; the one of its time running follows. 0:
			 software events never take turns */
} groups[GROUPS] = {
	[CYCLES] = { 0, 4, FIRST_TIME },
	[MISSES] = { 4, 4, FIRST_TIME + 2 },
	[SOFTWARE] = { 8, 5, 0 },
};

static const struct {
	uint32_t type;
	uint64_t config;
	int where;
} events[EVENTS] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, KERNEL },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, USER },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, KERNEL },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, USER },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, KERNEL },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, USER },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, KERNEL },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, USER },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, BOTH },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, BOTH },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, BOTH },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, BOTH },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, BOTH },
};

/* clang-format off */
#define COUNT(at, name_, about_, unit_) \
	[at] = { .name = name_, .about = about_ ", all CPUs", .unit = unit_ }

static const struct nb_field counters[] = {
	COUNT(0, "kernel_cycles", "cycles in the kernel", NB_UNIT_NONE),
	COUNT(1, "user_cycles", "cycles in user space", NB_UNIT_NONE),
	COUNT(2, "kernel_instructions", "instructions in the kernel", NB_UNIT_NONE),
	COUNT(3, "user_instructions", "instructions in user space", NB_UNIT_NONE),
	COUNT(4, "kernel_cache_misses", "misses of the last cache in the kernel", NB_UNIT_NONE),
	COUNT(5, "user_cache_misses", "misses of the last cache in user space", NB_UNIT_NONE),
	COUNT(6, "kernel_branch_misses", "mispredicted branches in the kernel", NB_UNIT_NONE),
	COUNT(7, "user_branch_misses", "mispredicted branches in user space", NB_UNIT_NONE),
	COUNT(8, "cpu_clock_ns", "time in which events were counted (cpu-clock)", NB_UNIT_NS),
	COUNT(9, "task_clock_ns", "time in which events were counted (task-clock)", NB_UNIT_NS),
	COUNT(10, "context_switches", "context switches", NB_UNIT_NONE),
	COUNT(11, "migrations", "moves of a task to another CPU", NB_UNIT_NONE),
	COUNT(12, "page_faults", "page faults", NB_UNIT_NONE),
	COUNT(13, "cycles_enabled_ns", "time for which cycles were enabled", NB_UNIT_NS),
	COUNT(14, "cycles_running_ns", "time for which they were really counted", NB_UNIT_NS),
	COUNT(15, "misses_enabled_ns", "time for which misses were enabled", NB_UNIT_NS),
	COUNT(16, "misses_running_ns", "time for which they were really counted", NB_UNIT_NS),
};
/* clang-format on */

static int open_event(size_t event, int cpu, int leader)
{
	const struct perf_event_attr attr = {
		.type = events[event].type,
		.config = events[event].config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = leader < 0,
		.exclude_kernel = !(events[event].where & KERNEL),
		.exclude_hv = !(events[event].where & KERNEL),
		.exclude_user = !(events[event].where & USER),
	};

	return nb_perf_open(&attr, -1, cpu, leader);
}

/* What is open of a group on one CPU, which leaves errno as it is. */
static void close_group(int *files, size_t group)
{
	int number = errno;

	for (size_t i = groups[group].first + groups[group].count; i-- > groups[group].first;) {
		if (files[i] >= 0)
			close(files[i]);
		files[i] = -1;
	}
	errno = number;
}

/* The events of a group on one CPU: all of them, or none and -1 with errno. */
static int open_group(int *files, size_t group, int cpu)
{
	int *mine = files + groups[group].first;

	for (size_t i = 0; i < groups[group].count; i++) {
		mine[i] = open_event(groups[group].first + i, cpu, i ? mine[0] : -1);
		if (mine[i] < 0) {
			close_group(files, group);
			return -1;
		}
	}
	return ioctl(mine[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

/* On all CPUs but those that are offline, or on none: a sum over some would be no sum. */
static int open_everywhere(int *files, size_t group, size_t cpus)
{
	size_t opened = 0;

	for (size_t cpu = 0; cpu < cpus; cpu++) {
		if (!open_group(files + cpu * EVENTS, group, (int)cpu)) {
			opened++;
		} else if (errno != ENODEV) {
			for (size_t c = 0; c < cpu; c++)
				close_group(files + c * EVENTS, group);
			return -1;
		}
	}
	return opened ? 0 : -1;
}

static int open_perf(int *files, size_t cpus, char *why, size_t room)
{
	int opened = 0;

	for (size_t group = 0; group < GROUPS; group++)
		if (!open_everywhere(files, group, cpus))
			opened++;
		else
			nb_perf_explain(errno, why, room);
	return opened ? 0 : -1;
}

static int probe_group(size_t group, char *why, size_t room)
{
	int files[EVENTS], status;

	memset(files, 0xff, sizeof(files));
	status = open_group(files, group, 0);
	if (status)
		nb_perf_explain(errno, why, room);
	else
		close_group(files, group);
	return status;
}

static int probe_perf(char *why, size_t room)
{
	return probe_group(SOFTWARE, why, room);
}

static size_t group_of(size_t counter)
{
	size_t group = 0;

	while (counter - groups[group].first >= groups[group].count &&
	       (!groups[group].times || counter - groups[group].times >= 2))
		group++;
	return group;
}

/* Called for each counter in turn: each group is tried once. */
static void explain(size_t counter, char *why, size_t room)
{
	static char known[GROUPS][200];
	size_t group = group_of(counter);

	if (counter == groups[group].first)
		probe_group(group, known[group], sizeof(known[group]));
	snprintf(why, room, "%s", known[group]);
}

/* -1: a CPU that was there has gone. */
static int read_group(const int *files, size_t group, size_t cpu, uint64_t *numbers)
{
	uint64_t values[HEAD + EVENTS];
	size_t length = (HEAD + groups[group].count) * sizeof(*values);
	int leader = files[cpu * EVENTS + groups[group].first];

	if (leader < 0)
		return 0;
	if (read(leader, values, sizeof(values)) != (ssize_t)length)
		return -1;
	for (size_t i = 0; i < groups[group].count; i++)
		nb_add_number(&numbers[groups[group].first + i], values[HEAD + i]);
	if (groups[group].times) {
		nb_add_number(&numbers[groups[group].times], values[1]);
		nb_add_number(&numbers[groups[group].times + 1], values[2]);
	}
	return 0;
}

static void read_perf(struct nb_reading *reading, uint64_t *numbers)
{
	memset(numbers, 0xff, COUNTS * sizeof(*numbers)); /* NB_MISSING */
	for (size_t group = 0; group < GROUPS; group++) {
		int lost = 0;

		for (size_t cpu = 0; cpu < reading->cpus; cpu++)
			lost |= read_group(reading->files, group, cpu, numbers);
		for (size_t i = 0; lost && i < COUNTS; i++)
			if (group_of(i) == group)
				numbers[i] = NB_MISSING;
	}
}

const struct nb_meter nb_meter_perf = {
	.name = "perf",
	.about = "cycles, instructions, misses and switches on all CPUs (perf_event_open)",
	.flags = NB_HOST_WIDE | NB_BY_HELPER,
	NB_TABLE(counters),
	.probe = probe_perf,
	.explain = explain,
	.files_each = EVENTS,
	.open_files = open_perf,
	.read = read_perf,
};
