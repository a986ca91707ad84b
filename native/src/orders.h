/* SPDX-License-Identifier: MIT */
/* What the controller orders a run to do. All return bits of enum nb_event, or a negative code with
 * the error filled. */
#ifndef NB_ORDERS_H
#define NB_ORDERS_H

#include "fail.h"
#include "run.h"

int nb_run_go(struct nb_run *run, struct nb_error *error);
/*
 * Open (a tool: or close) the window. `arrived`: bytes of each stream's warm-up, as the sender
 * counted them; the window opens once they have all been received.
 */
int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length,
		struct nb_error *error);
int nb_run_stop(struct nb_run *run, struct nb_error *error);

#endif
