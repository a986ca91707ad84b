/* SPDX-License-Identifier: MIT */
/* The floor: steps that do nothing, so that the loop itself can be measured. */
#include <limits.h>

#include "../method.h"

static ssize_t step(struct nb_flow *flow, size_t most)
{
	(void)flow;
	return most > SSIZE_MAX ? SSIZE_MAX : (ssize_t)most;
}

const struct nb_method nb_send_null = {
	.name = "null",
	.about = "moves nothing: what the loop itself costs",
	.flags = NB_NO_DATA | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE,
	.step = step,
};

const struct nb_method nb_receive_null = {
	.name = "null",
	.about = "moves nothing: what the loop itself costs",
	.flags = NB_NO_DATA | NB_TO_DISCARD,
	.step = step,
};
