/* SPDX-License-Identifier: MIT */
#include "window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"
#include "run.h"

enum { SAMPLES_BYTES = 8 * 1024 * 1024, SAMPLES_MAX = 100000 };

size_t nb_items(const struct nb_run *run, const struct nb_field *counter)
{
	if (counter->per == NB_PER_STREAM)
		return run->flows_count;
	return counter->per == NB_PER_CPU ? run->window.cpus : 1;
}

static size_t numbers_of(const struct nb_run *run, const struct nb_meter *meter)
{
	size_t total = 0;

	for (size_t i = 0; i < meter->counters_count; i++)
		total += nb_items(run, &meter->counters[i]);
	return total;
}

static int asked_for(const struct nb_job *job, const char *name)
{
	for (const char *at = job->meters; at < job->meters + sizeof(job->meters) && *at;
	     at += strlen(at) + 1)
		if (!strcmp(at, name))
			return 1;
	return 0;
}

static int know_meters(const struct nb_job *job, struct nb_error *error)
{
	for (const char *at = job->meters; at < job->meters + sizeof(job->meters) && *at;
	     at += strlen(at) + 1) {
		size_t i = 0;

		while (nb_meters[i] && strcmp(nb_meters[i]->name, at))
			i++;
		if (!nb_meters[i])
			return nb_fail(error, NB_ERR_REQUEST, "open meter",
				       "`netbench list meters` names what there is",
				       "no meter '%s'", at);
	}
	return 0;
}

static int open_meters(struct nb_run *run, struct nb_error *error)
{
	struct nb_window *window = &run->window;

	for (size_t i = 0; nb_meters[i] && window->readings_count < NB_METERS_MAX; i++) {
		const struct nb_meter *meter = nb_meters[i];
		struct nb_reading *reading = &window->readings[window->readings_count];
		int status;

		if (!(meter->flags & NB_ALWAYS && run->flows_count) &&
		    !asked_for(&run->job, meter->name))
			continue;
		*reading = (struct nb_reading){ .meter = meter, .run = run, .fd = -1 };
		window->readings_count++;
		window->numbers += numbers_of(run, meter);
		window->sampled += meter->flags & NB_SAMPLED ? numbers_of(run, meter) : 0;
		status = meter->open ? meter->open(reading, error) : 0;
		if (status)
			return status;
	}
	return 0;
}

static size_t proofs_of(const struct nb_run *run)
{
	return run->flows_count ? run->flows[0].method->proofs_count * run->flows_count : 0;
}

static int room_for_numbers(struct nb_run *run, struct nb_error *error)
{
	struct nb_window *window = &run->window;
	size_t row = (1 + window->sampled) * sizeof(uint64_t);
	uint64_t wanted = run->job.sample ? run->job.duration / run->job.sample + 2 : 0;

	for (int i = 0; i < 3; i++) {
		window->edges[i].numbers =
			calloc(window->numbers + proofs_of(run) + 1, sizeof(uint64_t));
		if (!window->edges[i].numbers)
			return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use fewer streams",
				       "no memory for counters");
	}
	if (!wanted || !window->sampled)
		return 0;
	if (!run->job.duration ||
	    wanted > SAMPLES_MAX) /* a bytes-bounded run has no known length */
		wanted = SAMPLES_MAX;
	window->samples_room = wanted < SAMPLES_BYTES / row ? (size_t)wanted : SAMPLES_BYTES / row;
	window->samples = calloc(window->samples_room, row);
	if (!window->samples)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "sample less often",
			       "no memory for %zu samples", window->samples_room);
	return 0;
}

int nb_window_prepare(struct nb_run *run, struct nb_error *error)
{
	int status;

	run->window.cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	status = know_meters(&run->job, error);
	if (!status)
		status = open_meters(run, error);
	return status ? status : room_for_numbers(run, error);
}

void nb_window_snapshot(struct nb_run *run, enum nb_edge edge)
{
	struct nb_window *window = &run->window;
	struct nb_snapshot *snapshot = &window->edges[edge];
	uint64_t *at = snapshot->numbers;

	snapshot->ns = nb_now(); /* bytes are the first to be read, right after it */
	for (size_t i = 0; i < window->readings_count; i++) {
		window->readings[i].meter->read(&window->readings[i], at);
		at += numbers_of(run, window->readings[i].meter);
	}
	for (size_t p = 0; run->flows_count && p < run->flows[0].method->proofs_count; p++)
		for (size_t i = 0; i < run->flows_count; i++)
			*at++ = atomic_load_explicit(&run->flows[i].proof[p], memory_order_relaxed);
	snapshot->taken = 1;
}

void nb_window_sample(struct nb_run *run, uint64_t now)
{
	struct nb_window *window = &run->window;
	uint64_t *at;

	run->sample_at = now + run->job.sample;
	if (window->samples_count == window->samples_room) {
		window->samples_lost++;
		return;
	}
	at = window->samples + window->samples_count++ * (1 + window->sampled);
	*at++ = now;
	for (size_t i = 0; i < window->readings_count; i++) {
		if (!(window->readings[i].meter->flags & NB_SAMPLED))
			continue;
		window->readings[i].meter->read(&window->readings[i], at);
		at += numbers_of(run, window->readings[i].meter);
	}
}

void nb_window_open(struct nb_run *run)
{
	nb_window_snapshot(run, NB_EDGE_OPEN);
	run->phase = NB_MEASURING;
	run->warm_at = 0;
	if (run->job.duration && !run->job.bytes && !run->job.marks)
		run->close_at = run->window.edges[NB_EDGE_OPEN].ns + run->job.duration;
	if (run->window.samples_room)
		run->sample_at = run->window.edges[NB_EDGE_OPEN].ns + run->job.sample;
}

void nb_window_close(struct nb_run *run)
{
	nb_window_snapshot(run, NB_EDGE_CLOSE);
	run->phase = NB_CLOSED;
	run->close_at = run->sample_at = 0;
}

int nb_window_warmup_arrived(const struct nb_run *run)
{
	for (size_t i = 0; i < run->flows_count; i++)
		if (atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) <
		    run->warmup_bytes[i])
			return 0;
	return 1;
}

int nb_window_open_marked(struct nb_run *run)
{
	nb_window_open(run);
	atomic_store_explicit(&run->control.marked, 1, memory_order_release);
	nb_run_control_move(&run->control, NB_GATE_RUN);
	return NB_EVENT_OPEN;
}

void nb_window_free(struct nb_run *run)
{
	struct nb_window *window = &run->window;

	for (size_t i = 0; i < window->readings_count; i++)
		if (window->readings[i].meter->close)
			window->readings[i].meter->close(&window->readings[i]);
	for (int i = 0; i < 3; i++)
		free(window->edges[i].numbers);
	free(window->samples);
}
