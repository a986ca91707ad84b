/* SPDX-License-Identifier: MIT */
/* A meter: counters read at the edges of the measured window. One file under meters/, one row of
 * meters/table.c.
 *
 * read() fills one number per counter and item (stream, CPU), counters in their declared order;
 * NB_MISSING for what could not be read. It allocates nothing. Arithmetic is the controller's. */
#ifndef NB_METER_H
#define NB_METER_H

#include "fail.h"
#include "job.h"

struct nb_flow;
struct nb_tool;

struct nb_reading {
	const struct nb_meter *meter;
	const struct nb_job *job;    /* of the run */
	const struct nb_flow *flows; /* of the run */
	size_t streams;		     /* how many */
	const struct nb_tool *tool;  /* of the run, or NULL */
	size_t cpus;		     /* configured */
	int without_host_wide;	     /* leave out what is of the whole kernel */
	const int *files;	     /* what open_files() has opened, or a helper */
	int *own_files;		     /* those that are to be closed */
	void *state;		     /* the meter's own */
};

struct nb_meter {
	const char *name;
	const char *about;
	/* NB_ALWAYS, NB_HOST_WIDE, NB_SAMPLED, NB_SLICED, NB_BY_HELPER, NB_WITHOUT_SOAK */
	uint32_t flags;
	const struct nb_field *counters;
	size_t counters_count;
	int (*probe)(char *why, size_t room); /* 0, or -1 with the reason; optional */
	/* Why a single counter cannot be read, where the others can; optional. */
	void (*explain)(size_t counter, char *why, size_t room);
	/* What only root may open, with NB_BY_HELPER: so many descriptors for each CPU, -1 where
	 * there is none. 0, or -1 with the reason. A helper does it for a mover. Optional. */
	size_t files_each;
	int (*open_files)(int *files, size_t cpus, char *why, size_t room);
	size_t state_size; /* of reading->state, all zeros before open(), freed behind close() */
	int (*open)(struct nb_reading *reading, struct nb_error *error);
	void (*read)(struct nb_reading *reading, uint64_t *numbers);
	void (*close)(struct nb_reading *reading);
};

extern const struct nb_meter *const nb_meters[];

/* Descriptors of a meter that only root may open. */
/* Fill reading->files: those that a helper has passed, else new ones. 0, or a negative code. */
int nb_meter_files_open(struct nb_reading *reading, struct nb_error *error);
/* Close what nb_meter_files_open() has opened; what was passed stays for later runs. */
void nb_meter_files_close(struct nb_reading *reading);
/* Keep `count` descriptors that were passed for a meter, -1 where there is none, in place of those
 * that it had. Takes them over, and the memory. */
void nb_meter_files_keep(const struct nb_meter *meter, int *files, size_t count);

/* Whether it is read at each sample too: always, or where the run moves nothing. */
static inline int nb_sampled(const struct nb_reading *reading)
{
	uint32_t flags = reading->meter->flags;

	return flags & NB_SAMPLED || (flags & NB_SLICED && !reading->streams && !reading->tool);
}

/* Items of a counter in this run: 1, the number of streams, or the number of CPUs; 0 where it is
 * left out. */
static inline size_t nb_items(const struct nb_reading *reading, const struct nb_field *counter)
{
	if (reading->without_host_wide && counter->flags & NB_HOST_WIDE)
		return 0;
	if (counter->per == NB_PER_STREAM)
		return reading->streams;
	return counter->per == NB_PER_CPU ? reading->cpus : 1;
}

/* The measured window of a run: its edges, the meters and proofs that are read at them, and the
 * samples between. */

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

/* Read all meters and proofs at an edge; the meters that are sampled, between edges. */
void nb_window_snapshot(struct nb_window *window, enum nb_edge edge);
void nb_window_sample(struct nb_window *window, uint64_t now);

#endif
