/* SPDX-License-Identifier: MIT */
/*
 * One run: flows or a tool, the measured window, the result. Driven by the serve loop's events.
 * prepare.c begins and ends it, run.c does what the controller orders, dispatch.c what happens by
 * itself, result.c tells what was counted.
 */
#ifndef NB_RUN_H
#define NB_RUN_H

#include <poll.h>

#include "flow.h"
#include "listener.h"
#include "tool.h"
#include "window.h"
#include "wire.h"

enum { NB_RUN_FDS = NB_PENDING_MAX + 8 };

enum nb_phase {
	NB_PREPARED,
	NB_WARMING,
	NB_WAITING,
	NB_WARMUP_DRAIN,
	NB_MEASURING,
	NB_CLOSED,
	NB_DRAINING,
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
	uint64_t warm_at; /* times of the next events, 0: none */
	uint64_t close_at;
	uint64_t sample_at;
	uint64_t resident;
	uint64_t source_size;
	uint64_t warmup_bytes[NB_STREAMS_MAX]; /* bytes of the warm-up that must have arrived before
					     the window opens */
	uint16_t tag;
};

/* What the serve loop has to send after an event. */
enum nb_event {
	NB_EVENT_NONE = 0,
	NB_EVENT_OPEN = 1,
	NB_EVENT_CLOSE = 2,
	NB_EVENT_WARM = 4,
	NB_EVENT_DONE = 8
};

int nb_run_prepare(struct nb_run *run, struct nb_error *error);
int nb_run_go(struct nb_run *run, struct nb_error *error);
/*
 * Open (a tool: or close) the window. `arrived`: bytes of each stream's warm-up, as the sender
 * counted them; the window opens once they have all been received.
 */
int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length,
		struct nb_error *error);
/* What EDGE(WARM) carries besides the edge: bytes of each stream. */
void nb_run_warm(const struct nb_run *run, struct nb_writer *writer);
int nb_run_stop(struct nb_run *run, struct nb_error *error);
/* Time has come, or a flow or the tool has something to say. Returns enum nb_event bits, or <0 when
 * the run has failed. */
int nb_run_dispatch(struct nb_run *run, uint64_t now, struct nb_error *error);
/* When nb_run_dispatch must be called at the latest; UINT64_MAX: at no time. */
uint64_t nb_run_due(const struct nb_run *run);
/* What else to wait for: fills at most NB_RUN_FDS entries, returns how many. */
size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds);
/* Read-backs of a prepared run; the result of a finished one; its samples. */
void nb_run_readbacks(const struct nb_run *run, struct nb_writer *writer);
int nb_run_result(struct nb_run *run, struct nb_writer *writer, struct nb_error *error);
/* Write samples from *next on until the payload is large enough; returns whether there are more. */
int nb_run_samples(const struct nb_run *run, size_t *next, struct nb_writer *writer);
/* Give up whatever is under way and free everything. */
void nb_run_free(struct nb_run *run);

extern const struct nb_field nb_readbacks[];
extern const size_t nb_readbacks_count;

#endif
