/* SPDX-License-Identifier: MIT */
/* The threads that move data. */
#ifndef NB_DRIVE_H
#define NB_DRIVE_H

#include "flow.h"

/* How many of a job's flows one thread drives. */
uint32_t nb_flow_thread_group(const struct nb_job *job, size_t count);
/* Start the thread of a group of flows that begins here, pinned and waiting at the gate. */
int nb_flow_start(struct nb_flow *flow, uint32_t thread_group, struct nb_error *error);
void nb_flow_join(struct nb_flow *flow);
/* Join a flow that was told to stop and may be blocked in a call; sends heartbeats meanwhile. 0, or
 * -1 when it has not ended before `deadline`. */
int nb_flow_give_up(struct nb_flow *flow, uint64_t deadline);

#endif
