/* SPDX-License-Identifier: MIT */
/* The engine's own count: bytes and steps of each stream. */
#include "../meter.h"
#include "../method.h"

static const struct nb_field counters[] = {
	{ "bytes", "bytes moved", .unit = NB_UNIT_BYTES, .per = NB_PER_STREAM },
	{ "steps", "steps of the method", .unit = NB_UNIT_CALLS, .per = NB_PER_STREAM },
};

static void read_flows(struct nb_reading *reading, uint64_t *numbers)
{
	for (size_t i = 0; i < reading->streams; i++) {
		const struct nb_flow *flow = &reading->flows[i];
		uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);

		numbers[i] = flow->method->flags & (NB_NO_DATA | NB_REQUESTS) ? NB_MISSING : bytes;
		numbers[reading->streams + i] =
			atomic_load_explicit(&flow->steps, memory_order_relaxed);
	}
}

const struct nb_meter nb_meter_flow = {
	.name = "flow",
	.about = "bytes and steps of each stream",
	.flags = NB_ALWAYS | NB_SAMPLED,
	NB_TABLE(counters),
	.read = read_flows,
};
