/* SPDX-License-Identifier: MIT */
/* Transactions over connections that stay: the sender writes a request, the receiver reads it and
 * writes a response. In a closed loop the next request leaves when a response has arrived; in an
 * open one (`request_rate`) when it is due, whatever the receiver does, or as soon as one of
 * `depth` places of its connection is free.
 * A request belongs to the window in which its start lies, the intended one of an open loop; its
 * response is waited for after the window has closed. Source: Gil Tene, "How NOT to Measure
 * Latency", on why an open loop counts from the intended start. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../direct.h"
#include "../method.h"
#include "../pattern.h"
#include "request.h"
#include "socket_options.h"

enum { DEPTH_MAX = 1024, BATCH_BYTES = 64 * 1024 };
enum { WAIT = NB_BUSY_POLL + 1, DEPTH, MODE, RATE, ARRIVALS };
enum { EPOLL, BLOCK, SPIN, BUSY_POLL, BUSY_POLL_US = 50 };
enum { TRANSACTIONS, SENDS, RECEIVES };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[WAIT] = { "wait",
		   "how a thread waits: epoll(7), in the call (block), looking all the time "
		   "(spin), or looking at the device's queue too (busy_poll)",
		   .words = "epoll block spin busy_poll", .flags = NB_USER, .type = NB_WORD },
	[DEPTH] = { "depth", "requests at a time on a connection", .flags = NB_USER, .minimum = 1,
		    .maximum = DEPTH_MAX },
	[MODE] = { "mode",
		   "requests over connections that stay (rr), one over a connection each (crr), "
		   "or connections alone (cc)",
		   .words = "rr", .flags = NB_USER, .type = NB_WORD },
	NB_OPEN_LOOP_OPTIONS(RATE, ARRIVALS),
};

static const struct nb_field proofs[] = {
	[TRANSACTIONS] = { "transactions", "requests that were answered", .flags = NB_MUST_MOVE },
	[SENDS] = NB_CALLS("write_calls", "write(2) calls", NB_MUST_MOVE),
	[RECEIVES] = NB_CALLS("receive_calls", "recv(2) calls", NB_MUST_MOVE),
};

struct client {
	struct nb_latencies *latencies; /* first, for the result */
	unsigned char *received;	/* room for responses, behind the request in the buffer */
	size_t room;
	size_t got;	 /* of the response that arrives */
	size_t awaited;	 /* bytes that responses to what is under way still have */
	size_t answered; /* bytes of requests that were, of which no step has told */
	struct nb_arrivals arrivals;
	uint32_t first, under_way, depth;
	struct nb_begun begun[]; /* `depth`; behind those of a thread's first, what it counts */
};

struct server {
	size_t got;		  /* of the request that arrives */
	size_t written;		  /* of the first response that is owed */
	uint64_t owed;		  /* responses that are not written yet */
	unsigned char *responses; /* several, or one */
	size_t batch, room;	  /* for what arrives: no more than a client has under way */
};

static uint64_t option(const struct nb_flow *flow, size_t place)
{
	return flow->job->extra[place];
}

static uint32_t depth_of(const struct nb_flow *flow)
{
	return option(flow, DEPTH) ? (uint32_t)option(flow, DEPTH) : 1;
}

static int waits_in_calls(const struct nb_job *job)
{
	return job->extra[WAIT] == BLOCK;
}

static int connected(struct nb_flow *flow, struct nb_error *error)
{
	int one = 1, wait = (int)option(flow, WAIT), status;
	unsigned int id = 0;
	socklen_t length = sizeof(id);

	status = nb_socket_option(flow, SOL_SOCKET, SO_BUSY_POLL, "busy_poll",
				  option(flow, NB_BUSY_POLL) / 1000, error);
	/* A response waits for no acknowledgement of the one before. */
	if (status || setsockopt(flow->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return status ? status
			      : nb_fail_errno(error, "set socket option",
					      "report it as a defect of netbench", "TCP_NODELAY");
	flow->wait = wait == BLOCK ? NB_WAIT_BLOCK : NB_WAIT_LATER;
	flow->timed = wait != BLOCK;
	flow->spins = wait == SPIN;
	if (wait == BUSY_POLL) {
		uint32_t own = (uint32_t)(option(flow, NB_BUSY_POLL) / 1000);

		flow->polls = own ? own : BUSY_POLL_US;
		if (getsockopt(flow->socket, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &length) || !id)
			return nb_fail(error, NB_ERR_UNSUPPORTED, "busy polling",
				       "use wait: epoll or spin, or another interface",
				       "no queue of a device (NAPI) has brought a packet of the "
				       "connection, as over lo and veth");
	}
	flow->ready = flow->job->role == NB_ROLE_SEND && flow->timed ? flow->socket : 0;
	return flow->timed ? nb_never_block(flow, error) : 0;
}

/* The pattern is the same from the start of either buffer. */
static int open_client(struct nb_flow *flow, struct nb_error *error)
{
	uint32_t depth = depth_of(flow), is_first = flow->thread_group > 0;
	size_t places = depth * sizeof(struct nb_begun);
	struct client *client = nb_flow_state(
		flow, sizeof(*client) + places + is_first * sizeof(struct nb_latencies), error);
	size_t longest = nb_longest(flow), response = nb_largest(flow->job->responses);

	if (!client)
		return -NB_ERR_MEMORY;
	client->latencies = is_first ? (struct nb_latencies *)(client->begun + depth)
				     : ((struct client *)flow[-1].state)->latencies;
	if (option(flow, RATE) && option(flow, WAIT) == BLOCK)
		return nb_fail(error, NB_ERR_REQUEST, "prepare run", "use wait: epoll or spin",
			       "wait: block waits for responses, and an open loop for none");
	if (depth > 1 && option(flow, WAIT) == BLOCK && response * depth > BATCH_BYTES &&
	    nb_largest(flow->job->requests) * depth > BATCH_BYTES)
		return nb_fail(error, NB_ERR_REQUEST, "prepare run", "use wait: epoll or spin",
			       "wait: block with more than 64 KiB of requests, and of responses, "
			       "under way: each end would wait until the other takes its own");
	client->depth = depth;
	client->room = response * client->depth;
	client->room = client->room < BATCH_BYTES ? client->room : BATCH_BYTES;
	if (nb_flow_buffer(flow, longest + client->room, error))
		return -(int)error->code;
	client->received = flow->buffer + longest;
	return 0;
}

static int open_server(struct nb_flow *flow, struct nb_error *error)
{
	struct server *server = nb_flow_state(flow, sizeof(*server), error);
	size_t longest = nb_longest(flow), response = nb_largest(flow->job->responses);

	if (!server)
		return -NB_ERR_MEMORY;
	server->batch = response < BATCH_BYTES ? BATCH_BYTES / response : 1;
	server->batch = server->batch < depth_of(flow) ? server->batch : depth_of(flow);
	server->batch = flow->job->responses[0] > 1 ? 1 : server->batch;
	server->room = longest * depth_of(flow);
	server->room = server->room < BATCH_BYTES ? server->room : BATCH_BYTES;
	if (nb_flow_buffer(flow, longest + server->batch * response + server->room, error))
		return -(int)error->code;
	server->responses = flow->buffer + longest;
	for (size_t i = 0; i < server->batch; i++)
		memcpy(server->responses + i * response, flow->buffer, response);
	return 0;
}

static int begin_client(struct nb_flow *flow)
{
	struct client *client = flow->state;

	return nb_arrivals_begin(&client->arrivals, flow, option(flow, RATE),
				 option(flow, ARRIVALS));
}

static void count(struct nb_flow *flow, struct client *client, uint64_t now)
{
	nb_request_end(&client->arrivals, &client->begun[client->first], flow, client->latencies,
		       now);
	client->first = client->first + 1 == client->depth ? 0 : client->first + 1;
	client->under_way--;
	client->answered += nb_size_of(flow, REQUEST, 0);
	nb_count(flow, TRANSACTIONS, 1);
}

/* What of responses is there, or comes: bytes, NB_NOTHING, or <0. *now: when they had arrived. */
static ssize_t take_responses(struct nb_flow *flow, struct client *client, uint64_t *now)
{
	ssize_t got, took;

	do {
		got = nb_recv(flow->socket, client->received,
			      client->awaited < client->room ? client->awaited : client->room, 0);
		nb_count(flow, RECEIVES, 1);
	} while (got < 0 && errno == EINTR);
	if (got == 0) {
		errno = ECONNRESET;
		return nb_flow_fail(flow, "receive a response", "look at the receiver's error",
				    "the connection was closed with requests under way");
	}
	if (got < 0)
		return nb_flow_later(flow) ? NB_NOTHING
					   : nb_flow_fail(flow, "receive a response",
							  "look at the receiver's error",
							  "from the connection");
	*now = nb_now();
	client->awaited -= (size_t)got;
	for (ssize_t at = 0; at < got; at += took) {
		took = nb_take_message(flow, client->received + at, (size_t)(got - at),
				       &client->got, nb_size_of(flow, RESPONSE, 0));
		if (took < 0)
			return -1;
		if (!client->got)
			count(flow, client, *now);
	}
	return got;
}

/* Write a request; meanwhile responses are taken, for which a full receiver waits. 0, or <0. */
static int write_request(struct nb_flow *flow, struct client *client, size_t length)
{
	uint64_t now;

	for (size_t done = 0; done < length;) {
		ssize_t sent = nb_write(flow->socket, flow->buffer + done, length - done), got = 0;

		nb_count(flow, SENDS, 1);
		if (sent > 0)
			done += (size_t)sent;
		else if (errno == EAGAIN) {
			nb_flow_poll(flow, POLLIN | POLLOUT);
			got = take_responses(flow, client, &now);
		} else if (errno != EINTR)
			return (int)nb_flow_fail_write(flow);
		if (got < 0 && got != NB_NOTHING)
			return -1;
	}
	return 0;
}

/* Whether one more request, which has a place, may begin: after the stop only what was due in the
 * window, and of a run that is bounded by bytes, whose warm-up alone is stopped, what they leave.
 */
static int may_begin(const struct nb_flow *flow, const struct client *client)
{
	if (client->answered + (client->under_way + 1) * nb_size_of(flow, REQUEST, 0) > flow->left)
		return 0;
	return atomic_load_explicit(&flow->control->stop, memory_order_relaxed) == NB_STOP_NONE ||
	       ((client->arrivals.interval || flow->job->bytes) &&
		client->arrivals.due <
			atomic_load_explicit(&flow->control->to, memory_order_relaxed));
}

/* Requests that are due: their bytes, or <0. */
static ssize_t send_requests(struct nb_flow *flow, struct client *client, uint64_t now)
{
	ssize_t sent = 0;

	flow->wake = 0;
	while (client->under_way < client->depth && may_begin(flow, client)) {
		uint64_t place = client->first + client->under_way;
		size_t size = nb_size_of(flow, REQUEST, client->under_way);

		now = sent ? nb_now() : now;
		if (client->arrivals.interval && client->arrivals.due > now) {
			flow->wake = client->arrivals.due;
			break;
		}
		place -= place < client->depth ? 0 : client->depth;
		nb_request_begin(&client->arrivals, &client->begun[place], now);
		client->awaited += nb_size_of(flow, RESPONSE, client->under_way++);
		if (write_request(flow, client, size))
			return -1;
		sent += (ssize_t)size;
	}
	return sent;
}

static ssize_t step_client(struct nb_flow *flow, size_t most)
{
	struct client *client = flow->state;
	ssize_t answered;
	uint64_t now = 0;

	(void)most;
	/* One that waits in the call sends first: it has nothing else to do before. */
	do {
		ssize_t got = 0;

		if (client->under_way &&
		    (flow->timed || client->under_way == client->depth || !may_begin(flow, client)))
			got = take_responses(flow, client, &now);
		if (got >= 0 || got == NB_NOTHING)
			got = send_requests(flow, client, now ? now : nb_now());
		if (got < 0)
			return got;
	} while (!flow->timed && client->under_way && !client->answered);
	answered = (ssize_t)client->answered; /* as many bytes as the receiver counts */
	client->answered = 0;
	return answered ? answered : NB_NOTHING;
}

static int owes(const struct nb_flow *flow)
{
	const struct client *client = flow->state;

	return client->under_way || may_begin(flow, client);
}

static int drain_client(struct nb_flow *flow)
{
	struct client *client = flow->state;
	uint64_t now;

	while (client->under_way) {
		ssize_t got = take_responses(flow, client, &now);

		if (got == NB_NOTHING && flow->timed)
			nb_flow_poll(flow, POLLIN);
		else if (got < 0)
			return -1;
	}
	nb_add(&flow->bytes, client->answered);
	client->answered = 0;
	return may_begin(flow, client) ? nb_fail_unmet(flow) : 0;
}

/* Write what is owed, as much as the connection takes: its thread serves others too. */
static ssize_t answer(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	struct server *server = flow->state;
	size_t moved = 0;

	(void)from;
	(void)length;
	while (server->owed) {
		size_t size = nb_size_of(flow, RESPONSE, -(int64_t)server->owed);
		size_t many = server->owed < server->batch ? (size_t)server->owed : server->batch;
		ssize_t sent = nb_write(flow->socket, server->responses + server->written,
					many * size - server->written);

		nb_count(flow, SENDS, 1);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && nb_flow_later(flow))
			return nb_flow_leave(flow, server->responses, 1, moved);
		if (sent < 0)
			return nb_flow_fail_write(flow);
		moved += (size_t)sent;
		for (server->written += (size_t)sent; server->written >= size; server->owed--)
			server->written -= size;
	}
	return (ssize_t)moved;
}

static ssize_t step_server(struct nb_flow *flow, size_t most)
{
	struct server *server = flow->state;
	unsigned char *bytes = server->responses + server->batch * nb_largest(flow->job->responses);
	ssize_t got, took, sent;

	(void)most;
	do {
		got = nb_recv(flow->socket, bytes, server->room, 0);
		nb_count(flow, RECEIVES, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_receive(flow, "recv");
	for (ssize_t at = 0; at < got; at += took) {
		took = nb_take_message(flow, bytes + at, (size_t)(got - at), &server->got,
				       nb_size_of(flow, REQUEST, 0));
		if (took < 0)
			return -1;
		server->owed += !server->got;
		nb_count(flow, TRANSACTIONS, !server->got);
	}
	sent = answer(flow, NULL, 0);
	return sent < 0 && sent != NB_NOTHING ? sent : got;
}

const struct nb_method nb_send_request = {
	.name = "request",
	.about = "write(2) of requests, recv(2) of the responses: transactions, not bulk",
	.flags = NB_REQUESTS | NB_FROM_MEMORY | NB_FROM_ZERO,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_client,
	.connected = connected,
	.begin = begin_client,
	.step = step_client,
	.owes = owes,
	.drain = drain_client,
	.alone = waits_in_calls,
};

const struct nb_method nb_receive_request = {
	.name = "request",
	.about = "recv(2) of requests, write(2) of a response to each",
	.flags = NB_REQUESTS | NB_TO_DISCARD,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_server,
	.connected = connected,
	.step = step_server,
	.resume = answer,
	.alone = waits_in_calls,
};
