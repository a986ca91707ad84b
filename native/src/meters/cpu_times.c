/* SPDX-License-Identifier: MIT */
#include "cpu_times.h"

#include <string.h>

void nb_cpu_times_read(struct nb_proc_text *stat, size_t cpus, uint64_t *sums)
{
	uint64_t *of_cpus = sums + NB_CPU_STATES;
	char *at = nb_proc_read(stat);

	memset(sums, 0xff, (NB_CPU_STATES + NB_CPU_STATES * cpus) * sizeof(*sums));
	for (; at && !strncmp(at, "cpu", 3); at = nb_proc_next_line(at)) {
		uint64_t cpu, ticks;
		int one;

		at += 3;
		one = *at != ' ' && nb_proc_number(&at, 10, &cpu);
		for (size_t i = 0; i < NB_CPU_STATES && nb_proc_number(&at, 10, &ticks); i++)
			if (!one)
				sums[i] = ticks;
			else if (cpu < cpus)
				of_cpus[i * cpus + cpu] = ticks;
	}
}

uint64_t nb_cpus_sum(const struct nb_cpus *which, const uint64_t *of_cpus, size_t cpus)
{
	uint64_t sum = 0;

	for (uint64_t c = 0; c < which->count; c++) {
		uint64_t cpu = which->each[c];

		if (cpu >= cpus || of_cpus[cpu] == NB_MISSING)
			return NB_MISSING;
		sum += of_cpus[cpu];
	}
	return which->count ? sum : NB_MISSING;
}
