/* SPDX-License-Identifier: MIT */
/* The loop that all methods share. */
#ifndef NB_PUMP_H
#define NB_PUMP_H

#include "flow.h"

/* Step the flows of a thread group until the run's stop has come to `until`, each has reached its
 * limit, or its stream ends. Flows that failed have been ended by nb_pump_fail. */
void nb_pump(struct nb_flow *flows, int until);
/* Wait until the connection has taken what a step left of its chunk: flow->moved is negative where
 * it never will. */
void nb_pump_rest(struct nb_flow *flow);
/* End a flow that has failed, with flow->error filled. */
void nb_pump_fail(struct nb_flow *flow);

#endif
