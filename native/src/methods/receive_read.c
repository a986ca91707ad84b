/* SPDX-License-Identifier: MIT */
/* read(2) from the connection into a buffer; with a file as sink, write(2) from there. And recv(2)
 * with MSG_TRUNC: the kernel throws the bytes away without copying them (tcp(7)). */
#include <errno.h>
#include <sys/socket.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { READS, WRITES };

static const struct nb_field proofs[] = {
	[READS] = NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	[WRITES] = NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
};

static const struct nb_field proofs_of_trunc[] = {
	[READS] = NB_CALLS("recv_calls", "recv(2) calls with MSG_TRUNC", NB_MUST_MOVE),
};

static ssize_t step_read(struct nb_flow *flow, size_t most)
{
	size_t held = flow->sink.held;
	ssize_t got;

	do {
		got = nb_read(flow->socket, flow->buffer + held, most - held);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_receive(flow, "read");
	if (flow->sink.fd >= 0 && nb_flow_fill_sink(flow, (size_t)got, WRITES))
		return -1;
	return got;
}

static ssize_t step_trunc(struct nb_flow *flow, size_t most)
{
	ssize_t got;

	do {
		got = nb_recv(flow->socket, NULL, most, MSG_TRUNC);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? nb_flow_fail_receive(flow, "recv") : got;
}

const struct nb_method nb_receive_read = {
	.name = "read",
	.about = "read(2) into a buffer; write(2) to a file sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS | NB_DIRECT,
	NB_TABLE_OF(options, nb_receiver_options),
	NB_TABLE(proofs),
	.open = nb_flow_open_buffer,
	.connected = nb_socket_options_share,
	.step = step_read,
};

const struct nb_method nb_receive_trunc = {
	.name = "trunc",
	.about = "recv(2) with MSG_TRUNC: dropped in the kernel",
	.flags = NB_TO_DISCARD,
	NB_TABLE_OF(options, nb_receiver_options),
	NB_TABLE_OF(proofs, proofs_of_trunc),
	.connected = nb_socket_options_share,
	.step = step_trunc,
};
