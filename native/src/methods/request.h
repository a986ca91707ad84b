/* SPDX-License-Identifier: MIT */
/* What both methods of requests do. */
#ifndef NB_REQUEST_H
#define NB_REQUEST_H

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
	uint64_t number = atomic_load_explicit(&flow->proof[0], memory_order_relaxed);
	uint64_t drawn = 2 * (number + (uint64_t)ahead) + (uint64_t)response, i = 1;

	if (sizes[0] > 1)
		drawn += nb_scattered(flow->job->seed * NB_STREAMS_MAX + flow->index);
	while (i < sizes[0] && nb_scattered(drawn) >> 32 >= sizes[i] >> NB_SIZE_BITS)
		i++;
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

/* Whether a request that began then is one of the window. */
static inline int nb_in_window(const struct nb_flow *flow, uint64_t begun)
{
	uint64_t from = atomic_load_explicit(&flow->control->from, memory_order_acquire);

	return from && begun >= from &&
	       begun < atomic_load_explicit(&flow->control->to, memory_order_relaxed);
}

/* Take what has arrived of a message of `size`, of which *got bytes had before; *got is 0 once it
 * is whole. How many bytes, or <0: they are not those of the other side's buffer, and are verified.
 */
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
