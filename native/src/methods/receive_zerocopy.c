/* SPDX-License-Identifier: MIT */
/* getsockopt(2) with TCP_ZEROCOPY_RECEIVE: the kernel maps the pages of packets where the
 * connection was mapped before the run, and tells how many bytes it cannot map, which read(2)
 * copies. It maps whole pages alone: what a sender's NIC or memory laid out otherwise is read (E.
 * Dumazet, tools/testing/selftests/net/tcp_mmap.c of the kernel). */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { ASKS, READS, POLLS, WRITES, MAPPED, COPIED };

static const struct nb_field proofs[] = {
	[ASKS] = NB_CALLS("getsockopt_calls", "getsockopt(2) calls with TCP_ZEROCOPY_RECEIVE",
			  NB_MUST_MOVE),
	[READS] = NB_CALLS("read_calls", "read(2) calls for what could not be mapped", 0),
	[POLLS] = NB_CALLS("poll_calls", "poll(2) calls that waited for data", 0),
	[WRITES] = NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
	[MAPPED] = { "mapped_bytes", "bytes that came as mapped pages", .unit = NB_UNIT_BYTES,
		     .flags = NB_MUST_MOVE },
	[COPIED] = { "copied_bytes", "bytes that could not be mapped, and were read",
		     .unit = NB_UNIT_BYTES },
};

static size_t mappable(const struct nb_flow *flow)
{
	return (size_t)flow->job->chunk & ~(flow->page - 1);
}

static int connected(struct nb_flow *flow, struct nb_error *error)
{
	void *map = mappable(flow)
			    ? mmap(NULL, mappable(flow), PROT_READ, MAP_SHARED, flow->socket, 0)
			    : NULL;

	if (map == MAP_FAILED)
		return nb_fail_errno(error, "map connection", "use another receive method",
				     "stream %u, %zu bytes", flow->index, mappable(flow));
	flow->state = map;
	return nb_socket_options_share(flow, error);
}

/* Bytes to the sink: the same again, or negative. */
static inline ssize_t keep(struct nb_flow *flow, const void *bytes, size_t length)
{
	if (__builtin_expect(flow->sink.fd >= 0, 0) && length &&
	    nb_flow_write_sink(flow, bytes, length, WRITES))
		return -1;
	return (ssize_t)length;
}

static inline ssize_t copy(struct nb_flow *flow, size_t most)
{
	ssize_t got;

	do {
		got = nb_read(flow->socket, flow->buffer, most);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_receive(flow, "read");
	nb_count(flow, COPIED, (uint64_t)got);
	return keep(flow, flow->buffer, (size_t)got);
}

/* The call failed. At the end of the stream the kernel says EIO, and read(2) 0. Returns whether it
 * is the end, or negative. */
static __attribute__((noinline)) ssize_t fail_map(struct nb_flow *flow)
{
	if (errno == EIO || errno == EINTR)
		return errno == EIO;
	return nb_flow_fail(flow, "getsockopt", "look at the sender's error",
			    "mapping data of the connection");
}

/* Map what has come: bytes, or negative; *rest: bytes that must be read now. */
static inline ssize_t map(struct nb_flow *flow, size_t most, size_t *rest)
{
	struct tcp_zerocopy_receive wish = { .address = (uint64_t)(uintptr_t)flow->state,
					     .length = (uint32_t)(most & ~(flow->page - 1)) };
	socklen_t length = offsetof(struct tcp_zerocopy_receive, copybuf_address);
	int status = nb_getsockopt(flow->socket, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &wish, &length);

	nb_count(flow, ASKS, 1);
	if (__builtin_expect(status, 0)) {
		ssize_t end = fail_map(flow);

		*rest = end > 0 ? most : 0;
		return end < 0 ? end : 0;
	}
	if (__builtin_expect(wish.err, 0)) {
		errno = -wish.err;
		return nb_flow_fail(flow, "getsockopt", "look at the sender's error",
				    "from the connection");
	}
	*rest = wish.recv_skip_hint < most ? wish.recv_skip_hint : most;
	nb_count(flow, MAPPED, wish.length);
	return keep(flow, flow->state, wish.length);
}

/* Wait for data, unless the thread serves others. Returns whether there is none to come that could
 * be mapped: read(2) tells. */
static __attribute__((noinline)) int ended(struct nb_flow *flow)
{
	struct pollfd data = { .fd = flow->socket, .events = POLLIN | POLLRDHUP };

	poll(&data, 1, flow->wait == NB_WAIT_LATER ? 0 : -1);
	nb_count(flow, POLLS, 1);
	return (data.revents & ~POLLIN) != 0;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	size_t rest = flow->state ? 0 : most;
	ssize_t mapped = 0, copied;

	while (!mapped && !rest) {
		mapped = map(flow, most, &rest);
		if (mapped || rest)
			break;
		if (ended(flow))
			rest = most;
		else if (flow->wait == NB_WAIT_LATER)
			return NB_NOTHING;
	}
	if (mapped < 0 || !rest || (size_t)mapped == most)
		return mapped;
	if (rest > most - (size_t)mapped)
		rest = most - (size_t)mapped;
	copied = copy(flow, rest);
	if (copied == NB_NOTHING && mapped)
		return mapped;
	return copied < 0 ? copied : mapped + copied;
}

static void close_map(struct nb_flow *flow)
{
	if (flow->state)
		munmap(flow->state, mappable(flow));
	flow->state = NULL;
}

const struct nb_method nb_receive_zerocopy = {
	.name = "zerocopy",
	.about = "TCP_ZEROCOPY_RECEIVE maps pages of packets; read(2) what cannot be mapped",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS,
	NB_TABLE_OF(options, nb_receiver_options),
	NB_TABLE(proofs),
	.open = nb_flow_open_buffer,
	.connected = connected,
	.step = step,
	.close = close_map,
};
