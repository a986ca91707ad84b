/* SPDX-License-Identifier: MIT */
/* A transfer method: a const table of functions over one shared loop.
 *
 * A method lives in one file under methods/ and one row of methods/table.c. It declares its options
 * and its proofs; nothing outside methods/ asks which method it is. */
#ifndef NB_METHOD_H
#define NB_METHOD_H

#include "flow.h"

enum { NB_PROOFS_MAX = 8, NB_OWED_SECONDS = 10 };

struct nb_method {
	const char *name;
	const char *about;
	uint32_t flags;	  /* NB_DELIVERS, NB_FROM_..., NB_TO_..., NB_WHOLE_FILE, NB_NO_DATA,
			     NB_ALONE, NB_FETCHES */
	uint32_t buffers; /* of a large chunk that each stream has without queue_depth; 0: one */
	uint32_t small_buffers; /* of one so small that all fit in NB_SMALL_BUFFERS; 0: no more */
	const struct nb_field *options;
	size_t options_count;
	const struct nb_field *proofs; /* flow->proof[i] counts the i-th */
	size_t proofs_count;
	/* 0, or -1 with the reason why it cannot run on this host. Optional. */
	int (*probe)(char *why, size_t room);
	/* Everything that allocates or opens. Optional. */
	int (*open)(struct nb_flow *flow, struct nb_error *error);
	/* The flow has its connection now: set what the method needs of it. Optional. */
	int (*connected)(struct nb_flow *flow, struct nb_error *error);
	/* In the thread that steps, before the first step. 0, or negative with flow->error filled.
	 * Optional. */
	int (*begin)(struct nb_flow *flow);
	/* Move one chunk, at most `most` bytes. Returns what was moved, 0 at the end of the stream
	 * (receive), <0 after filling flow->error. Allocates nothing, reads no clock. In a thread
	 * group: NB_NOTHING if nothing could be moved now; it may set flow->wake, and leave the
	 * rest of a chunk to `resume`. NULL: the method is only looked for, and its probe says why
	 * it cannot run. */
	ssize_t (*step)(struct nb_flow *flow, size_t most);
	/* Send what a step has left of its chunk: flow->rest was `from`. As a step. Optional. */
	ssize_t (*resume)(struct nb_flow *flow, const unsigned char *from, size_t length);
	/* Read all notices from the connection's error queue, without waiting: while it holds any,
	 * poll(2) reports the connection as ready. Negative: flow->error is filled. Optional. */
	int (*reap)(struct nb_flow *flow);
	/* Wait for what is still under way: before the connection closes, and where nothing may be
	 * under way when the window opens. 0, or negative with flow->error filled. Optional. */
	int (*drain)(struct nb_flow *flow);
	/* Whether it has still something to send, or to wait for, after the stop: for at most
	 * NB_OWED_SECONDS. Optional. */
	int (*owes)(const struct nb_flow *flow);
	/* Whether each stream of that job has a thread of its own, beside NB_ALONE. Optional. */
	int (*alone)(const struct nb_job *job);
	/* Called from another thread, again and again until the flow ends, when a run is given up
	 * while a step may block for long: make the step fail. Optional. */
	void (*give_up)(struct nb_flow *flow);
	void (*close)(struct nb_flow *flow);
};

/* A proof that counts system calls: its name, what it counts, NB_MUST_MOVE or other flags. */
#define NB_CALLS(calls, text, bits)                                                                \
	{ .name = calls, .about = text, .unit = NB_UNIT_CALLS, .flags = bits }

/* Whether the steps of a job's method wait, so that each stream has a thread of its own. */
static inline int nb_method_is_alone(const struct nb_job *job)
{
	return job->method->flags & (NB_NO_DATA | NB_FETCHES | NB_ALONE) ||
	       (job->method->alone && job->method->alone(job));
}

/* The method tables end with NULL. */
extern const struct nb_method *const nb_send_methods[];
extern const struct nb_method *const nb_receive_methods[];

/* The method of that kind and name, or NULL. */
const struct nb_method *nb_method_named(enum nb_row_kind kind, const char *name);

/* The loop that all methods share. */

/* Step the flows of a thread group until the run's stop has come to `until`, each has reached its
 * limit, or its stream ends. Flows that failed have been ended by nb_pump_fail. */
void nb_pump(struct nb_flow *flows, int until);
/* Wait until the connection has taken what a step left of its chunk: flow->moved is negative where
 * it never will. */
void nb_pump_rest(struct nb_flow *flow);
/* End a flow that has failed, with flow->error filled. */
void nb_pump_fail(struct nb_flow *flow);

#endif
