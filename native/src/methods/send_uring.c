/* SPDX-License-Identifier: MIT */
/* IORING_OP_SEND of an io_uring(7), in chains (chain.h), from a buffer; and IORING_OP_SEND_ZC
 * from one that is registered before the run: then the kernel sends the user's pages themselves.
 * Each such send has a notification when the kernel no longer needs them; with
 * IORING_SEND_ZC_REPORT_USAGE (Linux 6.1) it says whether the kernel made a copy after all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../clock.h"
#include "../method.h"
#include "chain.h"
#include "socket_options.h"

enum { DEPTH = NB_SENDER_OWN };
enum { ENTERS, SENDS, SHORT, OWED, GIVEN, COPIED };
enum {
	WAIT_NS = 100000000,
	LATER_NS = 1000000,
	WAITS = 50, /* without one notification, when the other side has everything */
};

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[DEPTH] = NB_CHAIN_OPTION,
};

/* Rows are told apart by their places, so each method has its own. */
#define SEND_PROOFS(operation)                                                                     \
	[ENTERS] = NB_CALLS("io_uring_enter_calls", "io_uring_enter(2) calls", NB_MUST_MOVE),      \
	[SENDS] = { "sends", operation " requests that sent all of their chunk",                   \
		    .flags = NB_MUST_MOVE },                                                       \
	[SHORT] = { "short_sends", "requests that sent less than asked, and broke their chain" }

static const struct nb_field proofs[] = { SEND_PROOFS("IORING_OP_SEND") };

static const struct nb_field proofs_zc[] = {
	SEND_PROOFS("IORING_OP_SEND_ZC"),
	[OWED] = { "zerocopy_sends", "sends for which the kernel owes a notification",
		   .flags = NB_MUST_MOVE },
	[GIVEN] = { "notifications", "sends whose pages the kernel no longer needs",
		    .flags = NB_MUST_MOVE },
	[COPIED] = { "copied", "notifications that say that the data was copied after all",
		     .flags = NB_MUST_NOT_MOVE },
};

static int probe(char *why, size_t room)
{
	return nb_uring_probe(IORING_OP_SEND, "IORING_OP_SEND", "5.6", why, room);
}

/* Registered memory is locked: with no limit for that left, even a page is refused. */
static int probe_buffer(char *why, size_t room)
{
	static unsigned char page[4096];
	const struct iovec buffer = { page, sizeof(page) };
	struct nb_uring ring = { 0 };
	struct nb_error error;
	int status = nb_uring_open(&ring, 1, 2, 0, &error);

	if (status) {
		snprintf(why, room, "%s", error.message);
		return -1;
	}
	status = nb_uring_register(&ring, IORING_REGISTER_BUFFERS, &buffer, 1);
	if (status)
		snprintf(why, room,
			 "no buffer may be registered (%s): raise `ulimit -l`, or use CAP_IPC_LOCK",
			 strerror(errno));
	nb_uring_close(&ring);
	return status;
}

static int probe_zc(char *why, size_t room)
{
	return nb_uring_probe(IORING_OP_SEND_ZC, "IORING_OP_SEND_ZC", "6.0", why, room)
		       ? -1
		       : probe_buffer(why, room);
}

static int open_chain(struct nb_flow *flow, struct nb_error *error)
{
	return nb_chain_open(flow, IORING_OP_SEND, flow->job->extra[DEPTH], error);
}

static int open_chain_zc(struct nb_flow *flow, struct nb_error *error)
{
	int status = nb_chain_open(flow, IORING_OP_SEND_ZC, flow->job->extra[DEPTH], error);
	struct nb_chain *chain = flow->state;
	struct iovec buffer;

	if (status)
		return status;
	buffer = (struct iovec){ flow->buffer, (size_t)flow->job->chunk };
	chain->how = IORING_RECVSEND_FIXED_BUF | IORING_SEND_ZC_REPORT_USAGE;
	if (nb_uring_register(&chain->ring, IORING_REGISTER_BUFFERS, &buffer, 1))
		return nb_fail_errno(error, "prepare run",
				     "use a smaller chunk, or raise `ulimit -l`, or use "
				     "CAP_IPC_LOCK",
				     "registering a buffer of %zu bytes", buffer.iov_len);
	return 0;
}

static void show(struct nb_flow *flow)
{
	const struct nb_chain *chain = flow->state;

	nb_set_count(flow, ENTERS, chain->ring.calls);
	nb_set_count(flow, SENDS, chain->sends);
	nb_set_count(flow, SHORT, chain->shorts);
	nb_set_count(flow, OWED, chain->owed); /* without notifications nobody reads these */
	nb_set_count(flow, GIVEN, chain->given);
	nb_set_count(flow, COPIED, chain->copied);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	const struct nb_chain *chain = flow->state;
	ssize_t sent = nb_chain_step(flow, most);

	if (sent <= 0 || !chain->count || flow->shares) /* else nothing was submitted */
		show(flow);
	return sent;
}

/* Until at most `most` notifications are owed. A peer or a network may take any time; but what has
 * arrived is done with, and should the kernel not say so, it never will. */
static int await_notifications(struct nb_flow *flow, uint64_t most)
{
	struct nb_chain *chain = flow->state;

	for (int waits = 0; chain->owed - chain->given > most; waits++) {
		uint64_t before = chain->given;

		if (nb_uring_submit(&chain->ring, 1, WAIT_NS) && errno != ETIME)
			return (int)nb_flow_fail(flow, "wait for notifications",
						 "look at `dmesg` on this host",
						 "from the io_uring");
		nb_chain_take(chain);
		if (chain->given != before) {
			waits = 0;
			continue;
		}
		if (nb_flow_pause(flow, 0, "wait for notifications"))
			return -1;
		if (nb_flow_unacknowledged(flow))
			waits = 0;
		if (waits > WAITS)
			return nb_fail(&flow->error, NB_ERR_SYSTEM, "wait for notifications",
				       "the driver may hold sent packets (virtio_net without "
				       "napi_tx): use another method",
				       "the receiver has everything, but %llu of %llu sends have "
				       "no notification",
				       (unsigned long long)(chain->owed - chain->given),
				       (unsigned long long)chain->owed);
	}
	return 0;
}

/* Notifications make the ring ready; that the connection is no more does not. */
static ssize_t await_later(struct nb_flow *flow)
{
	if (nb_flow_pause(flow, 0, "wait for notifications"))
		return -1;
	flow->wake = nb_now() + LATER_NS;
	return NB_NOTHING;
}

/* The queue of completions has room for the notifications of some chains. */
static ssize_t step_zc(struct nb_flow *flow, size_t most)
{
	struct nb_chain *chain = flow->state;
	ssize_t sent;

	if (flow->shares) { /* the ring is ready again when they come */
		nb_chain_take(chain);
		/* What became of the last chain comes first: after an error nothing else may come.
		 */
		if (!chain->under_way && chain->owed - chain->given > 4 * chain->depth)
			return await_later(flow);
	}
	sent = nb_chain_step(flow, most);
	if (sent > 0 && !chain->count && await_notifications(flow, 4 * chain->depth))
		sent = -1;
	if (sent <= 0 || !chain->count || flow->shares) /* else nothing was submitted */
		show(flow);
	return sent;
}

/* Without notifications none are owed. */
static int drain(struct nb_flow *flow)
{
	int status = nb_chain_flush(flow);

	if (!status)
		status = await_notifications(flow, 0);
	show(flow);
	return status;
}

const struct nb_method nb_send_uring = {
	.name = "uring",
	.about = "io_uring(7): chains of IORING_OP_SEND from a buffer in memory",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_BUFFERS | NB_THREAD_EACH,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.probe = probe,
	.open = open_chain,
	.connected = nb_socket_options_set,
	.begin = nb_chain_begin,
	.step = step,
	.drain = drain,
	.close = nb_chain_close,
};

const struct nb_method nb_send_uring_zc = {
	.name = "uring_zc",
	.about = "io_uring(7): chains of IORING_OP_SEND_ZC from a registered buffer",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_BUFFERS | NB_THREAD_EACH,
	NB_TABLE(options),
	NB_TABLE_OF(proofs, proofs_zc),
	.probe = probe_zc,
	.open = open_chain_zc,
	.connected = nb_socket_options_set,
	.begin = nb_chain_begin,
	.step = step_zc,
	.drain = drain,
	.close = nb_chain_close,
};
