/* SPDX-License-Identifier: MIT */
/* The frames to the controller, and the heartbeats that fill the pauses between them. */
#ifndef NB_HEARTBEAT_H
#define NB_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

#include "netbench.h"

struct nb_heartbeat {
	int out;      /* to the controller */
	uint64_t due; /* when the controller must get the next frame */
	int lost;     /* it reads no more frames, or is gone */
};

/* Start on the thread that serves the controller; stop before the struct is freed. */
void nb_heartbeat_start(struct nb_heartbeat *heartbeat, int out);
void nb_heartbeat_stop(void);
/* Send a frame; the next heartbeat is due a while later. A failure is kept in `lost`. 0 or -1. */
int nb_heartbeat_frame(struct nb_heartbeat *heartbeat, enum nb_frame_type type, uint16_t tag,
		       const void *payload, size_t length);
/*
 * Send a heartbeat when it is due. Work of unknown length on the serving thread calls this now and
 * then (making and reading files, waiting for a program). On any other thread it does nothing.
 */
void nb_heartbeat(void);

#endif
