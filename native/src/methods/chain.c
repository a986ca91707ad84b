/* SPDX-License-Identifier: MIT */
#include "chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int nb_chain_open(struct nb_flow *flow, uint8_t operation, uint64_t depth, int flags,
		  struct nb_error *error)
{
	size_t links = depth ? (size_t)depth : NB_CHAIN_DEPTH;
	struct nb_chain *chain = calloc(1, sizeof(*chain) + links * sizeof(chain->links[0]));
	int status;

	flow->state = chain;
	if (!chain)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use a smaller queue_depth",
			       "no memory for %zu sends", links);
	chain->operation = operation;
	chain->depth = (uint32_t)links;
	chain->flags = MSG_WAITALL | MSG_NOSIGNAL | flags;
	status = nb_areas_open(&chain->areas, flow, error);
	/* A send and its notification are two completions, and notifications of earlier chains
	 * come late. */
	return status ? status
		      : nb_uring_open(&chain->ring, chain->depth, 8 * chain->depth, flow->shares,
				      error);
}

int nb_chain_begin(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;

	if (flow->shares)
		flow->ready = chain->ring.fd;
	return nb_uring_enable(&chain->ring)
		       ? (int)nb_flow_fail(flow, "io_uring_register",
					   "report it as a defect of netbench", "enabling the ring")
		       : 0;
}

static void submit_links(struct nb_flow *flow, struct nb_chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		struct io_uring_sqe *entry = nb_uring_prepare(&chain->ring);

		entry->opcode = chain->operation;
		entry->ioprio = chain->how;
		entry->fd = flow->socket;
		entry->addr = (uint64_t)(uintptr_t)chain->links[i].from;
		entry->len = (uint32_t)chain->links[i].length;
		entry->msg_flags = (uint32_t)chain->flags;
		entry->flags = i + 1 < chain->count ? IOSQE_IO_LINK : 0;
		entry->user_data = i;
		chain->links[i].result = -EINPROGRESS;
	}
	chain->flying = chain->count;
	chain->under_way = 1;
}

/* One completion: of a send, which may announce a notification, or that notification. */
static void take_one(struct nb_chain *chain)
{
	struct nb_completion completion = nb_uring_take(&chain->ring);

	if (completion.flags & IORING_CQE_F_NOTIF) {
		chain->given++;
		chain->copied += ((uint32_t)completion.res & IORING_NOTIF_USAGE_ZC_COPIED) != 0;
		return;
	}
	if (completion.flags & IORING_CQE_F_MORE)
		chain->owed++;
	if (completion.user_data < chain->count)
		chain->links[completion.user_data].result = completion.res;
	chain->flying--;
}

void nb_chain_take(struct nb_chain *chain)
{
	/* What the kernel keeps back makes the ring ready, too, and comes by a call alone. */
	if (nb_uring_keeps_back(&chain->ring))
		nb_uring_submit(&chain->ring, 0, 0);
	for (uint32_t there = nb_uring_ready(&chain->ring); there; there--)
		take_one(chain);
}

static int fail_submit(struct nb_flow *flow)
{
	return (int)nb_flow_fail(flow, "io_uring_enter",
				 errno == EOVERFLOW
					 ? "use a smaller queue_depth: completions were lost"
					 : "look at `dmesg` on this host",
				 "of sends to the connection");
}

/* Wait for all links that are under way. */
static int await_links(struct nb_flow *flow, struct nb_chain *chain)
{
	while (chain->flying) {
		if (nb_uring_submit(&chain->ring, chain->flying, 0))
			return fail_submit(flow);
		nb_chain_take(chain);
	}
	return 0;
}

static int fail_link(struct nb_flow *flow, int number)
{
	errno = number;
	if (number == EFAULT) /* a mapped page is beyond the source's end */
		return (int)nb_flow_fail_source(
			flow, "send", "it was cut short: keep the source as it is during a run");
	if (number == ENOBUFS || number == ENOMEM)
		return (int)nb_flow_fail(flow, "send",
					 "use a smaller chunk or queue_depth, or raise `ulimit -l`",
					 "to the connection");
	return (int)nb_flow_fail(flow, "send", "check the path between the data addresses",
				 "to the connection");
}

/* Forget the links that were sent. A send that was cut short breaks the chain: those after it were
 * not tried, so the rest begins with what it left. */
static int forget_sent(struct nb_flow *flow, struct nb_chain *chain)
{
	uint32_t sent = 0;
	struct nb_chain_link *link;

	chain->under_way = 0;
	while (sent < chain->count && chain->links[sent].result == (int)chain->links[sent].length)
		sent++;
	chain->sends += sent;
	chain->count -= sent;
	memmove(chain->links, chain->links + sent, chain->count * sizeof(chain->links[0]));
	if (!chain->count)
		return 0;
	link = &chain->links[0];
	if (link->result < 0 && link->result != -EINTR)
		return fail_link(flow, -link->result);
	if (link->result > 0) {
		link->from += link->result;
		link->length -= (size_t)link->result;
	}
	chain->shorts++;
	return 0;
}

int nb_chain_flush(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;
	int status = 0;

	while (!status && chain->count) {
		if (!chain->under_way)
			submit_links(flow, chain);
		status = await_links(flow, chain);
		if (!status)
			status = forget_sent(flow, chain);
	}
	return status;
}

/* Submit the links without waiting. NB_NOTHING, or another negative code. */
static int launch(struct nb_flow *flow, struct nb_chain *chain)
{
	submit_links(flow, chain);
	return nb_uring_submit(&chain->ring, 0, 0) ? fail_submit(flow) : NB_NOTHING;
}

/* What has become of links that are under way. 0: there are none, and chunks can be taken in. */
static int settle(struct nb_flow *flow, struct nb_chain *chain)
{
	int status;

	if (!chain->under_way)
		return 0;
	nb_chain_take(chain);
	if (chain->flying)
		return NB_NOTHING;
	status = forget_sent(flow, chain);
	return status || !chain->count ? status : launch(flow, chain);
}

ssize_t nb_chain_step(struct nb_flow *flow, size_t most)
{
	struct nb_chain *chain = flow->state;
	struct nb_chain_link *link;
	int status = flow->shares ? settle(flow, chain) : 0;

	if (status)
		return status;
	link = &chain->links[chain->count++];
	link->from = nb_areas_next(&chain->areas, flow, most, &link->length);
	most = link->length;
	nb_areas_advance(flow, most);
	if (chain->count < chain->depth)
		return (ssize_t)most;
	status = flow->shares ? launch(flow, chain) : nb_chain_flush(flow);
	if (status && status != NB_NOTHING)
		return status;
	return (ssize_t)most;
}

void nb_chain_close(struct nb_flow *flow)
{
	struct nb_chain *chain = flow->state;

	if (chain) {
		nb_uring_close(&chain->ring);
		nb_areas_close(&chain->areas, flow);
	}
	free(chain);
	flow->state = NULL;
}
