/* SPDX-License-Identifier: MIT */
/*
 * Memory that holds what a sender sends: the user's buffer, or each of its files, mapped whole
 * before the run. A mapping stays until the run is over, and its bytes never change: the kernel may
 * still have them long after a call.
 */
#ifndef NB_AREAS_H
#define NB_AREAS_H

#include "../flow.h"

struct nb_area {
	unsigned char *start;
	size_t length;
};

struct nb_areas {
	struct nb_area *each; /* a file each, or the user's buffer */
	size_t count;
};

/* Map what the flow sends; areas that were mapped when it fails are unmapped by nb_areas_close. */
int nb_areas_open(struct nb_areas *areas, struct nb_flow *flow, struct nb_error *error);
void nb_areas_close(struct nb_areas *areas, struct nb_flow *flow);

/* At most `most` bytes of what comes next; *length: how many. */
static inline unsigned char *nb_areas_next(const struct nb_areas *areas, const struct nb_flow *flow,
					   size_t most, size_t *length)
{
	*length = flow->source.count ? nb_source_clamp(&flow->source, most) : most;
	return flow->source.count ? areas->each[flow->source.at].start + flow->source.offset
				  : flow->buffer;
}

/* Go on by what was sent of it. */
static inline void nb_areas_advance(struct nb_flow *flow, size_t sent)
{
	if (flow->source.count)
		nb_source_advance(&flow->source, sent);
}

#endif
