/* SPDX-License-Identifier: MIT */
/* A worker: one controller on two descriptors, at most one run, and what undoes its operations. */
#ifndef NB_WORKER_H
#define NB_WORKER_H

#include "heartbeat.h"
#include "ops/undo.h"
#include "run.h"
#include "wire.h"

struct nb_worker {
	int in; /* from the controller */
	struct nb_reader reader;
	struct nb_heartbeat heartbeat; /* to the controller */
	struct nb_run *run;	       /* under way, or NULL */
	struct nb_undo_entry *undo;
	uint64_t heard_at; /* when the controller last sent something */
	int greeted;	   /* its hello has been checked */
	int leaving;
};

#endif
