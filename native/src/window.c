/* SPDX-License-Identifier: MIT */
#include "meter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"
#include "program.h"

/* What a helper has passed, by the meter's place in nb_meters. */
static struct passed {
	int *files;
	size_t count;
} passed[NB_METERS_MAX];

static void close_all(int *files, size_t count)
{
	for (size_t i = 0; files && i < count; i++)
		if (files[i] >= 0)
			close(files[i]);
	free(files);
}

static struct passed *passed_for(const struct nb_meter *meter)
{
	size_t i = 0;

	while (nb_meters[i] != meter)
		i++;
	return &passed[i];
}

void nb_meter_files_keep(const struct nb_meter *meter, int *files, size_t count)
{
	struct passed *place = passed_for(meter);

	close_all(place->files, place->count);
	*place = (struct passed){ files, count };
}

int nb_meter_files_open(struct nb_reading *reading, struct nb_error *error)
{
	const struct nb_meter *meter = reading->meter;
	const struct passed *place = passed_for(meter);
	size_t count = reading->cpus * meter->files_each;
	char why[200] = "";

	if (place->count == count) {
		reading->files = place->files;
		return 0;
	}
	reading->files = reading->own_files = malloc(count * sizeof(*reading->files));
	if (!reading->files)
		return nb_fail_memory(error, "a meter");
	memset(reading->own_files, 0xff, count * sizeof(*reading->files)); /* -1 */
	nb_program_raise_files();
	if (!meter->open_files(reading->own_files, reading->cpus, why, sizeof(why)))
		return 0;
	return nb_fail(error, NB_ERR_UNSUPPORTED, "open meter",
		       "run `netbench list meters` to see which meters work there", "%s: %s",
		       meter->name, why);
}

void nb_meter_files_close(struct nb_reading *reading)
{
	if (reading->own_files)
		close_all(reading->own_files, reading->cpus * reading->meter->files_each);
	reading->files = reading->own_files = NULL;
}

static size_t numbers_of(const struct nb_reading *reading)
{
	size_t total = 0;

	for (size_t i = 0; i < reading->meter->counters_count; i++)
		total += nb_items(reading, &reading->meter->counters[i]);
	return total;
}

static int asked_for(const struct nb_job *job, const char *meter)
{
	const char *name = job->meters, *end = name + sizeof(job->meters);

	while (name < end && *name && strcmp(name, meter) != 0)
		name += strlen(name) + 1;
	return name < end && *name;
}

static int open_meters(struct nb_window *window, const struct nb_job *job,
		       const struct nb_tool *tool, struct nb_error *error)
{
	const struct nb_reading context = { .job = job,
					    .flows = window->flows,
					    .streams = window->flows_count,
					    .tool = job->role == NB_ROLE_TOOL ? tool : NULL,
					    .cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF),
					    .without_host_wide = (int)job->without_host_wide };

	for (size_t i = 0; nb_meters[i] && window->readings_count < NB_METERS_MAX; i++) {
		const struct nb_meter *meter = nb_meters[i];
		struct nb_reading *reading = &window->readings[window->readings_count];
		int status;

		if (!(meter->flags & NB_ALWAYS && window->flows_count) &&
		    !asked_for(job, meter->name))
			continue;
		if (meter->flags & NB_HOST_WIDE && job->without_host_wide)
			continue;
		*reading = context;
		reading->meter = meter;
		window->readings_count++;
		window->numbers += numbers_of(reading);
		window->sampled += nb_sampled(reading) ? numbers_of(reading) : 0;
		reading->state = meter->state_size ? calloc(1, meter->state_size) : NULL;
		if (meter->state_size && !reading->state)
			return nb_fail_memory(error, "a meter");
		status = meter->open_files ? nb_meter_files_open(reading, error) : 0;
		if (!status && meter->open)
			status = meter->open(reading, error);
		if (status)
			return status;
	}
	return 0;
}

static size_t proofs_count(const struct nb_window *window)
{
	return window->flows_count ? window->flows[0].method->proofs_count : 0;
}

static void read_proofs(const struct nb_window *window, uint64_t *at)
{
	for (size_t p = 0; p < proofs_count(window); p++)
		for (size_t i = 0; i < window->flows_count; i++)
			*at++ = atomic_load_explicit(&window->flows[i].proof[p],
						     memory_order_relaxed);
}

static int allocate_numbers(struct nb_window *window, const struct nb_job *job,
			    struct nb_error *error)
{
	size_t row = (1 + window->sampled) * sizeof(uint64_t);
	uint64_t wanted = job->sample ? job->duration / job->sample + 2 : 0;
	size_t numbers = window->numbers + 1 + proofs_count(window) * window->flows_count;

	for (int i = 0; i < 3; i++) {
		window->edges[i].numbers = calloc(numbers, sizeof(uint64_t));
		if (!window->edges[i].numbers)
			return nb_fail_memory(error, "counters");
	}
	if (!wanted || !window->sampled)
		return 0;
	if (!job->duration || wanted > NB_SAMPLES_MAX) /* a bytes-bounded run has no known length */
		wanted = NB_SAMPLES_MAX;
	window->samples_room =
		wanted < NB_SAMPLES_BYTES / row ? (size_t)wanted : NB_SAMPLES_BYTES / row;
	window->samples = calloc(window->samples_room, row);
	if (!window->samples)
		return nb_fail_memory(error, "samples");
	return 0;
}

int nb_window_prepare(struct nb_window *window, const struct nb_job *job,
		      const struct nb_flow *flows, size_t flows_count, const struct nb_tool *tool,
		      struct nb_error *error)
{
	int status;

	window->flows = flows;
	window->flows_count = flows_count;
	status = open_meters(window, job, tool, error);
	return status ? status : allocate_numbers(window, job, error);
}

void nb_window_snapshot(struct nb_window *window, enum nb_edge edge)
{
	struct nb_snapshot *snapshot = &window->edges[edge];
	uint64_t *at = snapshot->numbers;

	snapshot->ns = nb_now(); /* proofs, which end with a window, right after it, then bytes */
	read_proofs(window, at + window->numbers);
	for (size_t i = 0; i < window->readings_count; i++) {
		window->readings[i].meter->read(&window->readings[i], at);
		at += numbers_of(&window->readings[i]);
	}
	snapshot->taken = 1;
}

void nb_window_sample(struct nb_window *window, uint64_t now)
{
	uint64_t *at;

	if (window->samples_count == window->samples_room) {
		window->samples_lost++;
		return;
	}
	at = window->samples + window->samples_count++ * (1 + window->sampled);
	*at++ = now;
	for (size_t i = 0; i < window->readings_count; i++) {
		if (!nb_sampled(&window->readings[i]))
			continue;
		window->readings[i].meter->read(&window->readings[i], at);
		at += numbers_of(&window->readings[i]);
	}
}

void nb_window_free(struct nb_window *window)
{
	for (size_t i = 0; i < window->readings_count; i++) {
		const struct nb_meter *meter = window->readings[i].meter;

		if (meter->close && (window->readings[i].state || !meter->state_size))
			meter->close(&window->readings[i]);
		if (meter->state_size)
			free(window->readings[i].state);
		nb_meter_files_close(&window->readings[i]);
	}
	for (int i = 0; i < 3; i++)
		free(window->edges[i].numbers);
	free(window->samples);
}
