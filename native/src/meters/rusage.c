/* SPDX-License-Identifier: MIT */
/* What the process that moves the data used: this worker, or the external tool. getrusage(2),
 * clock_getcpuclockid(3), proc(5). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../clock.h"
#include "../meter.h"
#include "../proc_text.h"
#include "../tool.h"

enum { CPU, USER, SYSTEM, MINOR, MAJOR, VOLUNTARY, INVOLUNTARY };

static const struct nb_field counters[] = {
	[CPU] = { "cpu_ns", "CPU time of the process (CLOCK_PROCESS_CPUTIME_ID)",
		  .unit = NB_UNIT_NS, .flags = NB_CPU_TIME },
	[USER] = { "user_us", "its user time", .unit = NB_UNIT_US },
	[SYSTEM] = { "system_us", "its system time", .unit = NB_UNIT_US },
	[MINOR] = { "minor_faults", "page faults without I/O" },
	[MAJOR] = { "major_faults", "page faults with I/O" },
	[VOLUNTARY] = { "voluntary_switches", "context switches while it waited" },
	[INVOLUNTARY] = { "involuntary_switches", "context switches while it wanted to run" },
};

static uint64_t micros(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void from_usage(const struct rusage *usage, uint64_t *numbers)
{
	numbers[USER] = micros(usage->ru_utime);
	numbers[SYSTEM] = micros(usage->ru_stime);
	numbers[MINOR] = (uint64_t)usage->ru_minflt;
	numbers[MAJOR] = (uint64_t)usage->ru_majflt;
	numbers[VOLUNTARY] = (uint64_t)usage->ru_nvcsw;
	numbers[INVOLUNTARY] = (uint64_t)usage->ru_nivcsw;
}

/* Fields 10, 12, 14 and 15 of /proc/PID/stat: faults, and times in ticks. */
static void from_proc(pid_t pid, uint64_t *numbers)
{
	unsigned long long minor, major, user, kernel,
		tick = (unsigned long long)(1000000 / sysconf(_SC_CLK_TCK));
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	nb_read_file(path, text, sizeof(text));
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu",
			  &minor, &major, &user, &kernel) != 4)
		return;
	numbers[MINOR] = minor;
	numbers[MAJOR] = major;
	numbers[USER] = user * tick;
	numbers[SYSTEM] = kernel * tick;
}

static void read_tool(const struct nb_tool *tool, uint64_t *numbers)
{
	clockid_t clock;

	memset(numbers, 0xff, sizeof(*numbers) * NB_LENGTH(counters)); /* NB_MISSING */
	if (!tool->pid) {
		memset(numbers, 0,
		       sizeof(*numbers) *
			       NB_LENGTH(counters)); /* not started: it has used nothing */
	} else if (tool->exited) {
		from_usage(&tool->usage, numbers);
		numbers[CPU] = (numbers[USER] + numbers[SYSTEM]) * 1000;
	} else {
		from_proc(tool->pid, numbers);
		if (!clock_getcpuclockid(tool->pid, &clock))
			numbers[CPU] = nb_clock(clock);
	}
}

static void read_usage(struct nb_reading *reading, uint64_t *numbers)
{
	struct rusage usage;

	if (reading->tool) {
		read_tool(reading->tool, numbers);
		return;
	}
	getrusage(RUSAGE_SELF, &usage);
	from_usage(&usage, numbers);
	numbers[CPU] = nb_clock(CLOCK_PROCESS_CPUTIME_ID);
}

const struct nb_meter nb_meter_rusage = {
	.name = "rusage",
	.about = "CPU time of the process that moves the data",
	NB_TABLE(counters),
	.read = read_usage,
};
