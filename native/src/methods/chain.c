/* SPDX-License-Identifier: MIT */
#include "chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int nb_chain_open(struct nb_flow *flow, uint8_t operation, uint64_t depth, struct nb_error *error)
{
	uint32_t links = nb_uring_depth(depth, flow->job->chunk);
	struct nb_chain *chain =
		nb_flow_state(flow, sizeof(*chain) + links * sizeof(chain->links[0]), error);
	int status;

	if (!chain)
		return -NB_ERR_MEMORY;
	chain->operation = operation;
	chain->depth = links;
	status = nb_flow_open_buffer(flow, error);
	/* A send and its notification are two completions, and notifications of earlier chains
	 * come late. */
	return status ? status
		      : nb_uring_open(&chain->ring, chain->depth, 8 * chain->depth, flow->shares,
				      error);
}

/* What is the same in each request stands in the ring before the first: the kernel reads it alone.
 */
static void prepare_requests(const struct nb_flow *flow, const struct nb_chain *chain)
{
	for (uint32_t i = 0; i <= chain->ring.mask; i++) {
		struct io_uring_sqe *entry = &chain->ring.entries[i];

		entry->opcode = chain->operation;
		entry->ioprio = chain->how;
		entry->fd = flow->socket;
		entry->msg_flags = MSG_WAITALL | MSG_NOSIGNAL;
	}
}

int nb_chain_begin(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;

	if (flow->shares)
		flow->ready = chain->ring.fd;
	prepare_requests(flow, chain);
	return nb_uring_begin(flow, &chain->ring);
}

/* The links are complete: what is prepared next is not of their chain. */
static void end_links(struct nb_chain *chain)
{
	chain->ring.entries[(chain->ring.prepared - 1) & chain->ring.mask].flags = 0;
	chain->ring.unsent = chain->flying = chain->count;
	chain->whole = 0;
	chain->under_way = 1;
}

/* A completion is of a send, which may announce a notification, or that notification. */
static void take_there(struct nb_chain *chain, uint32_t head, uint32_t tail)
{
	const struct nb_uring *ring = &chain->ring;
	uint32_t sends = 0, whole = 0;

	for (; head != tail; head++) {
		const struct io_uring_cqe *completion =
			&ring->completions[head & ring->completions_mask];
		struct nb_chain_link *link = &chain->links[completion->user_data];

		if (completion->flags & IORING_CQE_F_NOTIF) {
			chain->given++;
			chain->copied += !!(completion->res & IORING_NOTIF_USAGE_ZC_COPIED);
			continue;
		}
		if (completion->flags & IORING_CQE_F_MORE)
			chain->owed++;
		link->result = completion->res;
		if (completion->res == (int)link->length)
			whole++;
		sends++;
	}
	chain->whole += whole;
	chain->flying -= sends;
}

void nb_chain_take(struct nb_chain *chain)
{
	struct nb_uring *ring = &chain->ring;
	uint32_t tail;

	/* What the kernel keeps back makes the ring ready, too, and comes by a call alone. */
	if (nb_uring_keeps_back(ring))
		nb_uring_submit(ring, 0, 0);
	tail = __atomic_load_n(ring->completed, __ATOMIC_ACQUIRE);
	take_there(chain, *ring->taken, tail);
	__atomic_store_n(ring->taken, tail, __ATOMIC_RELEASE);
}

static int await_links(struct nb_flow *flow, struct nb_chain *chain)
{
	while (chain->flying) {
		if (nb_uring_submit(&chain->ring, chain->flying, 0))
			return nb_uring_fail(flow);
		nb_chain_take(chain);
	}
	return 0;
}

static int fail_link(struct nb_flow *flow, int number)
{
	errno = number;
	return (int)nb_flow_fail(
		flow, "send",
		number == ENOBUFS || number == ENOMEM
			? "use a smaller chunk or queue_depth, or raise `ulimit -l`"
			: "check the path between the data addresses",
		"to the connection");
}

/* Some links did not send all of their chunk. The first of these breaks the chain: those after it
 * were not tried, so the rest begins with what it left. */
static int keep_rest(struct nb_flow *flow, struct nb_chain *chain)
{
	struct nb_chain_link *link;
	uint32_t sent = 0;

	while (chain->links[sent].result == (int)chain->links[sent].length)
		sent++;
	chain->sends += sent;
	chain->count -= sent;
	memmove(chain->links, chain->links + sent, chain->count * sizeof(chain->links[0]));
	link = &chain->links[0];
	if (link->result < 0 && link->result != -EINTR)
		return fail_link(flow, -link->result);
	if (link->result > 0) {
		link->from += link->result;
		link->length -= (size_t)link->result;
	}
	chain->shorts++;
	for (uint32_t i = 0; i < chain->count; i++)
		nb_chain_prepare(chain, i);
	return 0;
}

static int forget_sent(struct nb_flow *flow, struct nb_chain *chain)
{
	chain->under_way = 0;
	if (chain->whole != chain->count)
		return keep_rest(flow, chain);
	chain->sends += chain->count;
	chain->count = 0;
	return 0;
}

int nb_chain_flush(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;
	int status = 0;

	while (!status && chain->count) {
		if (!chain->under_way)
			end_links(chain);
		status = await_links(flow, chain);
		if (!status)
			status = forget_sent(flow, chain);
	}
	return status;
}

int nb_chain_launch(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;

	end_links(chain);
	return nb_uring_submit(&chain->ring, 0, 0) ? nb_uring_fail(flow) : NB_NOTHING;
}

int nb_chain_settle(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;
	int status;

	if (!chain->under_way)
		return 0;
	nb_chain_take(chain);
	if (chain->flying)
		return NB_NOTHING;
	status = forget_sent(flow, chain);
	return status || !chain->count ? status : nb_chain_launch(flow);
}

void nb_chain_close(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;

	if (chain)
		nb_uring_close(&chain->ring);
}
