/* SPDX-License-Identifier: MIT */
/* A worker's run: started by a job, driven by orders and events, answered with its result. */
#ifndef NB_WORKER_RUN_H
#define NB_WORKER_RUN_H

#include "worker.h"

/* Prepare the run of a NB_JOB frame's payload and answer NB_READY or NB_ERROR. */
void nb_worker_start_run(struct nb_worker *worker, uint16_t tag, const unsigned char *payload,
			 size_t length);
/* Carry out GO, MARK, STOP or ABORT. */
void nb_worker_order(struct nb_worker *worker, const struct nb_frame *frame,
		     const unsigned char *payload);
/* Handle the run's events and tell the controller. */
void nb_worker_dispatch(struct nb_worker *worker);
void nb_worker_end_run(struct nb_worker *worker);

#endif
