/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../rows.h"
#include "../wire.h"
#include "request.h"

static const int ROWS[] = { NB_READBACK_LATENCY, NB_READBACK_SERVICE, NB_READBACK_LATENESS };

static const struct nb_histogram *histogram_of(const struct nb_flow *flow, int which)
{
	const struct nb_latencies *latencies = flow->state;

	return &latencies->of[which];
}

static uint32_t add_up(const struct nb_flow *flows, size_t streams, int which, uint64_t *numbers)
{
	uint32_t used = 3;

	for (size_t i = 0; i < streams; i++) {
		const struct nb_histogram *one = histogram_of(&flows[i], which);

		numbers[0] += one->count;
		numbers[1] += one->sum;
		numbers[2] = one->most > numbers[2] ? one->most : numbers[2];
	}
	for (uint32_t bucket = 0; bucket < NB_BUCKETS; bucket++) {
		uint64_t total = 0;

		for (size_t i = 0; i < streams; i++)
			total += histogram_of(&flows[i], which)->buckets[bucket];
		if (total) {
			numbers[used++] = bucket;
			numbers[used++] = total;
		}
	}
	return used;
}

void nb_latencies_report(const struct nb_flow *flows, size_t streams, struct nb_writer *writer)
{
	for (int which = 0; which < NB_LATENCIES; which++) {
		uint64_t *numbers = calloc(3 + 2 * NB_BUCKETS, sizeof(*numbers));
		uint32_t used = numbers ? add_up(flows, streams, which, numbers) : 0;

		if (numbers && (numbers[0] || which == NB_LATENCY))
			nb_put_numbers(writer, nb_row_of(&nb_readbacks[ROWS[which]]),
				       NB_EDGE_DRAINED, 0, numbers, used);
		free(numbers);
	}
}

int nb_check_bytes(struct nb_flow *flow, const unsigned char *bytes, size_t length, size_t from,
		   size_t whole)
{
	for (size_t i = 0; flow->job->verify && i < length; i++)
		if (bytes[i] != flow->buffer[(from + i) % whole])
			return nb_fail(&flow->error, NB_ERR_SYSTEM, "verify",
				       "leave the cell out here, and report it to the maintainers "
				       "of this kernel and driver",
				       "byte %zu of a %s arrived otherwise than it was sent",
				       (from + i) % whole,
				       flow->job->role == NB_ROLE_SEND ? "response" : "request");
	return 0;
}
