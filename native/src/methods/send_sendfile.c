/* SPDX-License-Identifier: MIT */
/* sendfile(2) from the source to the connection. */
#include <errno.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { CALLS, SHORT };

static const struct nb_field proofs[] = {
	NB_CALLS("sendfile_calls", "sendfile(2) calls", NB_MUST_MOVE),
	NB_CALLS("short_sendfiles", "sendfile(2) calls that moved less than asked", 0),
};

static inline ssize_t send_some(struct nb_flow *flow, size_t length)
{
	off_t offset = (off_t)flow->source.offset;
	ssize_t moved = nb_sendfile(flow->socket, nb_source_fd(&flow->source), &offset, length);

	nb_count(flow, CALLS, 1);
	return moved;
}

static inline ssize_t count_sent(struct nb_flow *flow, size_t length, ssize_t moved)
{
	if ((size_t)moved < length)
		nb_count(flow, SHORT, 1);
	nb_source_advance(&flow->source, (size_t)moved);
	return moved;
}

static __attribute__((noinline)) ssize_t send_again(struct nb_flow *flow, size_t length,
						    ssize_t moved)
{
	while (moved < 0 && errno == EINTR)
		moved = send_some(flow, length);
	if (moved < 0 && nb_flow_later(flow))
		return NB_NOTHING;
	return moved < 0 ? nb_flow_fail(flow, "sendfile", "check the disk that holds the source",
					"from the source to the connection")
			 : count_sent(flow, length, moved);
}

/* The usual case is one call, and is what a chunk costs. */
static ssize_t step(struct nb_flow *flow, size_t most)
{
	size_t length = nb_source_clamp(&flow->source, most);
	ssize_t moved = send_some(flow, length);

	return __builtin_expect(moved > 0, 1) ? count_sent(flow, length, moved)
					      : send_again(flow, length, moved);
}

const struct nb_method nb_send_sendfile = {
	.name = "sendfile",
	.about = "sendfile(2) from page cache to socket",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE,
	NB_TABLE_OF(options, nb_sender_options),
	NB_TABLE(proofs),
	.connected = nb_socket_options_share,
	.step = step,
};
