/* SPDX-License-Identifier: MIT */
/* What the kernel counts for each CPU of interrupts, soft interrupts, and the packets in them. */
#ifndef NB_KERNEL_COUNTS_H
#define NB_KERNEL_COUNTS_H

#include "../fail.h"
#include "../proc_text.h"

enum {
	NB_INTERRUPTS,
	NB_SOFTIRQS,
	NB_NET_RX,
	NB_NET_TX,
	NB_TIMER,
	NB_SCHED,
	NB_RCU,
	NB_PROCESSED,
	NB_DROPPED,
	NB_SQUEEZED,
	NB_RECEIVED_RPS,
	NB_KERNEL_COUNTS
};

enum { NB_LINK_IRQS = 512 };

struct nb_kernel_counts {
	struct nb_proc_text interrupts;
	struct nb_proc_text softirqs;
	struct nb_proc_text softnet;
	size_t cpus;
	size_t *columns;		 /* the CPU of each column of a table */
	unsigned int irqs[NB_LINK_IRQS]; /* of the data link's device */
	size_t irqs_count;
};

/* Open what counts the whole kernel. 0, or a negative code with the error filled. */
int nb_kernel_counts_open(struct nb_kernel_counts *counts, size_t cpus, struct nb_error *error);
/* Fill the sums over all CPUs, NB_KERNEL_COUNTS of them, and behind them for each count one number
 * a CPU. `link_interrupts`: those of the device, NB_MISSING where it has none. */
void nb_kernel_counts_read(struct nb_kernel_counts *counts, uint64_t *numbers,
			   uint64_t *link_interrupts);
void nb_kernel_counts_close(struct nb_kernel_counts *counts);

#endif
