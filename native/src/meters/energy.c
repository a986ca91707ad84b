/* SPDX-License-Identifier: MIT */
/*
 * Energy by RAPL: energy_uj of each zone of powercap (the kernel's Documentation/power/powercap),
 * which begins again at 0 beyond max_energy_range_uj. Since Linux 5.10 only root may read it. A
 * package holds its cores and its graphics; memory (dram) is beside it, and psys is all of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../meter.h"
#include "../proc_text.h"

enum { PACKAGE, DRAM, CORES, PSYS, COUNTED, COUNTS, OTHER = -1 };
enum { ZONES = 64, NAME = 40 };

static const char FOLDER[] = "/sys/class/powercap";

static const struct nb_field counters[] = {
	[PACKAGE] = { "package_uj", "energy of the CPU packages, in microjoules" },
	[DRAM] = { "dram_uj", "energy of their memory, in microjoules" },
	[CORES] = { "cores_uj", "energy of their cores, within packages, in microjoules" },
	[PSYS] = { "psys_uj", "energy of the whole platform, in microjoules" },
	[COUNTED] = { "counted_uj", "energy of packages and memory, in microjoules" },
};

struct zone {
	int kind;
	uint64_t range; /* it begins again at 0 beyond this */
	uint64_t last;	/* as it was read before */
};

struct state {
	struct zone zones[ZONES];
	uint64_t sums[COUNTS]; /* since the meter was opened */
};

static int is_zone(const struct dirent *entry)
{
	return !strncmp(entry->d_name, "intel-rapl:", strlen("intel-rapl:"));
}

/* Zones by name, in one order for all processes. How many, or -1 with errno. */
static int list_zones(char names[ZONES][NAME])
{
	struct dirent **found;
	int count = scandir(FOLDER, &found, is_zone, alphasort), kept = 0;

	for (int i = 0; i < count; i++) {
		if (kept < ZONES && strlen(found[i]->d_name) < NAME)
			strcpy(names[kept++], found[i]->d_name);
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	return count < 0 ? -1 : kept;
}

static int open_file(const char *zone, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%.*s/%s", FOLDER, NAME, zone, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int kind_of(const char *zone)
{
	char path[128], name[NAME];

	snprintf(path, sizeof(path), "%s/%.*s/name", FOLDER, NAME, zone);
	nb_read_file(path, name, sizeof(name));
	name[strcspn(name, "\n")] = 0;
	if (!strncmp(name, "package", strlen("package")))
		return PACKAGE;
	return !strcmp(name, "dram")   ? DRAM
	       : !strcmp(name, "core") ? CORES
	       : !strcmp(name, "psys") ? PSYS
				       : OTHER;
}

static size_t count_files(size_t cpus)
{
	(void)cpus;
	return ZONES;
}

static int open_energy_files(int *files, size_t cpus, char *why, size_t room)
{
	char names[ZONES][NAME];
	int count = list_zones(names), opened = 0;

	(void)cpus;
	if (count <= 0) {
		snprintf(why, room, "this machine has no energy counters (RAPL, in %s)", FOLDER);
		return -1;
	}
	for (int i = 0; i < count; i++) {
		files[i] = open_file(names[i], "energy_uj");
		opened += files[i] >= 0;
	}
	if (opened == count)
		return 0;
	snprintf(why, room,
		 errno == EACCES ? "root is needed: %s/*/energy_uj is root's"
				 : "%s/*/energy_uj cannot be opened",
		 FOLDER);
	return -1;
}

static int probe_energy(char *why, size_t room)
{
	int files[ZONES], status;

	memset(files, 0xff, sizeof(files));
	status = open_energy_files(files, 0, why, room);
	for (size_t i = 0; i < ZONES; i++)
		if (files[i] >= 0)
			close(files[i]);
	return status;
}

static int read_number(int fd, uint64_t *number)
{
	char text[32];
	ssize_t length = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (length <= 0 || text[0] < '0' || text[0] > '9')
		return -1;
	text[length] = 0;
	*number = strtoull(text, NULL, 10);
	return 0;
}

static int open_energy(struct nb_reading *reading, struct nb_error *error)
{
	struct state *state = reading->state;
	char names[ZONES][NAME];
	int count = list_zones(names);

	(void)error;
	for (size_t i = 0; i < COUNTS; i++)
		state->sums[i] = NB_MISSING;
	for (int i = 0; i < count; i++) {
		struct zone *zone = &state->zones[i];
		int fd = open_file(names[i], "max_energy_range_uj");

		zone->kind = kind_of(names[i]);
		if (read_number(fd, &zone->range) || read_number(reading->files[i], &zone->last))
			zone->kind = OTHER;
		else if (zone->kind != OTHER)
			state->sums[zone->kind] = 0;
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

/* What a zone has counted since it was last read; a zone that cannot be read takes its sum along.
 */
static void add_zone(struct state *state, struct zone *zone, int fd)
{
	uint64_t now, *sum = &state->sums[zone->kind];

	if (*sum == NB_MISSING)
		return;
	if (read_number(fd, &now)) {
		*sum = NB_MISSING;
		return;
	}
	*sum += now >= zone->last ? now - zone->last : zone->range - zone->last + now;
	zone->last = now;
}

static void read_energy(struct nb_reading *reading, uint64_t *numbers)
{
	struct state *state = reading->state;

	for (size_t i = 0; i < ZONES; i++)
		if (reading->files[i] >= 0 && state->zones[i].kind != OTHER)
			add_zone(state, &state->zones[i], reading->files[i]);
	memcpy(numbers, state->sums, sizeof(state->sums));
	numbers[COUNTED] = numbers[PACKAGE];
	if (numbers[PACKAGE] != NB_MISSING && numbers[DRAM] != NB_MISSING)
		numbers[COUNTED] += numbers[DRAM];
}

const struct nb_meter nb_meter_energy = {
	.name = "energy",
	.about = "energy of the CPU packages and their memory (RAPL, powercap)",
	.flags = NB_HOST_WIDE | NB_BY_HELPER | NB_WITHOUT_SOAK,
	NB_TABLE(counters),
	.probe = probe_energy,
	.files_count = count_files,
	.open_files = open_energy_files,
	.state_size = sizeof(struct state),
	.open = open_energy,
	.read = read_energy,
};
