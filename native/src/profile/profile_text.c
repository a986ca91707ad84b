/* SPDX-License-Identifier: MIT */
#include "profile_text.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_MAX = 256 };

/* One frame of all stacks; those of the kernel are of no process. */
struct frame {
	uint32_t process;
	uint64_t address;
};

struct frames {
	struct frame *frames;
	size_t count;
};

/* Addresses of the kernel are in the upper half. */
static int is_kernels(uint64_t address)
{
	return (int64_t)address < 0;
}

/* What counts as one frame: a whole function of the kernel; of a process an address, and all that
 * is mapped nowhere (code without frame pointers leads there). */
static uint64_t frame_at(const struct nb_profile *profile, size_t process, uint64_t address)
{
	const struct nb_kernel_symbol *symbol;

	if (!is_kernels(address))
		return nb_process_mapping(&profile->processes.processes[process], address) ? address
											   : 0;
	symbol = nb_kernel_symbol(&profile->kernel, address);
	return symbol ? symbol->address : UINT64_MAX;
}

void nb_profile_add(struct nb_profile *profile, const struct nb_sample *sample)
{
	size_t process = nb_process_index(&profile->processes, sample->pid), count = 0;
	uint64_t frames[FRAMES_MAX];

	if (process == NB_PROCESSES_MAX) {
		profile->stacks.dropped++;
		return;
	}
	for (size_t i = 0; i < sample->length && count < FRAMES_MAX; i++)
		if (sample->chain[i] <
		    (uint64_t)PERF_CONTEXT_MAX) /* else: whose the next ones are */
			frames[count++] = frame_at(profile, process, sample->chain[i]);
	nb_stacks_add(&profile->stacks, (uint32_t)process, frames, count, sample->period);
}

static struct frame frame_of(const struct nb_stack *stack, size_t at)
{
	uint64_t address = stack->frames[at];

	return (struct frame){ is_kernels(address) || !address ? 0 : stack->process, address };
}

static int compare(const void *one, const void *other)
{
	const struct frame *a = one, *b = other;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* Each frame of all stacks once, in order. 0, or -1. */
static int gather(const struct nb_stacks *stacks, struct frames *frames)
{
	size_t all = 0, kept = 0;

	for (size_t i = 0; i < stacks->room; i++)
		all += stacks->table[i] ? stacks->table[i]->length : 0;
	*frames = (struct frames){ .frames = malloc((all + 1) * sizeof(*frames->frames)) };
	if (!frames->frames)
		return -1;
	for (size_t i = 0; i < stacks->room; i++)
		for (size_t j = 0; stacks->table[i] && j < stacks->table[i]->length; j++)
			frames->frames[frames->count++] = frame_of(stacks->table[i], j);
	qsort(frames->frames, frames->count, sizeof(*frames->frames), compare);
	for (size_t i = 0; i < frames->count; i++)
		if (!kept || compare(&frames->frames[i], &frames->frames[kept - 1]))
			frames->frames[kept++] = frames->frames[i];
	frames->count = kept;
	return 0;
}

/* A name of the host's: what would end its line, or is no ASCII, becomes a question mark. */
static void write_name(FILE *file, const char *name)
{
	for (; *name; name++)
		fputc(*name >= ' ' && *name <= '~' ? *name : '?', file);
	fputc('\n', file);
}

static void write_frame(FILE *file, const struct nb_profile *profile, const struct frame *frame)
{
	const struct nb_kernel_symbol *symbol;
	const struct nb_mapping *mapping;

	if (is_kernels(frame->address)) {
		symbol = frame->address < UINT64_MAX
				 ? nb_kernel_symbol(&profile->kernel, frame->address)
				 : NULL;
		fprintf(file, "f k ");
		write_name(file, symbol ? symbol->name : "[kernel]");
		return;
	}
	mapping = nb_process_mapping(&profile->processes.processes[frame->process], frame->address);
	fprintf(file, "f u %" PRIx64 " ",
		mapping ? frame->address - mapping->begin + mapping->offset : 0);
	write_name(file, mapping ? mapping->name : "[unknown]");
}

static void write_stack(FILE *file, const struct frames *frames, const struct nb_stack *stack)
{
	fprintf(file, "s %" PRIu64 " %" PRIu64 " %" PRIu32, stack->samples, stack->events,
		stack->process);
	for (size_t i = stack->length; i-- > 0;) {
		struct frame frame = frame_of(stack, i);
		const struct frame *at =
			bsearch(&frame, frames->frames, frames->count, sizeof(frame), compare);

		fprintf(file, " %zu", (size_t)(at - frames->frames));
	}
	fputc('\n', file);
}

static void write_head(FILE *file, const struct nb_profile *profile)
{
	fprintf(file,
		"event %s\nfrequency %" PRIu64 "\nbegin %" PRIu64 "\nend %" PRIu64
		"\ncpus %zu\nsamples %" PRIu64 "\nlost %" PRIu64 "\nthrottles %" PRIu64
		"\nkernel_symbols %zu\n",
		profile->event, profile->frequency, profile->begin, profile->end, profile->cpus,
		profile->stacks.samples, profile->lost + profile->stacks.dropped,
		profile->throttles, profile->kernel.count);
}

char *nb_profile_text(struct nb_profile *profile, size_t *length)
{
	const struct nb_stacks *stacks = &profile->stacks;
	struct frames frames;
	char *text = NULL;
	FILE *file;

	if (gather(stacks, &frames))
		return NULL;
	file = open_memstream(&text, length);
	if (file) {
		write_head(file, profile);
		for (size_t i = 0; i < frames.count; i++)
			write_frame(file, profile, &frames.frames[i]);
		for (size_t i = 0; i < profile->processes.count; i++) {
			fprintf(file, "p %" PRIu32 " ", profile->processes.processes[i].pid);
			write_name(file, profile->processes.processes[i].name);
		}
		for (size_t i = 0; i < stacks->room; i++)
			if (stacks->table[i])
				write_stack(file, &frames, stacks->table[i]);
		if (fclose(file)) {
			free(text);
			text = NULL;
		}
	}
	free(frames.frames);
	return text;
}

void nb_profile_free(struct nb_profile *profile)
{
	nb_kernel_symbols_free(&profile->kernel);
	nb_processes_free(&profile->processes);
	nb_stacks_free(&profile->stacks);
	*profile = (struct nb_profile){ 0 };
}
