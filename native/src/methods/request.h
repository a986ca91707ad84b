/* SPDX-License-Identifier: MIT */
/* What both methods of requests do. */
#ifndef NB_REQUEST_H
#define NB_REQUEST_H

#include <math.h>
#include <sys/prctl.h>

#include "../clock.h"
#include "../histogram.h"
#include "../method.h"

enum { REQUEST, RESPONSE }; /* of which a size is */
enum { NB_SIZE_BITS = 25, NB_SIZE_MASK = (1 << NB_SIZE_BITS) - 1 };

/* splitmix64: numbers that follow each other begin sequences that have nothing in common. Source:
 * G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators". Not 0. */
static inline uint64_t nb_scattered(uint64_t number)
{
	number += 0x9e3779b97f4a7c15ULL;
	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
	number ^= number >> 31;
	return number ? number : 1;
}

/* Bytes of the request, or response, that comes so many after those that are counted: of sizes in
 * rising order the one of which the share, summed up and in 2^-32, lies above its 25 bits. Both
 * sides draw the same. */
static inline size_t nb_size_of(const struct nb_flow *flow, int response, int64_t ahead)
{
	const uint64_t *sizes = response ? flow->job->responses : flow->job->requests;
	uint64_t i = 1, drawn;

	if (sizes[0] > 1) {
		drawn = atomic_load_explicit(&flow->proof[0], memory_order_relaxed) +
			(uint64_t)ahead;
		drawn = 2 * drawn + (uint64_t)response +
			nb_scattered(flow->job->seed * NB_STREAMS_MAX + flow->index);
		while (i < sizes[0] && nb_scattered(drawn) >> 32 >= sizes[i] >> NB_SIZE_BITS)
			i++;
	}
	return sizes[i] & NB_SIZE_MASK ? sizes[i] & NB_SIZE_MASK : 1;
}

static inline size_t nb_largest(const uint64_t *sizes)
{
	return sizes[0] && sizes[sizes[0]] & NB_SIZE_MASK ? sizes[sizes[0]] & NB_SIZE_MASK : 1;
}

static inline size_t nb_longest(const struct nb_flow *flow)
{
	size_t request = nb_largest(flow->job->requests);
	size_t response = nb_largest(flow->job->responses);

	return request > response ? request : response;
}

#define NB_OPEN_LOOP_OPTIONS(rate, arrivals)                                                       \
	[rate] = { "request_rate", "requests a second over all connections: an open loop",         \
		   .minimum = 1, .maximum = 1000000000 },                                          \
	[arrivals] = { "arrivals", "when requests of an open loop are due: evenly, or at random",  \
		       .words = "fixed poisson", .flags = NB_USER, .type = NB_WORD }

/* When the requests of a connection are due. */
struct nb_arrivals {
	double interval; /* ns between two; 0: a closed loop */
	uint64_t due;	 /* when the next one is */
	uint64_t random; /* 0: they come evenly */
};

/* A request in a place of its connection: when it was to begin, when it did, and when it could
 * have: as soon as it was due and the place free. That a client which had begun the one before it
 * in time would have had it free earlier is its own delay, too, as long as the queue lasts. */
struct nb_begun {
	uint64_t intended, actual, could;
};

/* ns from one to the next: of a random one by xorshift64*, and its value as one of an exponential
 * distribution. Source: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled". */
static inline uint64_t nb_gap(struct nb_arrivals *arrivals)
{
	uint64_t *random = &arrivals->random;

	if (!*random)
		return (uint64_t)arrivals->interval;
	*random ^= *random >> 12;
	*random ^= *random << 25;
	*random ^= *random >> 27;
	return (uint64_t)(arrivals->interval *
			  -log(((double)((*random * 0x2545f4914f6cdd1dULL) >> 11) + 0.5) /
			       9007199254740992.0));
}

/* In the thread of the connection: sleeps of an open loop end when they should (prctl(2)), and
 * fixed arrivals are spread over the interval, off the edges that windows of round times have. */
static inline int nb_arrivals_begin(struct nb_arrivals *arrivals, const struct nb_flow *flow,
				    uint64_t rate, uint64_t at_random)
{
	uint64_t streams = flow->job->streams, seed = flow->job->seed * NB_STREAMS_MAX;
	uint64_t halves = at_random ? 2 * streams : 2 * flow->index + 1;

	if (!rate)
		return 0;
	prctl(PR_SET_TIMERSLACK, 1);
	arrivals->interval = (double)streams * 1e9 / (double)rate;
	arrivals->random = at_random ? nb_scattered(seed + flow->index) : 0;
	arrivals->due = nb_now() + nb_gap(arrivals) * halves / 2 / streams;
	return 0;
}

static inline int nb_fail_unmet(struct nb_flow *flow)
{
	return nb_fail(&flow->error, NB_ERR_SYSTEM, "open loop",
		       "ask for a lower rate, or for more connections",
		       "requests that were due in the window could not be sent within %d s after "
		       "it: the rate cannot be met",
		       NB_OWED_SECONDS);
}

/* Whether a request that began then is one of the window. */
static inline int nb_in_window(const struct nb_flow *flow, uint64_t begun)
{
	uint64_t from = atomic_load_explicit(&flow->control->from, memory_order_acquire);

	return from && begun >= from &&
	       begun < atomic_load_explicit(&flow->control->to, memory_order_relaxed);
}

/* A request begins in its place, and has its response. */
static inline void nb_request_begin(struct nb_arrivals *arrivals, struct nb_begun *begun,
				    uint64_t now)
{
	begun->intended = arrivals->interval ? arrivals->due : now;
	begun->actual = now;
	begun->could = begun->could > begun->intended ? begun->could : begun->intended;
	if (arrivals->interval)
		arrivals->due += nb_gap(arrivals);
}

static inline void nb_request_end(const struct nb_arrivals *arrivals, struct nb_begun *begun,
				  const struct nb_flow *flow, struct nb_latencies *latencies,
				  uint64_t now)
{
	uint64_t late = begun->actual - begun->could;

	begun->could = now - late; /* of the next one */
	if (!nb_in_window(flow, begun->intended))
		return;
	nb_histogram_add(&latencies->of[NB_LATENCY], now - begun->intended);
	if (arrivals->interval) {
		nb_histogram_add(&latencies->of[NB_SERVICE], now - begun->actual);
		nb_histogram_add(&latencies->of[NB_LATENESS], late);
	}
}

/* Take what has arrived of a message of `size`, of which *got bytes had before; *got is 0 once it
 * is whole. How many bytes, or <0: verified, and not those of the other side's buffer. */
static inline ssize_t nb_take_message(struct nb_flow *flow, const unsigned char *bytes,
				      size_t length, size_t *got, size_t size)
{
	size_t taken = length < size - *got ? length : size - *got;

	for (size_t i = 0; flow->job->verify && i < taken; i++)
		if (bytes[i] != flow->buffer[*got + i])
			return nb_fail(&flow->error, NB_ERR_SYSTEM, "verify",
				       "leave the cell out here, and report it to the maintainers "
				       "of this kernel and driver",
				       "byte %zu of a %s arrived otherwise than it was sent",
				       *got + i,
				       flow->job->role == NB_ROLE_SEND ? "response" : "request");
	*got = *got + taken == size ? 0 : *got + taken;
	return (ssize_t)taken;
}

#endif
