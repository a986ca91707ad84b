/* SPDX-License-Identifier: MIT */
/*
 * One run: flows or a tool, the measured window, the result. prepare.c begins and ends it, orders.c
 * does what the controller asks, dispatch.c handles its events, phase.c changes its phase, result.c
 * reports what was counted.
 */
#ifndef NB_RUN_H
#define NB_RUN_H

#include "flow.h"
#include "listener.h"
#include "tool.h"
#include "window.h"

enum nb_phase {
	NB_PREPARED = 0, /* before GO */
	NB_WARMING,	 /* data moves, or the tool runs, for the warm-up */
	NB_WAITING,	 /* for MARK: the other side says when the window opens */
	NB_WARMUP_DRAIN, /* until every byte of the warm-up has arrived */
	NB_MEASURING,	 /* the window is open */
	NB_CLOSED,	 /* the window is closed, data still moves */
	NB_DRAINING,	 /* stopped: what was sent still arrives */
	NB_DONE
};

struct nb_run {
	struct nb_job job;
	enum nb_phase phase;
	struct nb_run_control control;
	struct nb_flow *flows;
	size_t flows_count;
	size_t connected;
	struct nb_listener listener;
	struct nb_tool tool;
	struct nb_window window;
	uint64_t warm_at; /* times of the next events, set by phase.c; 0: none */
	uint64_t close_at;
	uint64_t sample_at;
	uint64_t resident;
	uint64_t source_size;
	/* of each stream: so many must have arrived before the window opens */
	uint64_t warmup_bytes[NB_STREAMS_MAX];
	uint16_t tag;
};

/* What the controller must be told after a call, as bits. */
enum nb_event {
	NB_EVENT_NONE = 0,
	NB_EVENT_OPEN = 1,
	NB_EVENT_CLOSE = 2,
	NB_EVENT_WARM = 4,
	NB_EVENT_DONE = 8
};

#endif
