/* SPDX-License-Identifier: MIT */
/* Counts of times by log-linear buckets: 128 of each power of two, so that a bucket is at most
 * 1/128 of its values wide, and exact below 128 ns. Counts add exactly, over streams, runs and
 * hosts. */
#ifndef NB_HISTOGRAM_H
#define NB_HISTOGRAM_H

#include "flow.h"

enum { NB_BUCKET_BITS = 7, NB_BUCKETS_EACH = 1 << NB_BUCKET_BITS };
enum { NB_BUCKET_POWERS = 36 }; /* up to 2^42 ns, an hour: what is longer is in the last */
enum { NB_BUCKETS = NB_BUCKET_POWERS * NB_BUCKETS_EACH };

struct nb_histogram {
	_Atomic uint64_t count, sum, most; /* of all that was added, exactly */
	_Atomic uint64_t buckets[NB_BUCKETS];
};

static inline uint32_t nb_bucket(uint64_t ns)
{
	int power = ns < NB_BUCKETS_EACH ? 0 : 63 - __builtin_clzll(ns) - NB_BUCKET_BITS;
	uint64_t bucket = ((uint64_t)power << NB_BUCKET_BITS) + (ns >> power);

	return bucket < NB_BUCKETS ? (uint32_t)bucket : NB_BUCKETS - 1;
}

static inline void nb_histogram_add(struct nb_histogram *histogram, uint64_t ns)
{
	nb_add(&histogram->count, 1);
	nb_add(&histogram->sum, ns);
	if (ns > atomic_load_explicit(&histogram->most, memory_order_relaxed))
		atomic_store_explicit(&histogram->most, ns, memory_order_relaxed);
	nb_add(&histogram->buckets[nb_bucket(ns)], 1);
}

enum { NB_LATENCY, NB_SERVICE, NB_LATENESS, NB_LATENCIES };

/* What a thread of clients counts of each request. The first member of the state of a stream whose
 * send method has NB_REQUESTS is a pointer to it, which all of a thread have. */
struct nb_latencies {
	struct nb_histogram of[NB_LATENCIES];
};

#endif
