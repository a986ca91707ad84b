/* SPDX-License-Identifier: MIT */
/*
 * Sends of an io_uring that go out in their order: a chain of linked requests with MSG_WAITALL,
 * submitted at once when it is as long as `queue_depth` says. Requests that are not linked may
 * overtake one another, and a chain is over before the next one begins.
 */
#ifndef NB_CHAIN_H
#define NB_CHAIN_H

#include "../method.h"
#include "areas.h"
#include "uring.h"

enum { NB_CHAIN_DEPTH = 8, NB_CHAIN_DEPTH_MAX = 1024 };

struct nb_chain_link {
	const unsigned char *from;
	size_t length;
	int result; /* bytes, or a negative errno */
};

struct nb_chain {
	struct nb_uring ring;
	struct nb_areas areas;
	uint8_t operation; /* IORING_OP_... */
	uint16_t how;	   /* sqe->ioprio of each */
	int flags;	   /* MSG_... of each */
	uint32_t depth;
	uint32_t count;	 /* prepared, not sent */
	uint32_t flying; /* of these: submitted, without a completion */
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
	{ .name = "queue_depth",                                                                   \
	  .about = "sends that are submitted at once, as a chain; left out: 8",                    \
	  .flags = NB_USER,                                                                        \
	  .minimum = 1,                                                                            \
	  .maximum = NB_CHAIN_DEPTH_MAX }

/* Make flow->state a chain of at most `depth` sends, 0: as many as usual, with these further
 * MSG_... What it sends is mapped. */
int nb_chain_open(struct nb_flow *flow, uint8_t operation, uint64_t depth, int flags,
		  struct nb_error *error);
int nb_chain_begin(struct nb_flow *flow);
/* Take in a chunk; send what has come together when the chain is complete. Bytes, or negative. In a
 * thread group: without waiting, and NB_NOTHING as long as a chain is under way. */
ssize_t nb_chain_step(struct nb_flow *flow, size_t most);
/* Send what has come together. 0, or negative with flow->error filled. */
int nb_chain_flush(struct nb_flow *flow);
/* Take in completions that are there. */
void nb_chain_take(struct nb_chain *chain);
void nb_chain_close(struct nb_flow *flow);

#endif
