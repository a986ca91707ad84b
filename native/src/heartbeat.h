/* SPDX-License-Identifier: MIT */
#ifndef NB_HEARTBEAT_H
#define NB_HEARTBEAT_H

/*
 * Called now and then by work of unknown length on the serving thread (making and reading files,
 * waiting for a program): tells the controller that this worker is alive when that is due. On any
 * other thread it does nothing.
 */
void nb_heartbeat(void);

#endif
