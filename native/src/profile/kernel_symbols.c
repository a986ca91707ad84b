/* SPDX-License-Identifier: MIT */
#include "kernel_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char OPERATION[] = "read kernel symbols";

/* Take a line apart: "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME\t[MODULE]". Whether it is a
 * function's. */
static int parse(char *line, struct nb_kernel_symbol *symbol)
{
	char *end, *tab;

	symbol->address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return 0;
	symbol->type = end[1];
	symbol->name = end + 3;
	tab = strchr(end + 3, '\t');
	if (tab)
		*tab = ' ';
	return symbol->address && strchr("tTwW", symbol->type);
}

static int rank(char type)
{
	return type == 'T' ? 0 : type == 't' ? 1 : 2;
}

/* Of the names of one address the first is chosen as perf(1) chooses: global before local before
 * weak, few leading underscores, then the longer one. */
static int compare(const void *one, const void *other)
{
	const struct nb_kernel_symbol *a = one, *b = other;
	size_t under[2] = { strspn(a->name, "_"), strspn(b->name, "_") };
	size_t length[2] = { strlen(a->name), strlen(b->name) };

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (rank(a->type) != rank(b->type))
		return rank(a->type) - rank(b->type);
	if (under[0] != under[1])
		return under[0] < under[1] ? -1 : 1;
	if (length[0] != length[1])
		return length[0] > length[1] ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* All functions of the text, then one name for each address. 0, or -1: there is no memory. */
static int take_lines(struct nb_kernel_symbols *symbols, size_t length)
{
	size_t lines = 1, all = 0;

	for (size_t i = 0; i < length; i++)
		lines += symbols->text[i] == '\n';
	symbols->symbols = calloc(lines, sizeof(*symbols->symbols));
	if (!symbols->symbols)
		return -1;
	for (char *rest = symbols->text, *line; (line = strsep(&rest, "\n"));)
		all += (size_t)parse(line, &symbols->symbols[all]);
	qsort(symbols->symbols, all, sizeof(*symbols->symbols), compare);
	for (size_t i = 0; i < all; i++)
		if (!symbols->count ||
		    symbols->symbols[i].address != symbols->symbols[symbols->count - 1].address)
			symbols->symbols[symbols->count++] = symbols->symbols[i];
	return 0;
}

int nb_kernel_symbols_read(struct nb_kernel_symbols *symbols, const char *path,
			   struct nb_error *error)
{
	FILE *file = fopen(path, "re");
	size_t room = 0;
	ssize_t got;

	*symbols = (struct nb_kernel_symbols){ 0 };
	if (!file)
		return nb_fail_errno(error, OPERATION,
				     "use a kernel with CONFIG_KALLSYMS on that host", "%s", path);
	got = getdelim(&symbols->text, &room, 0, file); /* all of it: there is no NUL */
	fclose(file);
	if (got < 0)
		return nb_fail_errno(error, OPERATION, "look at `dmesg` of that host", "%s", path);
	return take_lines(symbols, (size_t)got) ? nb_fail_memory(error, "the kernel's symbols") : 0;
}

void nb_kernel_symbols_free(struct nb_kernel_symbols *symbols)
{
	free(symbols->text);
	free(symbols->symbols);
	*symbols = (struct nb_kernel_symbols){ 0 };
}

const struct nb_kernel_symbol *nb_kernel_symbol(const struct nb_kernel_symbols *symbols,
						uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &symbols->symbols[low - 1] : NULL;
}
