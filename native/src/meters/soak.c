/* SPDX-License-Identifier: MIT */
/* What a process of the lowest priority was left of each CPU (soaker.c). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../job.h"
#include "../meter.h"
#include "../soaker.h"
#include "cpu_times.h"

/* Sums over CPUs, how many those are, and what was taken of the CPUs that the flows are pinned to;
 * then the same as the sums of each CPU. */
enum {
	CPUS = NB_SOAK_KINDS,
	PINNED,
	PINNED_STOLEN,
	PINNED_CPUS,
	PEER,
	PEER_STOLEN,
	PEER_CPUS,
	STOLEN,
	SUMS,
	COUNTS = SUMS + NB_SOAK_KINDS
};

/* clang-format off */
#define NS .unit = NB_UNIT_NS
#define KIND(at, name_, about_, of_cpu, ...) \
	[at] = { .name = name_, .about = about_, __VA_ARGS__ }, \
	[SUMS + (at)] = { .name = "cpu_" name_, .about = of_cpu, .per = NB_PER_CPU, __VA_ARGS__ }

static const struct nb_field counters[] = {
	KIND(NB_SOAK_TAKEN, "taken_ns", "time that something else took from soakers of all CPUs",
	     "time taken from the soaker of each CPU", NS),
	KIND(NB_SOAK_SWITCHED, "switched_ns", "of it, in gaps in which another process ran",
	     "of it, in gaps in which another process ran", NS),
	KIND(NB_SOAK_STALLED, "stalled_ns", "of it, in which no other process ran and no CPU time "
	     "passed for 50 us and more: the hypervisor",
	     "of it, while the hypervisor held the CPU", NS),
	KIND(NB_SOAK_QUANTA, "quanta", "pieces of work that the soakers did",
	     "pieces of work of each CPU's soaker", .unit = NB_UNIT_NONE),
	KIND(NB_SOAK_WORKED, "worked_ns", "time that these took, without the gaps",
	     "time that these took, without the gaps", NS),
	KIND(NB_SOAK_USED, "used_ns", "the soakers' own CPU time, as the kernel accounts it",
	     "CPU time of each CPU's soaker, as the kernel accounts it", NS),
	[CPUS] = { "cpus", "CPUs that have a soaker" },
	[PINNED] = { "pinned_taken_ns", "time taken from the soakers of the CPUs that this side's "
		     "flows are pinned to", NS },
	[PINNED_STOLEN] = { "pinned_stolen_ns",
			    "what the hypervisor took of these CPUs (/proc/stat)", NS },
	[PINNED_CPUS] = { "pinned_cpus", "how many these are" },
	[PEER] = { "peer_taken_ns",
		   "time taken from those of the other side's CPUs, of this kernel", NS },
	[PEER_STOLEN] = { "peer_stolen_ns",
			  "what the hypervisor took of these CPUs (/proc/stat)", NS },
	[PEER_CPUS] = { "peer_cpus", "how many these are" },
	[STOLEN] = { "stolen_ns",
		     "what the hypervisor took of all CPUs that have a soaker (/proc/stat)", NS },
	[COUNTS] = { "cpu_stolen_ns", "what the hypervisor took of each CPU (/proc/stat)", NS,
		     .per = NB_PER_CPU },
};
/* clang-format on */

/* A kernel without /proc/stat tells nothing of a hypervisor: `times` stays missing. */
struct soak {
	struct nb_soaker soaker;
	struct nb_proc_text stat;
	uint64_t tick_ns; /* of /proc/stat */
	uint64_t times[]; /* of cpu_times.h */
};

static int open_soak(struct nb_reading *reading, struct nb_error *error)
{
	size_t times = NB_CPU_STATES * (1 + reading->cpus);
	struct soak *soak = calloc(1, sizeof(*soak) + times * sizeof(soak->times[0]));

	reading->state = soak;
	if (!soak)
		return nb_fail_memory(error, "a soaker");
	soak->tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	nb_proc_open(&soak->stat, "/proc/stat");
	return nb_soaker_start(&soak->soaker, reading->job->footprint, error);
}

/* What the hypervisor took of a CPU since the boot, in whole ticks. */
static uint64_t stolen_ns(const struct nb_reading *reading, size_t cpu)
{
	const struct soak *soak = reading->state;
	uint64_t ticks = soak->times[NB_CPU_STATES + NB_CPU_STEAL * reading->cpus + cpu];

	return ticks == NB_MISSING ? ticks : ticks * soak->tick_ns;
}

/* To a sum that is missing as long as nothing is in it, and from the first number on that is. */
static void add(uint64_t *sum, uint64_t number, int first)
{
	if (first)
		*sum = number;
	else if (*sum != NB_MISSING)
		*sum = number == NB_MISSING ? number : *sum + number;
}

/* To the sums of a side's CPUs: what was taken of them, what of it by the hypervisor, how many. */
static void add_pinned(const struct nb_cpus *pinned, size_t cpu, uint64_t *sums,
		       const uint64_t *counts)
{
	if (!nb_cpus_have(pinned, cpu))
		return;
	add(&sums[1], counts[NB_SOAK_KINDS], !sums[2]);
	sums[0] = sums[2]++ ? sums[0] + counts[NB_SOAK_TAKEN] : counts[NB_SOAK_TAKEN];
}

/* One number for each CPU; its sums are zero before. */
static void read_cpu(const struct nb_reading *reading, size_t cpu, uint64_t *numbers)
{
	const struct soak *soak = reading->state;
	uint64_t stolen = stolen_ns(reading, cpu);
	uint64_t counts[COUNTS - SUMS + 1];

	if (nb_soaker_read(&soak->soaker, cpu, counts))
		return;
	if (!stolen) /* there is none that takes: interrupts have */
		counts[NB_SOAK_STALLED] = 0;
	counts[NB_SOAK_KINDS] = stolen;
	numbers[CPUS]++;
	for (size_t kind = 0; kind < NB_LENGTH(counts); kind++)
		numbers[SUMS + kind * reading->cpus + cpu] = counts[kind];
	for (size_t kind = 0; kind < NB_SOAK_KINDS; kind++)
		numbers[kind] += counts[kind];
	add(&numbers[STOLEN], stolen, numbers[CPUS] == 1);
	add_pinned(&reading->job->cpus, cpu, numbers + PINNED, counts);
	add_pinned(&reading->job->peer_cpus, cpu, numbers + PEER, counts);
}

static void read_soak(struct nb_reading *reading, uint64_t *numbers)
{
	struct soak *soak = reading->state;
	size_t cpus = reading->cpus;

	memset(numbers, 0xff, (SUMS + (COUNTS - SUMS + 1) * cpus) * sizeof(*numbers));
	memset(numbers, 0, PINNED * sizeof(*numbers)); /* the others: NB_MISSING */
	numbers[PINNED_CPUS] = numbers[PEER_CPUS] = 0;
	nb_cpu_times_read(&soak->stat, cpus, soak->times);
	for (size_t cpu = 0; cpu < cpus; cpu++)
		read_cpu(reading, cpu, numbers);
}

static void close_soak(struct nb_reading *reading)
{
	struct soak *soak = reading->state;

	if (soak) {
		nb_soaker_stop(&soak->soaker);
		nb_proc_close(&soak->stat);
	}
	free(soak);
}

const struct nb_meter nb_meter_soak = {
	.name = "soak",
	.about = "what processes of the lowest priority were left of each CPU",
	.flags = NB_HOST_WIDE | NB_SLICED,
	NB_TABLE(counters),
	.open = open_soak,
	.read = read_soak,
	.close = close_soak,
};
