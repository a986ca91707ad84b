/* SPDX-License-Identifier: MIT */
/* Energy by RAPL: energy_uj of each zone of powercap (the kernel's Documentation/power/powercap),
 * which begins again at 0 beyond max_energy_range_uj. Since Linux 5.10 only root may read it. A
 * package holds its cores and its graphics; memory (dram) is beside it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../meter.h"
#include "../proc_text.h"

/* A package and up to four zones in it; the file of each has one place, for all processes. */
enum { PACKAGES = 32, PARTS = 5, ZONES = PACKAGES * PARTS };
enum { PACKAGE, DRAM, COUNTED, COUNTS, OTHER = -1 };

static const struct nb_field counters[] = {
	[PACKAGE] = { "package_uj", "energy of the CPU packages, in microjoules" },
	[DRAM] = { "dram_uj", "energy of their memory, in microjoules" },
	[COUNTED] = { "counted_uj", "energy of packages and memory, in microjoules" },
};

struct state {
	int kinds[ZONES];
	uint64_t last[ZONES];	/* as it was read before */
	uint64_t sums[COUNTED]; /* since the meter was opened */
};

static void name_file(char path[96], size_t zone, const char *file)
{
	char part[24] = "";

	if (zone % PARTS)
		snprintf(part, sizeof(part), ":%zu", zone % PARTS - 1);
	snprintf(path, 96, "/sys/class/powercap/intel-rapl:%zu%s/%s", zone / PARTS, part, file);
}

static int kind_of(size_t zone)
{
	char path[96], name[40];

	name_file(path, zone, "name");
	nb_read_file(path, name, sizeof(name));
	return !strncmp(name, "package", strlen("package")) ? PACKAGE
	       : !strcmp(name, "dram\n")		    ? DRAM
							    : OTHER;
}

static int open_energy_files(int *files, size_t cpus, char *why, size_t room)
{
	int counted = 0;

	(void)cpus;
	for (size_t zone = 0; zone < ZONES; zone++) {
		char path[96];

		if (kind_of(zone) == OTHER)
			continue;
		name_file(path, zone, "energy_uj");
		files[zone] = open(path, O_RDONLY | O_CLOEXEC);
		if (files[zone] < 0) {
			snprintf(why, room, "%s%s: %s", errno == EACCES ? "root is needed: " : "",
				 path, strerrordesc_np(errno));
			return -1;
		}
		counted++;
	}
	if (!counted)
		snprintf(why, room,
			 "this machine has no energy counters (RAPL, in /sys/class/powercap)");
	return counted ? 0 : -1;
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

static uint64_t read_number(int fd)
{
	char text[32];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = 0;
	return length > 0 ? strtoull(text, NULL, 10) : NB_MISSING;
}

static int open_energy(struct nb_reading *reading, struct nb_error *error)
{
	struct state *state = reading->state;

	(void)error;
	memset(state->sums, 0xff, sizeof(state->sums)); /* NB_MISSING */
	for (size_t zone = 0; zone < ZONES; zone++)
		if (reading->files[zone] >= 0) {
			state->kinds[zone] = kind_of(zone);
			state->last[zone] = read_number(reading->files[zone]);
			state->sums[state->kinds[zone]] = 0;
		}
	return 0;
}

/* What a zone has counted since it was last read; a zone that cannot be read takes its sum along.
 */
static void add_zone(struct state *state, size_t zone, int fd)
{
	uint64_t now = read_number(fd), *sum = &state->sums[state->kinds[zone]];
	char path[96], text[32];

	if (*sum == NB_MISSING || now == NB_MISSING || state->last[zone] == NB_MISSING) {
		*sum = NB_MISSING;
		return;
	}
	*sum += now - state->last[zone];
	if (now < state->last[zone]) {
		name_file(path, zone, "max_energy_range_uj");
		nb_read_file(path, text, sizeof(text));
		*sum += strtoull(text, NULL, 10);
	}
	state->last[zone] = now;
}

static void read_energy(struct nb_reading *reading, uint64_t *numbers)
{
	struct state *state = reading->state;

	for (size_t zone = 0; zone < ZONES; zone++)
		if (reading->files[zone] >= 0)
			add_zone(state, zone, reading->files[zone]);
	memcpy(numbers, state->sums, sizeof(state->sums));
	numbers[COUNTED] = numbers[PACKAGE];
	if (numbers[PACKAGE] != NB_MISSING && numbers[DRAM] != NB_MISSING)
		numbers[COUNTED] += numbers[DRAM];
}

const struct nb_meter nb_meter_energy = {
	.name = "energy",
	.about = "energy of the CPU packages and their memory (RAPL, powercap)",
	/* at samples too: a zone's counter turns over within minutes */
	.flags = NB_HOST_WIDE | NB_BY_HELPER | NB_WITHOUT_SOAK | NB_SAMPLED,
	NB_TABLE(counters),
	.probe = probe_energy,
	.files_each = ZONES, /* the first CPU's are used */
	.open_files = open_energy_files,
	.state_size = sizeof(struct state),
	.open = open_energy,
	.read = read_energy,
};
