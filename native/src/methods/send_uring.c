/* SPDX-License-Identifier: MIT */
/* IORING_OP_SEND of an io_uring(7), in chains (chain.h), from memory, or from a file mapped before
 * the run. */
#include <sys/socket.h>

#include "../method.h"
#include "chain.h"
#include "socket_options.h"

enum { DEPTH = NB_SENDER_OWN, MORE };
enum { ENTERS, SENDS, SHORT };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[DEPTH] = NB_CHAIN_OPTION,
	[MORE] = NB_MSG_MORE_OPTION,
};

static const struct nb_field proofs[] = {
	[ENTERS] = NB_CALLS("io_uring_enter_calls", "io_uring_enter(2) calls", NB_MUST_MOVE),
	[SENDS] = { "sends", "IORING_OP_SEND requests that sent all of their chunk",
		    .flags = NB_MUST_MOVE },
	[SHORT] = { "short_sends", "requests that sent less than asked, and broke their chain" },
};

static int probe(char *why, size_t room)
{
	static const struct nb_uring_operation operations[] = { { IORING_OP_SEND, "IORING_OP_SEND",
								  "5.6" } };

	return nb_uring_probe(operations, NB_LENGTH(operations), why, room);
}

static int open_chain(struct nb_flow *flow, struct nb_error *error)
{
	return nb_chain_open(flow, IORING_OP_SEND, flow->job->extra[DEPTH],
			     flow->job->extra[MORE] ? MSG_MORE : 0, error);
}

static void show(struct nb_flow *flow)
{
	const struct nb_chain *chain = flow->state;

	nb_set_count(flow, ENTERS, chain->ring.calls);
	nb_set_count(flow, SENDS, chain->sends);
	nb_set_count(flow, SHORT, chain->shorts);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	const struct nb_chain *chain = flow->state;
	ssize_t sent = nb_chain_step(flow, most);

	if (sent <= 0 || !chain->count || flow->shares) /* else nothing was submitted */
		show(flow);
	return sent;
}

static int drain(struct nb_flow *flow)
{
	int status = nb_chain_flush(flow);

	show(flow);
	return status;
}

const struct nb_method nb_send_uring = {
	.name = "uring",
	.about = "io_uring(7): chains of IORING_OP_SEND from memory, or from a file mapped before "
		 "the run",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_FROM_BUFFER |
		 NB_BUFFERS | NB_DESCRIPTORS,
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
