/* SPDX-License-Identifier: MIT */
/*
 * Transactions over a connection each: connect, request, response, close (crr), or connect and
 * close (cc), to a port that the receiver tells over the connection that stays. The receiver closes
 * first: else the sender's ports would wait for a minute (TIME-WAIT, RFC 9293). */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../clock.h"
#include "../data_socket.h"
#include "../direct.h"
#include "request.h"

enum { MODE, RATE, ARRIVALS };
enum { CRR, CC };
enum { TRANSACTIONS, SENDS, RECEIVES };

/* Calls look again each 10 ms whether the run is given up, or has ended: the connection under way
 * is in the thread's own table of descriptors, where nobody else can end it. */
static const struct timeval LOOK = { .tv_usec = 10000 };
static const uint64_t PATIENCE_NS = 10000000000; /* for one connection */

static const struct nb_field options[] = {
	[MODE] = { "mode", "a request over a connection each (crr), or none (cc)", .flags = NB_USER,
		   .type = NB_WORD, .words = "crr cc" },
	NB_OPEN_LOOP_OPTIONS(RATE, ARRIVALS),
};

static const struct nb_field proofs[] = {
	[TRANSACTIONS] = { "transactions", "connections that did what they should",
			   .flags = NB_MUST_MOVE },
	[SENDS] = NB_CALLS("send_calls", "send(2) calls", 0),
	[RECEIVES] = NB_CALLS("receive_calls", "recv(2) calls", 0),
};

struct state {
	struct nb_latencies *latencies; /* first, for the result */
	union nb_address to, from;	/* of a client */
	int listener;			/* of a server; -1: none */
	struct nb_arrivals arrivals;
	struct nb_begun begun;
	uint64_t answered;
	struct nb_latencies counted;
};

static int open_state(struct nb_flow *flow, struct nb_error *error)
{
	struct state *state = nb_flow_state(flow, sizeof(*state), error);

	if (!state)
		return -NB_ERR_MEMORY;
	state->listener = -1;
	state->latencies = &state->counted;
	return nb_flow_buffer(flow, 2 * nb_longest(flow) + 1, error);
}

static void close_state(struct nb_flow *flow)
{
	struct state *state = flow->state;

	if (state && state->listener >= 0)
		close(state->listener);
}

/* After a call that failed: whether to make it again. */
static int is_again(const struct nb_flow *flow)
{
	const struct state *state = flow->state;

	return errno == EINTR || ((errno == EAGAIN || errno == EALREADY || errno == EINPROGRESS) &&
				  !atomic_load(&flow->control->abort) &&
				  nb_now() < state->begun.actual + PATIENCE_NS);
}

static ssize_t fail(struct nb_flow *flow, const char *what)
{
	const char *remedy = "look at the other side's error";

	if (errno == EADDRNOTAVAIL)
		remedy =
			"widen net.ipv4.ip_local_port_range on the sender, or ask for fewer "
			"connections or a shorter run: each port that was used is kept for a while";
	else if (errno == EAGAIN || errno == EALREADY || errno == EINPROGRESS) {
		errno = ETIMEDOUT;
		remedy = "look at dmesg of both hosts: a firewall's table of connections may be "
			 "full (nf_conntrack)";
	}
	return nb_flow_fail(flow, "connection", remedy, what);
}

static int set_up(int fd, const struct nb_flow *flow, struct nb_error *error)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &LOOK, sizeof(LOOK));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &LOOK, sizeof(LOOK));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return nb_data_options(fd, flow->job, error);
}

static ssize_t send_all(struct nb_flow *flow, int fd, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t sent = nb_send(fd, flow->buffer + done, size - done, MSG_NOSIGNAL);

		nb_count(flow, SENDS, 1);
		if (sent < 0 && !is_again(flow))
			return fail(flow, "sending over it");
		done += sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

/* All of it, and no byte more: `size` 0 waits for the other side to close. */
static ssize_t receive_all(struct nb_flow *flow, int fd, size_t size)
{
	unsigned char *room = flow->buffer + nb_longest(flow);
	size_t done = 0;
	int whole = 0;

	while (!whole) {
		ssize_t got = nb_recv(fd, room, size ? size - done : 1, 0);

		nb_count(flow, RECEIVES, 1);
		if (got < 0 && is_again(flow))
			continue;
		if (got < 0)
			return fail(flow, "receiving over it");
		if (!got != !size)
			return nb_fail(&flow->error, NB_ERR_PEER, "connection",
				       "look at the other side's error", "the other side %s",
				       size ? "closed it before it had sent all"
					    : "sent more than was asked for");
		if (nb_take_message(flow, room, (size_t)got, &done, size) < 0)
			return -1;
		whole = !done;
	}
	return 0;
}

/* The port comes over the connection that stays. */
static int begin_client(struct nb_flow *flow)
{
	struct state *state = flow->state;
	uint16_t port;
	ssize_t got = recv(flow->socket, &port, sizeof(port), MSG_WAITALL);

	if (got != sizeof(port)) {
		errno = got < 0 ? errno : ECONNRESET;
		return (int)fail(flow, "waiting for the receiver's port");
	}
	nb_address_parse(&state->to, flow->job->address, ntohs(port));
	nb_address_parse(&state->from, flow->job->local_address, 0);
	return nb_arrivals_begin(&state->arrivals, flow, flow->job->extra[RATE],
				 flow->job->extra[ARRIVALS]);
}

static ssize_t transact(struct nb_flow *flow, int fd)
{
	struct state *state = flow->state;
	socklen_t length =
		state->to.any.sa_family == AF_INET6 ? sizeof(state->to.v6) : sizeof(state->to.v4);
	int one = 1;

	if (set_up(fd, flow, &flow->error))
		return -1;
	if (flow->job->local_address[0] &&
	    (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)) ||
	     bind(fd, &state->from.any, length)))
		return fail(flow, "binding it to the sender's address");
	while (connect(fd, &state->to.any, length) && errno != EISCONN)
		if (!is_again(flow))
			return fail(flow, "connecting");
	if (flow->job->extra[MODE] == CRR && (send_all(flow, fd, nb_size_of(flow, REQUEST, 0)) ||
					      receive_all(flow, fd, nb_size_of(flow, RESPONSE, 0))))
		return -1;
	state->answered = nb_now();
	nb_request_end(&state->arrivals, &state->begun, flow, &state->counted, state->answered);
	return receive_all(flow, fd, 0);
}

static ssize_t finish(struct nb_flow *flow, int fd, ssize_t status)
{
	close(fd);
	nb_count(flow, TRANSACTIONS, !status);
	return status ? -1 : 1;
}

static ssize_t step_client(struct nb_flow *flow, size_t most)
{
	struct state *state = flow->state;
	uint64_t now = nb_now();
	ssize_t status;
	int fd;

	(void)most;
	if (state->arrivals.interval && state->arrivals.due > now) {
		nb_sleep_until(state->arrivals.due, now);
		return NB_NOTHING;
	}
	nb_request_begin(&state->arrivals, &state->begun, now);
	fd = socket(state->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(flow, "a socket for it");
	status = finish(flow, fd, transact(flow, fd));
	state->begun.could += nb_now() - state->answered; /* until then its place was taken */
	return status;
}

/* Connections that were due in the window. */
static int drain_client(struct nb_flow *flow)
{
	struct state *state = flow->state;
	uint64_t last = nb_now() + NB_OWED_SECONDS * 1000000000ULL;

	while (state->arrivals.interval && state->arrivals.due < atomic_load(&flow->control->to) &&
	       !atomic_load(&flow->control->abort)) {
		ssize_t made = nb_now() < last ? step_client(flow, 0) : nb_fail_unmet(flow);

		if (made < 0 && made != NB_NOTHING)
			return -1;
		nb_add(&flow->bytes, made > 0);
	}
	return 0;
}

/* A port of its own for each stream, told to the sender. */
static int begin_server(struct nb_flow *flow)
{
	struct state *state = flow->state;
	union nb_address at;
	socklen_t length = sizeof(at);

	/* What it accepts has its options, too. */
	state->listener = nb_listen_in_range(flow->job, &flow->error);
	if (state->listener < 0 || set_up(state->listener, flow, &flow->error) ||
	    fcntl(state->listener, F_SETFL, 0) || getsockname(state->listener, &at.any, &length) ||
	    send(flow->socket, &at.v4.sin_port, sizeof(at.v4.sin_port), MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(at.v4.sin_port))
		return flow->error.code ? -1 : (int)fail(flow, "a port to listen on for them");
	return 0;
}

/* The next connection from the sender; -1: the connection that stays has ended, or it failed. */
static int accept_next(struct nb_flow *flow)
{
	struct state *state = flow->state;

	while (!atomic_load_explicit(&flow->control->abort, memory_order_relaxed)) {
		union nb_address from = { 0 };
		socklen_t length = sizeof(from);
		int fd = accept4(state->listener, &from.any, &length, SOCK_CLOEXEC);
		char byte;

		if (fd >= 0 && nb_is_sender(&from, flow->job))
			return fd;
		if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			return (int)fail(flow, "accepting");
		flow->rejected_connections += fd >= 0 && !close(fd);
		if (recv(flow->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
			return -1;
	}
	return -1;
}

static ssize_t step_server(struct nb_flow *flow, size_t most)
{
	struct state *state = flow->state;
	int fd = accept_next(flow);
	ssize_t status = 0;

	(void)most;
	if (fd < 0)
		return flow->error.code ? -1 : 0;
	state->begun.actual = nb_now();
	if (flow->job->extra[MODE] == CRR)
		status = receive_all(flow, fd, nb_size_of(flow, REQUEST, 0))
				 ? -1
				 : send_all(flow, fd, nb_size_of(flow, RESPONSE, 0));
	return finish(flow, fd, status);
}

const struct nb_method nb_send_connect = {
	.name = "connect",
	.about = "connect(2), a request or none, and close(2), over and over",
	.flags = NB_REQUESTS | NB_ALONE | NB_FROM_MEMORY | NB_FROM_ZERO,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_state,
	.begin = begin_client,
	.step = step_client,
	.drain = drain_client,
	.close = close_state,
};

const struct nb_method nb_receive_connect = {
	.name = "connect",
	.about = "accept(2), a response or none, and close(2), over and over",
	.flags = NB_REQUESTS | NB_ALONE | NB_TO_DISCARD,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_state,
	.begin = begin_server,
	.step = step_server,
	.close = close_state,
};
