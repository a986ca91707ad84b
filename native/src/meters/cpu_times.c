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
