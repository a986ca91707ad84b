/* SPDX-License-Identifier: MIT */
/* What a process of the lowest priority was left of each CPU (soaker.c). */
#include <stdlib.h>
#include <string.h>

#include "../job.h"
#include "../meter.h"
#include "../soaker.h"

/* Sums over CPUs, how many those are, and what was taken of the CPUs that the flows are pinned to;
 * then the same as the sums of each CPU. */
enum { CPUS = NB_SOAK_KINDS, PINNED, PEER, SUMS };

static const struct nb_field counters[] = {
	[NB_SOAK_TAKEN] = { .name = "taken_ns",
			    .about = "time that something else took from the soakers of all CPUs",
			    .unit = NB_UNIT_NS },
	[NB_SOAK_SWITCHED] = { .name = "switched_ns",
			       .about = "of it, in gaps in which another process ran",
			       .unit = NB_UNIT_NS },
	[NB_SOAK_QUANTA] = { .name = "quanta", .about = "pieces of work that the soakers did" },
	[NB_SOAK_WORKED] = { .name = "worked_ns",
			     .about = "time that these took, without the gaps",
			     .unit = NB_UNIT_NS },
	[NB_SOAK_USED] = { .name = "used_ns",
			   .about = "the soakers' own CPU time, as the kernel accounts it",
			   .unit = NB_UNIT_NS },
	[CPUS] = { .name = "cpus", .about = "CPUs that have a soaker" },
	[PINNED] = { .name = "pinned_taken_ns",
		     .about = "time taken from the soakers of the CPUs that this side's flows "
			      "are pinned to",
		     .unit = NB_UNIT_NS },
	[PEER] = { .name = "peer_taken_ns",
		   .about = "the same of the other side's CPUs, of this kernel",
		   .unit = NB_UNIT_NS },
	[SUMS + NB_SOAK_TAKEN] = { .name = "cpu_taken_ns",
				   .about = "time taken from the soaker of each CPU",
				   .unit = NB_UNIT_NS,
				   .per = NB_PER_CPU },
	[SUMS + NB_SOAK_SWITCHED] = { .name = "cpu_switched_ns",
				      .about = "of it, in gaps in which another process ran",
				      .unit = NB_UNIT_NS,
				      .per = NB_PER_CPU },
	[SUMS + NB_SOAK_QUANTA] = { .name = "cpu_quanta",
				    .about = "pieces of work of each CPU's soaker",
				    .per = NB_PER_CPU },
	[SUMS + NB_SOAK_WORKED] = { .name = "cpu_worked_ns",
				    .about = "time that these took, without the gaps",
				    .unit = NB_UNIT_NS,
				    .per = NB_PER_CPU },
	[SUMS + NB_SOAK_USED] = { .name = "cpu_used_ns",
				  .about = "CPU time of each CPU's soaker, as the kernel accounts "
					   "it",
				  .unit = NB_UNIT_NS,
				  .per = NB_PER_CPU },
};

static int open_soak(struct nb_reading *reading, struct nb_error *error)
{
	struct nb_soaker *soaker = calloc(1, sizeof(*soaker));

	reading->state = soaker;
	if (!soaker)
		return nb_fail(error, NB_ERR_MEMORY, "open meter",
			       "leave soak out of meters:", "no memory for a soaker");
	return nb_soaker_start(soaker, reading->job->footprint, error);
}

/* To a sum that is missing as long as nothing is in it. */
static void add(uint64_t *sum, uint64_t number)
{
	*sum = (*sum == NB_MISSING ? 0 : *sum) + number;
}

static void read_soak(struct nb_reading *reading, uint64_t *numbers)
{
	const struct nb_soaker *soaker = reading->state;
	size_t cpus = reading->cpus;

	memset(numbers, 0xff, (SUMS + NB_SOAK_KINDS * cpus) * sizeof(*numbers)); /* NB_MISSING */
	memset(numbers, 0, PINNED * sizeof(*numbers));
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		uint64_t counts[NB_SOAK_KINDS];

		if (nb_soaker_read(soaker, cpu, counts))
			continue;
		numbers[CPUS]++;
		if (nb_cpus_have(&reading->job->cpus, cpu))
			add(&numbers[PINNED], counts[NB_SOAK_TAKEN]);
		if (nb_cpus_have(&reading->job->peer_cpus, cpu))
			add(&numbers[PEER], counts[NB_SOAK_TAKEN]);
		for (size_t kind = 0; kind < NB_SOAK_KINDS; kind++) {
			numbers[kind] += counts[kind];
			numbers[SUMS + kind * cpus + cpu] = counts[kind];
		}
	}
}

static void close_soak(struct nb_reading *reading)
{
	if (reading->state)
		nb_soaker_stop(reading->state);
	free(reading->state);
}

const struct nb_meter nb_meter_soak = {
	.name = "soak",
	.about = "what processes of the lowest priority were left of each CPU",
	.flags = NB_HOST_WIDE | NB_SLICED,
	.counters = counters,
	.counters_count = NB_LENGTH(counters),
	.open = open_soak,
	.read = read_soak,
	.close = close_soak,
};
