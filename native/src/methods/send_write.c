/* SPDX-License-Identifier: MIT */
/* write(2) of the user's buffer, over and over. */
#include "../method.h"
#include "socket_options.h"

enum { CALLS, SHORT };

static const struct nb_field proofs[] = {
	NB_CALLS("write_calls", "write(2) calls", NB_MUST_MOVE),
	NB_CALLS("short_writes", "write(2) calls that took less than asked", 0),
};

static ssize_t step(struct nb_flow *flow, size_t most)
{
	return nb_flow_write(flow, flow->buffer, most, CALLS, SHORT);
}

static ssize_t resume(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	return nb_flow_write(flow, from, length, CALLS, SHORT);
}

const struct nb_method nb_send_write = {
	.name = "write",
	.about = "write(2) from a buffer in memory",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_BUFFERS,
	NB_TABLE_OF(options, nb_sender_options),
	NB_TABLE(proofs),
	.open = nb_flow_open_buffer,
	.connected = nb_socket_options_share,
	.step = step,
	.resume = resume,
};
