/* SPDX-License-Identifier: MIT */
#ifndef NB_PHASE_H
#define NB_PHASE_H

#include "run.h"

/* Enter the next phase: take the snapshot that belongs to it, and set the times of the next events.
 * 0, or -NB_ERR_PROTOCOL where the run cannot go there from its present phase. */
int nb_phase_enter(struct nb_run *run, enum nb_phase next);

#endif
