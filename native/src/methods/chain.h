/* SPDX-License-Identifier: MIT */
/* Sends of an io_uring that go out in their order: a chain of linked requests with MSG_WAITALL,
 * submitted at once when it is as long as `queue_depth` says. Requests that are not linked may
 * overtake one another, and a chain is over before the next one begins. */
#ifndef NB_CHAIN_H
#define NB_CHAIN_H

#include "../method.h"
#include "uring.h"

struct nb_chain_link {
	const unsigned char *from;
	size_t length;
	int result; /* of one that did not send all of it: bytes, or a negative errno */
};

struct nb_chain {
	struct nb_uring ring;
	uint8_t operation; /* IORING_OP_... */
	uint16_t how;	   /* sqe->ioprio of each */
	uint32_t depth;
	uint32_t count;	 /* prepared, not sent */
	uint32_t flying; /* of these: submitted, without a completion */
	uint32_t whole;	 /* of these: sent all of their chunk */
	int under_way;	 /* they were submitted, and are not looked at yet */
	uint64_t shorts;
	uint64_t sends;	 /* that are done */
	uint64_t owed;	 /* notifications that the kernel will give */
	uint64_t given;	 /* that it has given */
	uint64_t copied; /* of these: it made a copy */
	struct nb_chain_link links[];
};

/* The option of the methods that chain. */
#define NB_CHAIN_OPTION                                                                            \
	{ "queue_depth", "sends submitted at once, as a chain; left out: 8, of small ones 64 KiB", \
	  .flags = NB_USER, .minimum = 1, .maximum = 1024 }

/* Make flow->state a chain of at most `depth` sends, 0: as many as usual. */
int nb_chain_open(struct nb_flow *flow, uint8_t operation, uint64_t depth, struct nb_error *error);
int nb_chain_begin(struct nb_flow *flow);
/* Send what has come together. 0, or negative with flow->error filled. */
int nb_chain_flush(struct nb_flow *flow);
/* In a thread group: before a chunk is taken in, 0, or NB_NOTHING as long as a chain is under way;
 * send what has come together without waiting. Or another negative code. */
int nb_chain_settle(struct nb_flow *flow);
int nb_chain_launch(struct nb_flow *flow);
/* Take in completions that are there. */
void nb_chain_take(struct nb_chain *chain);

/* The request of a link; the rest of it is the same in each (nb_chain_begin). */
static inline void nb_chain_prepare(struct nb_chain *chain, uint32_t index)
{
	struct io_uring_sqe *entry = nb_uring_prepare(&chain->ring);

	entry->addr = (uint64_t)(uintptr_t)chain->links[index].from;
	entry->len = (uint32_t)chain->links[index].length;
	entry->flags = IOSQE_IO_LINK; /* but the last, when it is submitted */
	entry->user_data = index;
}

/* Take in a chunk; send what has come together when the chain is complete. Bytes, or negative. In a
 * thread group: without waiting, and NB_NOTHING as long as a chain is under way. A call of it would
 * be a tenth of what a chunk costs. */
static inline __attribute__((always_inline)) ssize_t nb_chain_step(struct nb_flow *flow,
								   size_t most)
{
	struct nb_chain *chain = flow->state;
	int status = __builtin_expect(flow->shares, 0) ? nb_chain_settle(flow) : 0;
	struct nb_chain_link *link = &chain->links[chain->count];

	if (status)
		return status;
	link->from = flow->buffer;
	link->length = most;
	nb_chain_prepare(chain, chain->count++);
	if (chain->count < chain->depth)
		return (ssize_t)most;
	status = flow->shares ? nb_chain_launch(flow) : nb_chain_flush(flow);
	return status && status != NB_NOTHING ? status : (ssize_t)most;
}

void nb_chain_close(struct nb_flow *flow);

#endif
