/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096 };

static size_t hash(uint32_t process, const uint64_t *frames, size_t length)
{
	uint64_t value = 0xcbf29ce484222325 ^ process;

	for (size_t i = 0; i < length; i++) {
		value = (value ^ frames[i]) * 0x100000001b3;
		value ^= value >> 29;
	}
	return (size_t)value;
}

/* Where a stack is, or is to be. */
static struct nb_stack **place_of(const struct nb_stacks *stacks, uint32_t process,
				  const uint64_t *frames, size_t length)
{
	size_t at = hash(process, frames, length) & (stacks->room - 1);

	for (struct nb_stack *stack; (stack = stacks->table[at]);
	     at = (at + 1) & (stacks->room - 1))
		if (stack->process == process && stack->length == length &&
		    !memcmp(stack->frames, frames, length * sizeof(*frames)))
			break;
	return &stacks->table[at];
}

/* Room for one more: 0, or -1. */
static int grow(struct nb_stacks *stacks)
{
	struct nb_stacks larger = *stacks;

	if (4 * (stacks->count + 1) <= 3 * stacks->room)
		return 0;
	larger.room = stacks->room ? 2 * stacks->room : FIRST_ROOM;
	larger.table = calloc(larger.room, sizeof(*larger.table));
	if (!larger.table)
		return -1;
	for (size_t i = 0; i < stacks->room; i++) {
		struct nb_stack *stack = stacks->table[i];

		if (stack)
			*place_of(&larger, stack->process, stack->frames, stack->length) = stack;
	}
	free(stacks->table);
	*stacks = larger;
	return 0;
}

static struct nb_stack *make(struct nb_stacks *stacks, uint32_t process, const uint64_t *frames,
			     size_t length)
{
	size_t bytes = sizeof(struct nb_stack) + length * sizeof(*frames);
	struct nb_stack *stack = stacks->bytes + bytes > NB_STACKS_BYTES ? NULL : malloc(bytes);

	if (!stack)
		return NULL;
	*stack = (struct nb_stack){ .process = process, .length = (uint32_t)length };
	memcpy(stack->frames, frames, length * sizeof(*frames));
	stacks->bytes += bytes;
	stacks->count++;
	return stack;
}

void nb_stacks_add(struct nb_stacks *stacks, uint32_t process, const uint64_t *frames,
		   size_t length, uint64_t events)
{
	struct nb_stack **place = grow(stacks) ? NULL : place_of(stacks, process, frames, length);

	if (place && !*place)
		*place = make(stacks, process, frames, length);
	if (!place || !*place) {
		stacks->dropped++;
		return;
	}
	(*place)->samples++;
	(*place)->events += events;
	stacks->samples++;
}

void nb_stacks_free(struct nb_stacks *stacks)
{
	for (size_t i = 0; i < stacks->room; i++)
		free(stacks->table[i]);
	free(stacks->table);
	*stacks = (struct nb_stacks){ 0 };
}
