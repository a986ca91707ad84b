/* SPDX-License-Identifier: MIT */
/* The measured window of a run: its edges, the meters and proofs that are read at them, and the
 * samples between. */
#ifndef NB_WINDOW_H
#define NB_WINDOW_H

#include "fail.h"
#include "job.h"
#include "meter.h"

struct nb_snapshot {
	uint64_t ns;
	int taken;
	uint64_t *numbers; /* all meters, then each proof */
};

struct nb_window {
	struct nb_reading readings[NB_METERS_MAX];
	size_t readings_count;
	const struct nb_flow *flows;
	size_t flows_count;
	size_t numbers; /* in a snapshot */
	size_t sampled; /* numbers in a sample */
	struct nb_snapshot edges[3];
	uint64_t *samples; /* rows of 1 + sampled numbers: time, counters */
	size_t samples_count;
	size_t samples_room;
	uint64_t samples_lost;
};

/* Open the meters that the job asks for, and allocate room for everything that they will read. */
int nb_window_prepare(struct nb_window *window, const struct nb_job *job,
		      const struct nb_flow *flows, size_t flows_count, const struct nb_tool *tool,
		      struct nb_error *error);
void nb_window_free(struct nb_window *window);

/* How many numbers a proof of the flows' method has in a snapshot. */
size_t nb_proof_items(const struct nb_window *window, size_t proof);

/* Read all meters and proofs at an edge; the meters that are sampled, between edges. */
void nb_window_snapshot(struct nb_window *window, enum nb_edge edge);
void nb_window_sample(struct nb_window *window, uint64_t now);

#endif
