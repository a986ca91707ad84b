/* SPDX-License-Identifier: MIT */
/*
 * What one soaker does: quanta of work, each timed, and what they tell, in memory that the worker
 * reads.
 */
#ifndef NB_QUANTA_H
#define NB_QUANTA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* The counters of a soaker, whole. It writes one copy while the other is read: a lock would be held
 * by whoever has the lowest priority. */
struct nb_quanta_copy {
	_Atomic uint64_t last;	/* CLOCK_MONOTONIC at the end of the latest quantum */
	_Atomic uint64_t usual; /* length of a quantum, ns */
	_Atomic uint64_t taken;
	_Atomic uint64_t switched;
	_Atomic uint64_t stalled;
	_Atomic uint64_t quanta;
	_Atomic uint64_t worked;
};

struct nb_quanta {
	_Atomic uint64_t versions; /* copies so far; the latest is copies[versions % 2] */
	struct nb_quanta_copy copies[2];
} __attribute__((aligned(256)));

/* Bytes that the quanta go round through. */
struct nb_footprint {
	unsigned char *bytes;
	size_t size, at;
};

/* Counters from which a soaker begins, at a time of CLOCK_MONOTONIC. */
void nb_quanta_begin(struct nb_quanta *quanta, uint64_t now);
/* Work until killed; `began`: since when the CPU is watched. */
void nb_quanta_work(struct nb_quanta *quanta, uint64_t began, struct nb_footprint *footprint);
/* Whether the usual length of a quantum is known well. */
int nb_quanta_settled(const struct nb_quanta *quanta);
/* Read the counters until now, by enum nb_soak_kind, all but NB_SOAK_USED. */
void nb_quanta_read(const struct nb_quanta *quanta, uint64_t *counts);

#endif
