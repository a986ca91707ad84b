/* SPDX-License-Identifier: MIT */
#include "kernel_symbols.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char OPERATION[] = "read kernel symbols";

enum { FIRST_ROOM = 8 * 1024 * 1024, MOST_ROOM = 256 * 1024 * 1024 };

static int fail_memory(struct nb_error *error)
{
	return nb_fail(error, NB_ERR_MEMORY, OPERATION, "free some memory",
		       "no memory for the kernel's symbols");
}

/* The whole text with its end. */
static int read_text(struct nb_kernel_symbols *symbols, int fd, struct nb_error *error)
{
	size_t used = 0, room = 0;
	ssize_t got = 1;

	while (got > 0) {
		if (used + 1 >= room) {
			char *more;

			room = room ? 2 * room : FIRST_ROOM;
			more = room > MOST_ROOM ? NULL : realloc(symbols->text, room);
			if (!more)
				return fail_memory(error);
			symbols->text = more;
		}
		got = read(fd, symbols->text + used, room - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		return nb_fail_errno(error, OPERATION, "look at `dmesg` of that host",
				     "/proc/kallsyms");
	symbols->text[used] = 0;
	return 0;
}

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

static int add(struct nb_kernel_symbols *symbols, size_t *room,
	       const struct nb_kernel_symbol *symbol)
{
	if (symbols->count == *room) {
		struct nb_kernel_symbol *more;

		*room = *room ? 2 * *room : 131072;
		more = realloc(symbols->symbols, *room * sizeof(*more));
		if (!more)
			return -1;
		symbols->symbols = more;
	}
	symbols->symbols[symbols->count++] = *symbol;
	return 0;
}

static int take_lines(struct nb_kernel_symbols *symbols, struct nb_error *error)
{
	struct nb_kernel_symbol symbol;
	char *text_end = symbols->text + strlen(symbols->text), *next;
	size_t room = 0;

	for (char *line = symbols->text; line < text_end; line = next) {
		char *end = memchr(line, '\n', (size_t)(text_end - line));

		next = end ? end + 1 : text_end;
		if (end)
			*end = 0;
		if (parse(line, &symbol) && add(symbols, &room, &symbol))
			return fail_memory(error);
	}
	return 0;
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

static void keep_one_each(struct nb_kernel_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++)
		if (!kept || symbols->symbols[i].address != symbols->symbols[kept - 1].address)
			symbols->symbols[kept++] = symbols->symbols[i];
	symbols->count = kept;
}

int nb_kernel_symbols_read(struct nb_kernel_symbols *symbols, const char *path,
			   struct nb_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), status;

	*symbols = (struct nb_kernel_symbols){ 0 };
	if (fd < 0)
		return nb_fail_errno(error, OPERATION,
				     "use a kernel with CONFIG_KALLSYMS on that host", "%s", path);
	status = read_text(symbols, fd, error);
	close(fd);
	if (!status)
		status = take_lines(symbols, error);
	if (status)
		return status;
	if (symbols->count)
		qsort(symbols->symbols, symbols->count, sizeof(*symbols->symbols), compare);
	keep_one_each(symbols);
	return 0;
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
