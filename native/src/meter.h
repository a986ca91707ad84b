/* SPDX-License-Identifier: MIT */
/*
 * A meter: counters read at the edges of the measured window. One file under meters/, one row of
 * meters/table.c.
 *
 * read() fills one number per counter and item (stream, CPU), counters in their declared order;
 * NB_MISSING for what could not be read. It allocates nothing. Arithmetic is the controller's.
 */
#ifndef NB_METER_H
#define NB_METER_H

#include "fail.h"
#include "field.h"

struct nb_flow;
struct nb_job;
struct nb_tool;

struct nb_reading {
	const struct nb_meter *meter;
	const struct nb_job *job;    /* of the run */
	const struct nb_flow *flows; /* of the run */
	size_t streams;		     /* how many */
	const struct nb_tool *tool;  /* of the run, or NULL */
	size_t cpus;		     /* configured */
	int without_host_wide;	     /* leave out what is of the whole kernel */
	int fd;			     /* the meter's own; -1 */
	void *state;		     /* the meter's own */
};

struct nb_meter {
	const char *name;
	const char *about;
	uint32_t flags; /* NB_ALWAYS, NB_HOST_WIDE, NB_SAMPLED, NB_SLICED */
	const struct nb_field *counters;
	size_t counters_count;
	int (*probe)(char *why, size_t room); /* 0, or -1 with the reason; optional */
	int (*open)(struct nb_reading *reading, struct nb_error *error);
	void (*read)(struct nb_reading *reading, uint64_t *numbers);
	void (*close)(struct nb_reading *reading);
};

extern const struct nb_meter *const nb_meters[];

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

#endif
