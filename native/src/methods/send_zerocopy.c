/* SPDX-License-Identifier: MIT */
/* send(2) with MSG_ZEROCOPY: the kernel sends the user's pages themselves. Notices in the
 * connection's error queue tell when it no longer needs them, and whether it made a copy after all
 * (kernel: networking/msg_zerocopy.rst).
 * The buffer is sent over and over: its content never changes, so it can be sent again at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../clock.h"
#include "../method.h"
#include "errqueue.h"
#include "socket_options.h"

enum {
	BATCH_DEFAULT = 16,
	POLL_MS = 100,
	POLLS = 50, /* without one completion */
	LATER_NS = 1000000,
	BARREN = 2000, /* waits of 1 ms for memory that others have pinned */
};
enum { BATCH = NB_SENDER_OWN };
enum { SENDS, SHORT, REFUSED, RECEIVES, POLLED, OWED, COMPLETED, COPIED };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[BATCH] = { "batch", "sends between two looks at the error queue; left out: 16",
		    .flags = NB_USER, .minimum = 1, .maximum = 65536 },
};

static const struct nb_field proofs[] = {
	[SENDS] = NB_CALLS("send_calls", "send(2) calls with MSG_ZEROCOPY", NB_MUST_MOVE),
	[SHORT] = NB_CALLS("short_sends", "send(2) calls that took less than asked", 0),
	[REFUSED] = NB_CALLS("refused_sends",
			     "send(2) calls that failed with ENOBUFS: too many completions were "
			     "pending",
			     0),
	[RECEIVES] =
		NB_CALLS("recvmsg_calls", "recvmsg(2) calls for the error queue", NB_MUST_MOVE),
	[POLLED] = NB_CALLS("poll_calls", "poll(2) calls that waited for completions", 0),
	[OWED] = { "zerocopy_sends", "sends for which the kernel owes a completion",
		   .flags = NB_MUST_MOVE },
	[COMPLETED] = { "completions", "sends that the kernel completed", .flags = NB_MUST_MOVE },
	[COPIED] = { "copied", "completions that say that the data was copied after all",
		     .flags = NB_MUST_NOT_MOVE },
};

struct state {
	unsigned int batch;  /* sends between two looks at the error queue */
	unsigned int unseen; /* sends since the error queue was looked at */
	unsigned int barren; /* refused sends while nothing of this connection was pending */
};

/* A send on a socket without a connection gets as far as the limits of pinned memory: with room it
 * fails for another reason. */
static int probe(char *why, size_t room)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;

	if (fd < 0)
		snprintf(why, room, "no TCP socket: %s", strerror(errno));
	else if (!setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)) &&
		 send(fd, &one, 1, MSG_ZEROCOPY | MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		 errno == ENOBUFS)
		snprintf(why, room,
			 "no memory may be pinned: raise `ulimit -l` or net.core.optmem_max, or "
			 "use CAP_IPC_LOCK");
	else
		status = 0;
	if (fd >= 0)
		close(fd);
	return status;
}

static int open_buffer(struct nb_flow *flow, struct nb_error *error)
{
	struct state *state = nb_flow_state(flow, sizeof(*state), error);

	if (!state)
		return -NB_ERR_MEMORY;
	state->batch =
		flow->job->extra[BATCH] ? (unsigned int)flow->job->extra[BATCH] : BATCH_DEFAULT;
	return nb_flow_open_buffer(flow, error);
}

/* Without the option the kernel would pass over the flag, and copy. */
static int connected(struct nb_flow *flow, struct nb_error *error)
{
	int one = 1;

	if (setsockopt(flow->socket, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		return nb_fail_errno(error, "set SO_ZEROCOPY", "use another send method",
				     "on stream %u", flow->index);
	return nb_socket_options_share(flow, error);
}

static uint64_t pending(const struct nb_flow *flow)
{
	return atomic_load_explicit(&flow->proof[OWED], memory_order_relaxed) -
	       atomic_load_explicit(&flow->proof[COMPLETED], memory_order_relaxed);
}

/* One message of the error queue: 1, 0 when there is none, or negative. */
static int take_notice(struct nb_flow *flow)
{
	union nb_notice notice;
	struct msghdr message = { .msg_control = &notice, .msg_controllen = sizeof(notice) };
	uint64_t count;
	ssize_t got;
	int copied;

	do {
		got = nb_recvmsg(flow->socket, &message, MSG_ERRQUEUE);
		nb_count(flow, RECEIVES, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got < 0)
		return (int)nb_flow_fail(flow, "recvmsg", "look at the other side's error",
					 "from the error queue");
	count = nb_completed(&message, &copied);
	nb_count(flow, COMPLETED, count);
	nb_count(flow, COPIED, copied ? count : 0);
	return 1;
}

/* What is there, and more is not waited for: 1 if there was something, 0 if not, or negative. */
static int take_notices(struct nb_flow *flow)
{
	struct state *state = flow->state;
	int status, some = 0;

	state->unseen = 0;
	do {
		status = take_notice(flow);
		some |= status > 0;
	} while (status > 0 && pending(flow));
	return status < 0 ? status : some;
}

/* Until there is a completion, or some time has passed. */
static int await_notice(struct nb_flow *flow, uint64_t ms)
{
	nb_count(flow, POLLED, 1);
	return nb_flow_pause(flow, ms * 1000000, "wait for completions");
}

/* The kernel has no room for one more pending send: of this connection (optmem_max), or of the user
 * (locked memory), of which others may hold all. 0: try again. */
static int await_room(struct nb_flow *flow, size_t length)
{
	struct state *state = flow->state;
	int status = take_notices(flow);

	nb_count(flow, REFUSED, 1);
	if (status)
		return status < 0 ? status : 0;
	if (!pending(flow))
		state->barren++;
	if (state->barren <= BARREN && flow->wait == NB_WAIT_LATER) {
		flow->wake = nb_now() + LATER_NS;
		return NB_NOTHING;
	}
	if (state->barren <= BARREN)
		return await_notice(flow, pending(flow) ? POLL_MS : 1);
	errno = ENOBUFS;
	return nb_fail_errno(&flow->error, "send",
			     "use a smaller chunk, or raise `ulimit -l` or net.core.optmem_max, or "
			     "use CAP_IPC_LOCK",
			     "no memory can be pinned for %zu bytes", length);
}

static ssize_t send_all(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	struct state *state = flow->state;
	size_t done = 0;

	while (done < length) {
		ssize_t sent = nb_send(flow->socket, from + done, length - done,
				       MSG_ZEROCOPY | MSG_NOSIGNAL);
		int status = 0;

		nb_count(flow, SENDS, 1);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && nb_flow_later(flow))
			return nb_flow_leave(flow, from + done, length - done, done);
		if (sent < 0 && errno != ENOBUFS)
			return nb_flow_fail(flow, "send",
					    "check the path between the data addresses",
					    "to the connection");
		if (sent < 0) {
			status = await_room(flow, length - done);
		} else {
			nb_count(flow, OWED, 1);
			state->barren = 0;
			done += (size_t)sent;
			if (done < length)
				nb_count(flow, SHORT, 1);
			if (++state->unseen >= state->batch)
				status = take_notices(flow);
		}
		if (status == NB_NOTHING)
			return nb_flow_leave(flow, from + done, length - done, done);
		if (status < 0)
			return status;
	}
	return (ssize_t)done;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	return send_all(flow, flow->buffer, most);
}

/* A peer or a network may take any time. But what has arrived is done with, and should the kernel
 * not say so, it never will. */
static int drain(struct nb_flow *flow)
{
	for (int looks = 0; pending(flow); looks++) {
		int status = take_notices(flow);

		if (status || nb_flow_unacknowledged(flow))
			looks = 0;
		if (looks > POLLS)
			return nb_fail(&flow->error, NB_ERR_SYSTEM, "wait for completions",
				       "the driver may hold sent packets (virtio_net without "
				       "napi_tx): use another method",
				       "the receiver has everything, but %llu of %llu sends have "
				       "no completion after %d s",
				       (unsigned long long)pending(flow),
				       (unsigned long long)atomic_load_explicit(
					       &flow->proof[OWED], memory_order_relaxed),
				       POLLS * POLL_MS / 1000);
		if (!status)
			status = await_notice(flow, POLL_MS);
		if (status < 0)
			return status;
	}
	return 0;
}

const struct nb_method nb_send_zerocopy = {
	.name = "zerocopy",
	.about = "send(2) with MSG_ZEROCOPY from a buffer in memory",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_BUFFERS,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.probe = probe,
	.open = open_buffer,
	.connected = connected,
	.step = step,
	.resume = send_all,
	.reap = take_notices,
	.drain = drain,
};
