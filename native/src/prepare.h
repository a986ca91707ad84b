/* SPDX-License-Identifier: MIT */
/* A run's beginning and its end: flows, source, window, connections. */
#ifndef NB_PREPARE_H
#define NB_PREPARE_H

#include "fail.h"
#include "run.h"

/* Prepare the run of a decoded job: 0, or a negative code with the error filled; nb_run_free is due
 * in either case. */
int nb_run_prepare(struct nb_run *run, struct nb_error *error);
/* Give up whatever is under way and free everything. */
void nb_run_free(struct nb_run *run);

#endif
