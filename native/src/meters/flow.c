/* SPDX-License-Identifier: MIT */
/* The engine's own count: bytes and steps of each stream; of requests, how many were answered. */
#include "../meter.h"
#include "../method.h"

static const struct nb_field counters[] = {
	{ "bytes", "bytes moved", .unit = NB_UNIT_BYTES, .per = NB_PER_STREAM },
	{ "steps", "steps of the method", .unit = NB_UNIT_CALLS, .per = NB_PER_STREAM },
	{ "answered", "requests that were answered, over all streams", .unit = NB_UNIT_NONE },
};

static void read_flows(struct nb_reading *reading, uint64_t *numbers)
{
	uint64_t *answered = &numbers[2 * reading->streams];

	*answered =
		reading->streams && reading->flows[0].method->flags & NB_REQUESTS ? 0 : NB_MISSING;
	for (size_t i = 0; i < reading->streams; i++) {
		const struct nb_flow *flow = &reading->flows[i];
		uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);

		numbers[i] = flow->method->flags & (NB_NO_DATA | NB_REQUESTS) ? NB_MISSING : bytes;
		numbers[reading->streams + i] =
			atomic_load_explicit(&flow->steps, memory_order_relaxed);
		if (*answered != NB_MISSING) /* the first proof of a method of requests */
			*answered += atomic_load_explicit(&flow->proof[0], memory_order_relaxed);
	}
}

const struct nb_meter nb_meter_flow = {
	.name = "flow",
	.about = "bytes and steps of each stream",
	.flags = NB_ALWAYS | NB_SAMPLED,
	NB_TABLE(counters),
	.read = read_flows,
};
