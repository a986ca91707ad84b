/* SPDX-License-Identifier: MIT */
#ifndef NB_CONNECT_H
#define NB_CONNECT_H

#include "fail.h"
#include "job.h"

/* Connect stream `index` to the job's receiver and send the token. Returns the socket or a negative
 * code. */
int nb_connect(const struct nb_job *job, uint32_t index, struct nb_error *error);

#endif
