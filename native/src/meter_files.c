/* SPDX-License-Identifier: MIT */
#include "meter_files.h"

#include <stdlib.h>
#include <unistd.h>

#include "program.h"

enum { METERS = 16 };

static struct {
	const struct nb_meter *meter;
	int *files;
	size_t count;
} passed[METERS];

static void close_all(int *files, size_t count)
{
	for (size_t i = 0; files && i < count; i++)
		if (files[i] >= 0)
			close(files[i]);
	free(files);
}

/* The place of a meter, or of none yet. */
static size_t place_of(const struct nb_meter *meter)
{
	size_t i = 0;

	while (i < METERS - 1 && passed[i].meter && passed[i].meter != meter)
		i++;
	return i;
}

void nb_meter_files_keep(const struct nb_meter *meter, int *files, size_t count)
{
	size_t i = place_of(meter);

	close_all(passed[i].files, passed[i].count);
	passed[i].meter = meter;
	passed[i].files = files;
	passed[i].count = count;
}

int nb_meter_files_open(struct nb_reading *reading, struct nb_error *error)
{
	const struct nb_meter *meter = reading->meter;
	size_t count = meter->files_count(reading->cpus), i = place_of(meter);
	char why[200] = "";

	if (passed[i].meter == meter && passed[i].count == count) {
		reading->files = passed[i].files;
		return 0;
	}
	reading->files = reading->own_files = malloc(count * sizeof(*reading->files));
	if (!reading->files)
		return nb_fail(error, NB_ERR_MEMORY, "open meter", "free some memory", "no memory");
	for (size_t f = 0; f < count; f++)
		reading->own_files[f] = -1;
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
		close_all(reading->own_files, reading->meter->files_count(reading->cpus));
	reading->files = reading->own_files = NULL;
}
