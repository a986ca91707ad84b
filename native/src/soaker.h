/* SPDX-License-Identifier: MIT */
/* The soaker: on each CPU that may be used a process of the lowest priority that does nothing but
 * time its own short pieces of work (quanta). What it does not get, something else has taken.
 *
 * The idea is cyclesoak's (Andrew Morton, 2001), which counted its work and compared the count with
 * a calibration. Here each quantum is timed: one that takes much longer than the usual one was
 * interrupted, however fast the CPU is at that moment. */
#ifndef NB_SOAKER_H
#define NB_SOAKER_H

#include <sys/types.h>

#include "fail.h"

/* What the soaker of one CPU counts: all but quanta in ns. */
enum nb_soak_kind {
	NB_SOAK_TAKEN,	  /* from it, by whatever else ran */
	NB_SOAK_SWITCHED, /* of it, in gaps in which another process ran */
	NB_SOAK_STALLED,  /* of it, while it had its CPU and the CPU stood still */
	NB_SOAK_QUANTA,	  /* that it did */
	NB_SOAK_WORKED,	  /* in them */
	NB_SOAK_USED,	  /* CPU time of its process, as the kernel accounts it */
	NB_SOAK_KINDS
};

struct nb_soaking;

struct nb_soaker {
	pid_t pid;		    /* of the first one, whose group all are in; 0: none is there */
	size_t cpus;		    /* configured */
	struct nb_soaking *soaking; /* shared with them */
};

/* Start a soaker whose quanta go round through `footprint` bytes of each CPU's own (0: registers
 * only), and wait until it knows how long a quantum takes. 0, or a negative code with the error
 * filled. */
int nb_soaker_start(struct nb_soaker *soaker, size_t footprint, struct nb_error *error);
/* Read what the soaker of a CPU has counted until now, by kind. 0; -1: it has none, or none any
 * more. */
int nb_soaker_read(const struct nb_soaker *soaker, size_t cpu, uint64_t *counts);
/* End all of its processes, and wait for that. */
void nb_soaker_stop(struct nb_soaker *soaker);

#endif
