/* SPDX-License-Identifier: MIT */
/* loops pace RATE MS: does nothing at a rate but look at the clock, and prints by how many ns it
 * was late, of 99% at most: what a machine lets an open loop have. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "loop.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

int pace(uint64_t rate, uint64_t ms)
{
	size_t count = (size_t)(rate * ms / 1000);
	uint64_t *late = calloc(count, sizeof(*late)), begun = now_ns(), now;

	for (size_t i = 0; late && i < count; i++) {
		uint64_t due = begun + (uint64_t)i * 1000000000 / rate;

		while ((now = now_ns()) < due)
			;
		late[i] = now - due;
	}
	if (!late || !count)
		return 1;
	qsort(late, count, sizeof(*late), compare);
	printf("%llu\n", (unsigned long long)late[count * 99 / 100]);
	return 0;
}
