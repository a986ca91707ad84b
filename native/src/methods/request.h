/* SPDX-License-Identifier: MIT */
/* What both methods of requests do. */
#ifndef NB_REQUEST_H
#define NB_REQUEST_H

#include "../histogram.h"
#include "../method.h"

#define NB_REQUEST_SIZE(name, about)                                                               \
	{ name, about, .flags = NB_USER, .type = NB_SIZE, .minimum = 1, .maximum = 16 << 20 }

/* Whether a request that began then is one of the window. */
static inline int nb_in_window(const struct nb_flow *flow, uint64_t begun)
{
	uint64_t from = atomic_load_explicit(&flow->control->from, memory_order_acquire);

	return from && begun >= from &&
	       begun < atomic_load_explicit(&flow->control->to, memory_order_relaxed);
}

/* Fail on bytes that are not those of the other side's buffer, `from` bytes into one of `whole`,
 * where they are to be verified. 0, or <0. */
static inline int nb_check_bytes(struct nb_flow *flow, const unsigned char *bytes, size_t length,
				 size_t from, size_t whole)
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

#endif
