/* SPDX-License-Identifier: MIT */
/* One run: flows or a tool, the measured window, the result. prepare.c begins and ends it, orders.c
 * does what the controller asks, dispatch.c handles its events, phase.c changes its phase, result.c
 * reports what was counted. */
#ifndef NB_RUN_H
#define NB_RUN_H

#include <poll.h>

#include "data_socket.h"
#include "ends.h"
#include "fail.h"
#include "flow.h"
#include "meter.h"
#include "tool.h"
#include "wire.h"

enum { NB_RUN_FDS = NB_PENDING_MAX + 8 };
enum { NB_SECOND = 1000000000, NB_SECONDS_BYTES = 3 * 1024 * 1024 };

enum nb_phase {
	NB_PREPARED = 0, /* before GO */
	NB_WARMING,	 /* data moves, or the tool runs, for the warm-up */
	NB_WAITING,	 /* for MARK: the other side says when the window opens */
	NB_WARMUP_DRAIN, /* until every byte of the warm-up has arrived */
	NB_MEASURING,	 /* the window is open */
	NB_SYNCING,	 /* its time is over, and it closes when the sinks are on their disk */
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
	int asked_output; /* the controller waits for what the tool prints next */
	uint64_t kill_at; /* when a tool that was told to end is killed; 0: none */
	struct nb_window window;
	uint64_t warm_at; /* times of the next events, set by phase.c; 0: none */
	uint64_t close_at;
	uint64_t sample_at;
	uint64_t report_at; /* when samples are sent next; 0: with the result */
	size_t samples_sent;
	uint64_t second_at;	  /* when latencies are told next, 0: at no time */
	struct nb_writer seconds; /* what was told of them, for the result */
	uint64_t silence;	  /* the longest time in which the controller sent nothing, in ns */
	struct nb_residence residence;
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
	NB_EVENT_DONE = 8,
	NB_EVENT_PRINTED = 16,
	NB_EVENT_SAMPLES = 32
};

/* Prepare the run of a decoded job: 0, or a negative code with the error filled; nb_run_free is due
 * in either case. */
int nb_run_prepare(struct nb_run *run, struct nb_error *error);
/* Tell flows and the tool to end, and close the listener. Waits for nothing. */
void nb_run_halt(struct nb_run *run);
/* Give up whatever is under way and free everything. 0; -1: a flow or the tool hangs in the kernel,
 * and uses what would be freed. Waits a few seconds at most. */
int nb_run_free(struct nb_run *run);

/* What the controller orders: bits of enum nb_event, or a negative code with the error filled. */
int nb_run_go(struct nb_run *run, struct nb_error *error);
/* Open (a tool: or close) the window. `arrived`: bytes of each stream's warm-up, as the sender
 * counted them; the window opens once they have all been received. */
int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length,
		struct nb_error *error);
int nb_run_stop(struct nb_run *run, struct nb_error *error);

/* Handle what is due or has happened. Returns bits of enum nb_event, or a negative code with the
 * error filled when the run has failed. */
int nb_run_dispatch(struct nb_run *run, uint64_t now, struct nb_error *error);
/* In NB_WARMUP_DRAIN: open the window once every byte of the warm-up has arrived. Returns events.
 */
int nb_dispatch_warmup(struct nb_run *run);
/* When nb_run_dispatch must be called at the latest; UINT64_MAX: at no time. */
uint64_t nb_run_due(const struct nb_run *run);
/* The descriptors to wait for: fills at most NB_RUN_FDS entries, returns how many. */
size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds);

/* Enter the next phase: take the snapshot that belongs to it, and set the times of the next events.
 * 0, or -NB_ERR_PROTOCOL where the run cannot go there from its present phase. */
int nb_phase_enter(struct nb_run *run, enum nb_phase next);

/* The read-backs of a prepared run. */
void nb_run_readbacks(const struct nb_run *run, struct nb_writer *writer);
/* What EDGE(WARM) carries besides the edge: bytes of each stream. */
void nb_run_warmup_bytes(const struct nb_run *run, struct nb_writer *writer);
/* Whether requests are sent; their latencies until now are kept for the result. */
int nb_run_asks(const struct nb_run *run);
void nb_run_second(struct nb_run *run, uint64_t now);
/* The result of a finished run. */
int nb_run_result(struct nb_run *run, struct nb_writer *writer, struct nb_error *error);
/* Write samples that were not sent until the payload is large enough; returns whether there are
 * more. */
int nb_run_samples(struct nb_run *run, struct nb_writer *writer);

/* The life of a flow: opened with its method, driven by a thread, digested and closed. */

/* Open buffers, source, sink and the method's own. */
int nb_flow_open(struct nb_flow *flow, struct nb_error *error);
/* Why source or sink would not open, as far as that is seen without making or reading them. */
int nb_flow_ask(const struct nb_flow *flow, struct nb_error *error);
void nb_flow_close(struct nb_flow *flow);
/* Digest what the flow sent, or what arrived in its sink, from the first byte on. After the flow
 * has ended. */
int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error);

/* Deal a job's flows out to threads, and CPUs to these, in turn. */
void nb_flow_deal(struct nb_flow *flows, size_t count);
/* Start the thread of the group of flows that begins here, pinned and waiting at the gate. */
int nb_flow_start(struct nb_flow *flow, struct nb_error *error);
void nb_flow_join(struct nb_flow *flow);
/* Join a flow that was told to stop and may be blocked in a call; sends heartbeats meanwhile. 0, or
 * -1 when it has not ended before `deadline`. */
int nb_flow_give_up(struct nb_flow *flow, uint64_t deadline);

#endif
