/* SPDX-License-Identifier: MIT */
/* recv(2) with MSG_TRUNC: the kernel throws the bytes away without copying them (tcp(7)). */
#include <errno.h>
#include <sys/socket.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { CALLS };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[NB_RECEIVER_WAIT] = NB_WAIT_OPTION,
};

static const struct nb_field proofs[] = {
	NB_CALLS("recv_calls", "recv(2) calls with MSG_TRUNC", NB_MUST_MOVE),
};

static ssize_t step(struct nb_flow *flow, size_t most)
{
	ssize_t got;

	do {
		nb_flow_await(flow, POLLIN);
		got = nb_recv(flow->socket, NULL, most, MSG_TRUNC);
		nb_count(flow, CALLS, 1);
	} while (got < 0 && nb_flow_again(flow));
	return got < 0 ? nb_flow_fail_receive(flow, "recv") : got;
}

const struct nb_method nb_receive_trunc = {
	.name = "trunc",
	.about = "recv(2) with MSG_TRUNC: dropped in the kernel",
	.flags = NB_TO_DISCARD,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.connected = nb_socket_options_set_wait,
	.step = step,
};
