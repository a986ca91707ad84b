/* SPDX-License-Identifier: MIT */
/* How the serving thread starts and stops the flows of a run, and how flows wake it. */
#ifndef NB_RUN_CONTROL_H
#define NB_RUN_CONTROL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "fail.h"

enum nb_gate { NB_GATE_CLOSED, NB_GATE_WARM, NB_GATE_RUN, NB_GATE_DRAIN };

/* Values of nb_run_control.stop: a bytes-bounded run goes on after its warm-up, and then nothing
 * but an abort stops it. */
enum nb_stop { NB_STOP_NONE, NB_STOP_PUMP, NB_STOP_ALL };

/* What the serving thread tells all flows of a run. */
struct nb_run_control {
	_Atomic int stop;  /* enum nb_stop: leave the loop */
	_Atomic int abort; /* NB_STOP_ALL: leave everything, a receiver too; NB_STOP_PUMP: a timed
			      receiver forces its sink to the disk, the window waits for it */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	enum nb_gate gate;
	_Atomic int opened;	     /* the window is open */
	_Atomic uint64_t first_data; /* bytes-bounded: when its first bytes arrived, 0: not yet */
	int notify;		     /* eventfd: a flow has warmed up or ended */
};

int nb_run_control_open(struct nb_run_control *control, struct nb_error *error);
void nb_run_control_close(struct nb_run_control *control);
/* Let flows through a gate; wait for it. */
void nb_run_control_move(struct nb_run_control *control, enum nb_gate gate);
void nb_run_control_wait(struct nb_run_control *control, enum nb_gate gate);
/* Wake the serving thread; forget that it was woken. */
void nb_run_control_notify(struct nb_run_control *control);
void nb_run_control_clear(struct nb_run_control *control);

#endif
