/* SPDX-License-Identifier: MIT */
/* What clients of requests count, over connections that stay and over those of one request. */
#ifndef NB_REQUEST_H
#define NB_REQUEST_H

#include "../histogram.h"
#include "../method.h"

enum { NB_LATENCY, NB_SERVICE, NB_LATENESS, NB_LATENCIES };

/* Of a stream: the first member of its method's state. */
struct nb_latencies {
	struct nb_histogram of[NB_LATENCIES];
};

/* Whether a request that began then is one of the window. */
static inline int nb_in_window(const struct nb_flow *flow, uint64_t begun)
{
	uint64_t from = atomic_load_explicit(&flow->control->from, memory_order_acquire);

	return from && begun >= from &&
	       begun < atomic_load_explicit(&flow->control->to, memory_order_relaxed);
}

/* `report` of a method: a vector for each histogram that counted some, of all streams: count, sum
 * and most, then the numbers of buckets that hold some, each with how many. */
void nb_latencies_report(const struct nb_flow *flows, size_t streams, struct nb_writer *writer);

/* Fail on bytes that are not those of the other side's buffer, `from` bytes into one of `whole`,
 * where they are to be verified. 0, or <0. */
int nb_check_bytes(struct nb_flow *flow, const unsigned char *bytes, size_t length, size_t from,
		   size_t whole);

#endif
