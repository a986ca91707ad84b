/* SPDX-License-Identifier: MIT */
/* The life of a flow: opened with its method, driven by a thread, digested and closed. */
#ifndef NB_DRIVE_H
#define NB_DRIVE_H

#include "flow.h"

/* Open buffers, source, sink and the method's own. */
int nb_flow_open(struct nb_flow *flow, struct nb_error *error);
/* Why source or sink would not open, as far as that is seen without making or reading them. */
int nb_flow_ask(const struct nb_flow *flow, struct nb_error *error);
void nb_flow_close(struct nb_flow *flow);
/* Digest what the flow sent, or what arrived in its sink, from the first byte on. After the flow
 * has ended. */
int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error);

/* Deal a job's flows out to threads, and CPUs to these, in turn. */
void nb_flow_deal(struct nb_flow *flows, size_t count);
/* Start the thread of the group of flows that begins here, pinned and waiting at the gate. */
int nb_flow_start(struct nb_flow *flow, struct nb_error *error);
void nb_flow_join(struct nb_flow *flow);
/* Join a flow that was told to stop and may be blocked in a call; sends heartbeats meanwhile. 0, or
 * -1 when it has not ended before `deadline`. */
int nb_flow_give_up(struct nb_flow *flow, uint64_t deadline);

#endif
