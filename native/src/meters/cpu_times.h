/* SPDX-License-Identifier: MIT */
/* The lines of CPUs in /proc/stat (proc(5)): where the time of each went, in ticks. */
#ifndef NB_CPU_TIMES_H
#define NB_CPU_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "../job.h"
#include "../proc_text.h"

/* In the order of the file. */
enum nb_cpu_state {
	NB_CPU_USER,
	NB_CPU_NICE,
	NB_CPU_SYSTEM,
	NB_CPU_IDLE,
	NB_CPU_IOWAIT,
	NB_CPU_IRQ,
	NB_CPU_SOFTIRQ,
	NB_CPU_STEAL,
	NB_CPU_STATES
};

/* Read the file: `sums` of all CPUs by state, and behind them for each state one number a CPU.
 * NB_MISSING is what the file does not tell: a CPU that is offline has no line. */
void nb_cpu_times_read(struct nb_proc_text *stat, size_t cpus, uint64_t *sums);

/* The sum of a number of each CPU over some of them; NB_MISSING where there are none, or one has
 * no number. */
uint64_t nb_cpus_sum(const struct nb_cpus *which, const uint64_t *of_cpus, size_t cpus);

#endif
