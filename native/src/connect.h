/* SPDX-License-Identifier: MIT */
#ifndef NB_CONNECT_H
#define NB_CONNECT_H

#include "fail.h"
#include "job.h"

/* Streams that are connected at the same time: a receiver has room for more (NB_PENDING_MAX). */
enum { NB_CONNECTING = 32 };

/* Connect `count` streams from `first` on to the job's receiver and send the token, in the round
 * trips that one takes. 0 with their sockets, or a negative code. */
int nb_connect(const struct nb_job *job, uint32_t first, uint32_t count, int *sockets,
	       struct nb_error *error);

#endif
