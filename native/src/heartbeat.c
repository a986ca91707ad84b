/* SPDX-License-Identifier: MIT */
#include "heartbeat.h"

#include "clock.h"
#include "wire.h"

static const uint64_t INTERVAL_NS = NB_HEARTBEAT_SECONDS * 1000000000ULL;

static _Thread_local struct nb_heartbeat *current;

void nb_heartbeat_start(struct nb_heartbeat *heartbeat, int out)
{
	*heartbeat = (struct nb_heartbeat){ .out = out, .due = nb_now() + INTERVAL_NS };
	current = heartbeat;
}

void nb_heartbeat_stop(void)
{
	current = NULL;
}

int nb_heartbeat_frame(struct nb_heartbeat *heartbeat, enum nb_frame_type type, uint16_t tag,
		       const void *payload, size_t length)
{
	heartbeat->due = nb_now() + INTERVAL_NS;
	if (!nb_send_frame(heartbeat->out, type, tag, payload, length))
		return 0;
	heartbeat->lost = 1;
	return -1;
}

void nb_heartbeat(void)
{
	if (current && !current->lost && nb_now() >= current->due)
		nb_heartbeat_frame(current, NB_HEARTBEAT, 0, NULL, 0);
}
