/* SPDX-License-Identifier: MIT */
#ifndef NB_JOB_DECODE_H
#define NB_JOB_DECODE_H

#include "fail.h"
#include "job.h"

/* Decode the values of a job. Everything is checked against its row's type and bounds. 0, or a
 * negative code with the error filled. */
int nb_job_decode(struct nb_job *job, const unsigned char *payload, size_t length,
		  struct nb_error *error);

#endif
