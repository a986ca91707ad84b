/* SPDX-License-Identifier: MIT */
/* The life of a flow around its run: opened with its method before, digested and closed after. */
#ifndef NB_FLOW_SETUP_H
#define NB_FLOW_SETUP_H

#include "flow.h"

/* Open buffers, source, sink and the method's own. */
int nb_flow_open(struct nb_flow *flow, struct nb_error *error);
/* Why source or sink would not open, as far as that is seen without making or reading them. */
int nb_flow_ask(const struct nb_flow *flow, struct nb_error *error);
void nb_flow_close(struct nb_flow *flow);
/* Digest what the flow sent, or what arrived in its sink, from the first byte on. After the flow
 * has ended. */
int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error);

#endif
