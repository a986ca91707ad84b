/* SPDX-License-Identifier: MIT */
/*
 * /proc/interrupts and /proc/softirqs (proc(5)) are tables: the first line names the CPU of each
 * column. /proc/net/softnet_stat has a line a CPU in hexadecimal (softnet_seq_show(),
 * net/core/net-procfs.c): processed, dropped, time_squeeze, ..., received_rps (10th), and, since
 * Linux 5.10, the CPU (13th).
 */
#include "kernel_counts.h"

#include <stdlib.h>
#include <string.h>

#include "../field.h"

enum { SOFTNET_WORDS = 13, SOFTNET_RPS = 9, SOFTNET_CPU = 12 };

static const struct {
	const char *name;
	int count;
} kinds[] = {
	{ "NET_RX", NB_NET_RX }, { "NET_TX", NB_NET_TX }, { "TIMER", NB_TIMER },
	{ "SCHED", NB_SCHED },	 { "RCU", NB_RCU },
};

/* A table while it is read. */
struct table {
	const struct nb_kernel_counts *counts;
	size_t columns;
	uint64_t *numbers; /* NULL: only what is of the device is asked for */
	uint64_t link_interrupts;
};

int nb_kernel_counts_open(struct nb_kernel_counts *counts, size_t cpus, struct nb_error *error)
{
	static const char REMEDY[] = "leave softirq out of meters:";

	counts->cpus = cpus;
	counts->columns = calloc(cpus, sizeof(*counts->columns));
	if (!counts->columns)
		return nb_fail(error, NB_ERR_MEMORY, "open meter", REMEDY, "no memory");
	if (nb_proc_open(&counts->interrupts, "/proc/interrupts"))
		return nb_fail_errno(error, "open meter", REMEDY, "/proc/interrupts");
	if (nb_proc_open(&counts->softirqs, "/proc/softirqs"))
		return nb_fail_errno(error, "open meter", REMEDY, "/proc/softirqs");
	if (nb_proc_open(&counts->softnet, "/proc/net/softnet_stat"))
		return nb_fail_errno(error, "open meter", REMEDY, "/proc/net/softnet_stat");
	return 0;
}

static void add_of_cpu(const struct table *table, size_t count, size_t cpu, uint64_t number)
{
	if (!table->numbers || cpu >= table->counts->cpus)
		return;
	nb_add_number(&table->numbers[count], number);
	nb_add_number(&table->numbers[NB_KERNEL_COUNTS + count * table->counts->cpus + cpu],
		      number);
}

/* "   CPU0   CPU3": which CPUs the columns are of. */
static void read_columns(struct table *table, char *line)
{
	const struct nb_kernel_counts *counts = table->counts;
	char *end = strchr(line, '\n');
	uint64_t cpu;

	for (table->columns = 0; table->columns < counts->cpus; table->columns++) {
		line = strstr(line, "CPU");
		if (!line || line > end)
			return;
		line += strlen("CPU");
		if (!nb_proc_number(&line, 10, &cpu))
			return;
		counts->columns[table->columns] = (size_t)cpu;
	}
}

static int count_of(const char *name)
{
	for (size_t i = 0; i < NB_LENGTH(kinds); i++) {
		size_t length = strlen(kinds[i].name);

		if (!strncmp(name, kinds[i].name, length) && name[length] == ':')
			return kinds[i].count;
	}
	return NB_KERNEL_COUNTS;
}

static void read_softirqs(struct table *table, char *line)
{
	while ((line = nb_proc_next_line(line))) {
		char *at = line + strspn(line, " ");
		int count = count_of(at);
		uint64_t number;

		at += strcspn(at, ":\n");
		at += *at == ':';
		for (size_t i = 0; i < table->columns && nb_proc_number(&at, 10, &number); i++) {
			add_of_cpu(table, NB_SOFTIRQS, table->counts->columns[i], number);
			if (count != NB_KERNEL_COUNTS)
				add_of_cpu(table, (size_t)count, table->counts->columns[i], number);
		}
	}
}

static int is_of_link(const struct nb_kernel_counts *counts, char *name)
{
	uint64_t irq;

	if (!counts->irqs_count || !nb_proc_number(&name, 10, &irq) || *name != ':')
		return 0;
	for (size_t i = 0; i < counts->irqs_count; i++)
		if (counts->irqs[i] == irq)
			return 1;
	return 0;
}

/* Lines that have one number for all CPUs, and count no interrupts that were taken. */
static int is_of_errors(const char *name)
{
	return !strncmp(name, "ERR:", 4) || !strncmp(name, "MIS:", 4) || !strncmp(name, "Err:", 4);
}

static void read_interrupts(struct table *table, char *line)
{
	while ((line = nb_proc_next_line(line))) {
		char *name = line + strspn(line, " "), *at = name + strcspn(name, ":\n");
		int of_link = is_of_link(table->counts, name);
		uint64_t number;

		if (*at++ != ':' || is_of_errors(name))
			continue;
		for (size_t i = 0; i < table->columns && nb_proc_number(&at, 10, &number); i++) {
			add_of_cpu(table, NB_INTERRUPTS, table->counts->columns[i], number);
			if (of_link)
				nb_add_number(&table->link_interrupts, number);
		}
	}
}

static void read_softnet(struct table *table, char *line)
{
	for (size_t index = 0; line; index++, line = nb_proc_next_line(line)) {
		uint64_t words[SOFTNET_WORDS] = { 0 };
		char *at = line;
		size_t count = 0;

		while (count < SOFTNET_WORDS && nb_proc_number(&at, 16, &words[count]))
			count++;
		if (count <= SOFTNET_CPU) /* an older kernel: online CPUs, in order */
			words[SOFTNET_CPU] = index;
		if (count < 3)
			return;
		add_of_cpu(table, NB_PROCESSED, words[SOFTNET_CPU], words[0]);
		add_of_cpu(table, NB_DROPPED, words[SOFTNET_CPU], words[1]);
		add_of_cpu(table, NB_SQUEEZED, words[SOFTNET_CPU], words[2]);
		add_of_cpu(table, NB_RECEIVED_RPS, words[SOFTNET_CPU], words[SOFTNET_RPS]);
	}
}

static void read_table(struct table *table, struct nb_proc_text *file,
		       void (*read)(struct table *table, char *line))
{
	char *text = nb_proc_read(file);

	if (!text)
		return;
	read_columns(table, text);
	read(table, text);
}

void nb_kernel_counts_read(struct nb_kernel_counts *counts, uint64_t *numbers,
			   uint64_t *link_interrupts)
{
	struct table table = { .counts = counts,
			       .numbers = numbers,
			       .link_interrupts = NB_MISSING };

	if (numbers || counts->irqs_count)
		read_table(&table, &counts->interrupts, read_interrupts);
	*link_interrupts = table.link_interrupts;
	if (!numbers)
		return;
	read_table(&table, &counts->softirqs, read_softirqs);
	read_table(&table, &counts->softnet, read_softnet);
}

void nb_kernel_counts_close(struct nb_kernel_counts *counts)
{
	nb_proc_close(&counts->interrupts);
	nb_proc_close(&counts->softirqs);
	nb_proc_close(&counts->softnet);
	free(counts->columns);
}
