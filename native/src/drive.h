/* SPDX-License-Identifier: MIT */
/* The threads that move data. */
#ifndef NB_DRIVE_H
#define NB_DRIVE_H

#include "flow.h"

/* Deal a job's flows out to threads, and CPUs to these, in turn. */
void nb_flow_deal(struct nb_flow *flows, size_t count);
/* Start the thread of the group of flows that begins here, pinned and waiting at the gate. */
int nb_flow_start(struct nb_flow *flow, struct nb_error *error);
void nb_flow_join(struct nb_flow *flow);
/* Join a flow that was told to stop and may be blocked in a call; sends heartbeats meanwhile. 0, or
 * -1 when it has not ended before `deadline`. */
int nb_flow_give_up(struct nb_flow *flow, uint64_t deadline);

#endif
