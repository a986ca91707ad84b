/* SPDX-License-Identifier: MIT */
/*
 * Time in which tasks waited for a resource (the kernel's Documentation/accounting/psi.rst):
 * `some` of them, or `full`: all that were not idle. /proc/pressure/irq is there since Linux 6.1
 * with CONFIG_IRQ_TIME_ACCOUNTING.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../meter.h"
#include "../proc_text.h"

enum { CPU, IRQ, MEMORY, IO, FILES, TEXT = 256 };

static const char *const paths[FILES] = {
	[CPU] = "/proc/pressure/cpu",
	[IRQ] = "/proc/pressure/irq",
	[MEMORY] = "/proc/pressure/memory",
	[IO] = "/proc/pressure/io",
};

/* The line of a file that a counter is read from. */
static const struct {
	int file;
	const char *line;
} places[] = {
	{ CPU, "some" },    { IRQ, "full" }, { MEMORY, "some" },
	{ MEMORY, "full" }, { IO, "some" },  { IO, "full" },
};

static const struct nb_field counters[] = {
	{ "cpu_some_us", "time in which a task waited for a CPU", .unit = NB_UNIT_US },
	{ "irq_full_us", "time in which interrupts held up a task", .unit = NB_UNIT_US },
	{ "memory_some_us", "time in which a task waited for memory", .unit = NB_UNIT_US },
	{ "memory_full_us", "time in which all tasks waited for memory", .unit = NB_UNIT_US },
	{ "io_some_us", "time in which a task waited for I/O", .unit = NB_UNIT_US },
	{ "io_full_us", "time in which all tasks waited for I/O", .unit = NB_UNIT_US },
};

/* psi=0 leaves files that cannot be opened. 0, or -1 with the reason. */
static int try_file(int which, char *why, size_t room)
{
	char text[TEXT];

	if (nb_read_file(paths[which], text, sizeof(text)) > 0)
		return 0;
	snprintf(why, room, "%s: %s (%s)", paths[which], strerrordesc_np(errno),
		 which == IRQ ? "CONFIG_IRQ_TIME_ACCOUNTING" : "CONFIG_PSI, psi=1");
	return -1;
}

static int probe_psi(char *why, size_t room)
{
	return try_file(CPU, why, room);
}

static void explain(size_t counter, char *why, size_t room)
{
	try_file(places[counter].file, why, room);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static uint64_t total_of(char *line, const char *kind)
{
	uint64_t number;
	char *at;

	while (line && strncmp(line, kind, strlen(kind)) != 0)
		line = nb_proc_next_line(line);
	at = line ? strstr(line, "total=") : NULL;
	if (!at)
		return NB_MISSING;
	at += strlen("total=");
	return nb_proc_number(&at, 10, &number) ? number : NB_MISSING;
}

static void read_psi(struct nb_reading *reading, uint64_t *numbers)
{
	char texts[FILES][TEXT];

	(void)reading;
	for (int i = 0; i < FILES; i++)
		nb_read_file(paths[i], texts[i], TEXT);
	for (size_t i = 0; i < NB_LENGTH(counters); i++)
		numbers[i] = total_of(texts[places[i].file], places[i].line);
}

const struct nb_meter nb_meter_psi = {
	.name = "psi",
	.about = "time in which tasks waited for CPUs, interrupts, memory or I/O (/proc/pressure)",
	.flags = NB_HOST_WIDE | NB_WITHOUT_SOAK,
	NB_TABLE(counters),
	.probe = probe_psi,
	.explain = explain,
	.read = read_psi,
};
