/* SPDX-License-Identifier: MIT */
/* The measured window of a run: its edges, the meters and proofs that are read at them, and the
 * samples between. */
#ifndef NB_WINDOW_H
#define NB_WINDOW_H

#include "job.h"
#include "meter.h"

struct nb_snapshot {
	uint64_t ns;
	int taken;
	uint64_t *numbers; /* all meters, then the proofs of each flow */
};

struct nb_window {
	struct nb_reading readings[NB_METERS_MAX];
	size_t readings_count;
	size_t cpus;	/* configured; asked for once, since the answer costs system calls */
	size_t numbers; /* in a snapshot */
	size_t sampled; /* numbers in a sample */
	struct nb_snapshot edges[3];
	uint64_t *samples; /* rows of 1 + sampled numbers: time, counters */
	size_t samples_count;
	size_t samples_room;
	uint64_t samples_lost;
};

/* Open the meters that the job asks for, and make room for all they will say. */
int nb_window_prepare(struct nb_run *run, struct nb_error *error);
void nb_window_free(struct nb_run *run);

void nb_window_snapshot(struct nb_run *run, enum nb_edge edge);
void nb_window_sample(struct nb_run *run, uint64_t now);
/* The two edges: a snapshot, and the run's phase and next events. */
void nb_window_open(struct nb_run *run);
void nb_window_close(struct nb_run *run);
/* A bytes-bounded run: whether all of the warm-up has arrived; open the window then, and let the
 * flows go on. Returns the events.
 */
int nb_window_warmup_arrived(const struct nb_run *run);
int nb_window_open_marked(struct nb_run *run);

#endif
