/* SPDX-License-Identifier: MIT */
/*
 * read(2) from the connection into a buffer, or readv(2) into parts of one; with a file as sink,
 * write(2) from there. And recv(2) with MSG_TRUNC: the kernel throws the bytes away without copying
 * them (tcp(7)).
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { VECTORS = NB_RECEIVER_WAIT + 1 };
enum { READS, WRITES };
enum { VECTORS_DEFAULT = 4 };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[NB_RECEIVER_WAIT] = NB_WAIT_OPTION,
};

static const struct nb_field options_of_readv[] = {
	NB_RECEIVER_OPTIONS,
	[NB_RECEIVER_WAIT] = NB_WAIT_OPTION,
	[VECTORS] = { "vectors", "parts of the buffer that one readv(2) fills; left out: 4",
		      .flags = NB_USER, .minimum = 1, .maximum = 1024 },
};

static const struct nb_field proofs[] = {
	[READS] = NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	[WRITES] = NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
};

static const struct nb_field proofs_of_readv[] = {
	[READS] = NB_CALLS("readv_calls", "readv(2) calls", NB_MUST_MOVE),
	[WRITES] = NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
};

static const struct nb_field proofs_of_trunc[] = {
	[READS] = NB_CALLS("recv_calls", "recv(2) calls with MSG_TRUNC", NB_MUST_MOVE),
};

/* After a call: what has come goes to the sink. */
static inline ssize_t take(struct nb_flow *flow, ssize_t got, const char *call)
{
	if (got < 0)
		return nb_flow_fail_receive(flow, call);
	if (flow->sink.fd >= 0 && nb_flow_fill_sink(flow, (size_t)got, WRITES))
		return -1;
	return got;
}

static ssize_t step_read(struct nb_flow *flow, size_t most)
{
	size_t held = flow->sink.held;
	ssize_t got;

	do {
		got = nb_read(flow->socket, flow->buffer + held, most - held);
		nb_count(flow, READS, 1);
	} while (got < 0 && nb_flow_again(flow));
	return take(flow, got, "read");
}

struct parts {
	size_t length; /* of all */
	int count;
	struct iovec each[];
};

/* Equal parts, the first of them longer where `length` does not divide. */
static void divide(struct parts *parts, unsigned char *buffer, size_t length)
{
	size_t share = length / (size_t)parts->count, rest = length % (size_t)parts->count;

	parts->length = length;
	for (int i = 0; i < parts->count; i++) {
		struct iovec *part = &parts->each[i];

		part->iov_base = buffer;
		part->iov_len = share + ((size_t)i < rest);
		buffer += part->iov_len;
	}
}

static int open_parts(struct nb_flow *flow, struct nb_error *error)
{
	uint64_t asked = flow->job->extra[VECTORS];
	size_t count = asked ? (size_t)asked : VECTORS_DEFAULT;
	struct parts *parts =
		nb_flow_state(flow, sizeof(*parts) + count * sizeof(parts->each[0]), error);

	if (!parts)
		return -NB_ERR_MEMORY;
	parts->count = (int)count;
	return nb_flow_buffer(flow, flow->job->chunk, error);
}

static ssize_t step_readv(struct nb_flow *flow, size_t most)
{
	struct parts *parts = flow->state;
	ssize_t got;

	if (flow->sink.held || parts->length != most)
		divide(parts, flow->buffer + flow->sink.held, most - flow->sink.held);
	do {
		got = nb_readv(flow->socket, parts->each, parts->count);
		nb_count(flow, READS, 1);
	} while (got < 0 && nb_flow_again(flow));
	return take(flow, got, "readv");
}

static ssize_t step_trunc(struct nb_flow *flow, size_t most)
{
	ssize_t got;

	do {
		got = nb_recv(flow->socket, NULL, most, MSG_TRUNC);
		nb_count(flow, READS, 1);
	} while (got < 0 && nb_flow_again(flow));
	return got < 0 ? nb_flow_fail_receive(flow, "recv") : got;
}

const struct nb_method nb_receive_read = {
	.name = "read",
	.about = "read(2) into a buffer; write(2) to a file sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS | NB_DIRECT,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = nb_flow_open_buffer,
	.connected = nb_socket_options_set_wait,
	.step = step_read,
};

const struct nb_method nb_receive_readv = {
	.name = "readv",
	.about = "readv(2) into parts of a buffer; write(2) to a file sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS | NB_DIRECT,
	.options = options_of_readv,
	.options_count = NB_LENGTH(options_of_readv),
	.proofs = proofs_of_readv,
	.proofs_count = NB_LENGTH(proofs_of_readv),
	.open = open_parts,
	.connected = nb_socket_options_set_wait,
	.step = step_readv,
};

const struct nb_method nb_receive_trunc = {
	.name = "trunc",
	.about = "recv(2) with MSG_TRUNC: dropped in the kernel",
	.flags = NB_TO_DISCARD,
	NB_TABLE(options),
	.proofs = proofs_of_trunc,
	.proofs_count = NB_LENGTH(proofs_of_trunc),
	.connected = nb_socket_options_set_wait,
	.step = step_trunc,
};
