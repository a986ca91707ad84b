/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../proc_text.h"

enum {
	FRAMES_MAX = 256,
	PROCESSES_MAX = 4096,
	LINE_HEAD = 3, /* of a frame, around its name */
	NODE = 64      /* that tsearch(3) takes beside a key, about */
};

struct nb_process {
	uint32_t pid;
	char name[32];
};

/* By the address of its function; UINT64_MAX: none that is known. */
struct frame {
	uint64_t address;
	uint32_t number;
};

struct stack {
	uint64_t samples;
	uint64_t events; /* what the samples stand for: the sum of their periods */
	uint32_t process;
	uint32_t length;
	uint32_t frames[]; /* numbers, the leaf first */
};

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
static int compare_symbols(const void *one, const void *other)
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
	qsort(symbols->symbols, all, sizeof(*symbols->symbols), compare_symbols);
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

static int compare_frames(const void *one, const void *other)
{
	return memcmp(one, other, offsetof(struct frame, number));
}

static int compare_stacks(const void *one, const void *other)
{
	const struct stack *a = one, *b = other;
	int order = memcmp(&a->process, &b->process, sizeof(a->process) + sizeof(a->length));

	return order ? order : memcmp(a->frames, b->frames, a->length * sizeof(a->frames[0]));
}

/* What is in the tree and equals a key: a copy of that where there was none. NULL: there is no room
 * for it. */
static void *keep(struct nb_profile *profile, void **tree, const void *key, size_t bytes,
		  int (*compare)(const void *, const void *))
{
	void **node = tfind(key, tree, compare), *copy;

	if (node)
		return *node;
	copy = profile->bytes + bytes + NODE > NB_PROFILE_BYTES ? NULL : malloc(bytes);
	if (!copy)
		return NULL;
	node = tsearch(memcpy(copy, key, bytes), tree, compare);
	if (!node) {
		free(copy);
		return NULL;
	}
	profile->bytes += bytes + NODE;
	return copy;
}

/* A name of the host's: what would end its line, or is no ASCII, becomes a question mark. */
static void write_name(FILE *file, const char *name)
{
	for (; *name; name++)
		fputc(*name >= ' ' && *name <= '~' ? *name : '?', file);
	fputc('\n', file);
}

static void read_name(struct nb_process *process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", process->pid);
	if (nb_read_file(path, process->name, sizeof(process->name)) <= 0)
		strcpy(process->name, process->pid ? "[exited]" : "swapper");
	process->name[strcspn(process->name, "\n")] = 0;
}

/* The index of a process; PROCESSES_MAX where there are too many or no memory. */
static uint32_t process_of(struct nb_profile *profile, uint32_t pid)
{
	uint32_t i = 0;

	if (!profile->processes)
		profile->processes = calloc(PROCESSES_MAX, sizeof(*profile->processes));
	if (!profile->processes)
		return PROCESSES_MAX;
	while (i < profile->processes_count && profile->processes[i].pid != pid)
		i++;
	if (i == profile->processes_count && i < PROCESSES_MAX) {
		profile->processes_count++;
		profile->processes[i].pid = pid;
		read_name(&profile->processes[i]);
	}
	return i;
}

/* The number of a frame, whose line is written when it is first seen: 0, or -1. */
static int number_frame(struct nb_profile *profile, uint64_t address, uint32_t *number)
{
	const struct nb_kernel_symbol *symbol = nb_kernel_symbol(&profile->kernel, address);
	const struct frame wanted = { symbol ? symbol->address : UINT64_MAX,
				      profile->frames_count };
	const char *name = symbol ? symbol->name : "[kernel]";
	const struct frame *frame;

	if (!profile->lines)
		profile->lines = open_memstream(&profile->lines_text, &profile->lines_length);
	frame = profile->lines
			? keep(profile, &profile->frames, &wanted, sizeof(wanted), compare_frames)
			: NULL;
	if (!frame)
		return -1;
	*number = frame->number;
	if (frame->number < profile->frames_count)
		return 0;
	profile->frames_count++;
	profile->bytes += strlen(name) + LINE_HEAD;
	fprintf(profile->lines, "f ");
	write_name(profile->lines, name);
	return 0;
}

void nb_profile_add(struct nb_profile *profile, uint32_t pid, uint64_t period,
		    const uint64_t *chain, size_t length)
{
	uint32_t process = process_of(profile, pid);
	struct {
		struct stack head;
		uint32_t frames[FRAMES_MAX];
	} sampled = { .head = { .process = process } };
	struct stack *stack = &sampled.head;
	int failed = process == PROCESSES_MAX;

	for (size_t i = 0; !failed && i < length && stack->length < FRAMES_MAX; i++)
		if (chain[i] < (uint64_t)PERF_CONTEXT_MAX) /* else: whose the next ones are */
			failed = number_frame(profile, chain[i], &sampled.frames[stack->length++]);
	stack = failed ? NULL
		       : keep(profile, &profile->stacks, stack,
			      sizeof(*stack) + stack->length * sizeof(stack->frames[0]),
			      compare_stacks);
	if (!stack) {
		profile->lost++;
		return;
	}
	stack->samples++;
	stack->events += period;
	profile->samples++;
}

static void write_stack(const void *node, VISIT visit, void *file)
{
	const struct stack *stack = *(struct stack *const *)node;

	if (visit != postorder && visit != leaf)
		return;
	fprintf(file, "s %" PRIu64 " %" PRIu64 " %" PRIu32, stack->samples, stack->events,
		stack->process);
	for (size_t i = stack->length; i-- > 0;)
		fprintf(file, " %" PRIu32, stack->frames[i]);
	fputc('\n', file);
}

char *nb_profile_text(struct nb_profile *profile, size_t *length)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, length);

	if (!file)
		return NULL;
	fprintf(file,
		"event %s\nfrequency %" PRIu64 "\nbegin %" PRIu64 "\nend %" PRIu64
		"\ncpus %zu\nsamples %" PRIu64 "\nlost %" PRIu64 "\nthrottles %" PRIu64
		"\nkernel_symbols %zu\n",
		profile->event, profile->frequency, profile->begin, profile->end, profile->cpus,
		profile->samples, profile->lost, profile->throttles, profile->kernel.count);
	if (profile->lines && !fflush(profile->lines))
		fprintf(file, "%s", profile->lines_text);
	for (size_t i = 0; i < profile->processes_count; i++) {
		fprintf(file, "p %" PRIu32 " ", profile->processes[i].pid);
		write_name(file, profile->processes[i].name);
	}
	twalk_r(profile->stacks, write_stack, file);
	if (!fclose(file))
		return text;
	free(text);
	return NULL;
}

void nb_profile_free(struct nb_profile *profile)
{
	nb_kernel_symbols_free(&profile->kernel);
	free(profile->processes);
	tdestroy(profile->frames, free);
	tdestroy(profile->stacks, free);
	if (profile->lines)
		fclose(profile->lines);
	free(profile->lines_text);
	*profile = (struct nb_profile){ 0 };
}
