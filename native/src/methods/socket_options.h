/* SPDX-License-Identifier: MIT */
/* Options of the connection, which every method that moves data over it has, before its own. Those
 * of a sender and those of a receiver begin alike, so that one function sets both. */
#ifndef NB_SOCKET_OPTIONS_H
#define NB_SOCKET_OPTIONS_H

#include "../flow.h"

/* Places in job->extra. */
enum {
	NB_BUSY_POLL,
	NB_RECEIVER_OWN,
	NB_NODELAY = NB_RECEIVER_OWN,
	NB_SENDER_OWN,
};

#define NB_RECEIVER_OPTIONS                                                                        \
	[NB_BUSY_POLL] = {                                                                         \
		"busy_poll",	  "SO_BUSY_POLL: how long a call looks for packets itself",        \
		.flags = NB_USER, .type = NB_TIME,                                                 \
		.minimum = 1000,  .maximum = 1000000000                                            \
	}

#define NB_SENDER_OPTIONS                                                                          \
	NB_RECEIVER_OPTIONS, [NB_NODELAY] = { "nodelay",                                           \
					      "TCP_NODELAY: short segments leave at once",         \
					      .flags = NB_USER, .type = NB_FLAG, .maximum = 1 }

/* Of methods that have no more. */
extern const struct nb_field nb_receiver_options[NB_RECEIVER_OWN];
extern const struct nb_field nb_sender_options[NB_SENDER_OWN];

/* Set one to a number that is not 0. */
int nb_socket_option(struct nb_flow *flow, int level, int option, const char *name, uint64_t value,
		     struct nb_error *error);
/* Calls on its connection do not wait. */
int nb_never_block(struct nb_flow *flow, struct nb_error *error);
/* Set them on a flow's connection: `connected` of a method. */
int nb_socket_options_set(struct nb_flow *flow, struct nb_error *error);
/* The same where a step does not wait if its thread serves other flows too. */
int nb_socket_options_share(struct nb_flow *flow, struct nb_error *error);

#endif
