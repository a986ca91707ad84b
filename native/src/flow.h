/* SPDX-License-Identifier: MIT */
/* A flow: one connection, and the thread that moves data over it (drive.c). The loop is shared by
 * all methods. */
#ifndef NB_FLOW_H
#define NB_FLOW_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "direct.h"
#include "job.h"
#include "sink.h"
#include "source.h"

enum nb_gate { NB_GATE_CLOSED, NB_GATE_WARM, NB_GATE_RUN };

/* Values of nb_run_control.stop: a bytes-bounded run goes on after its warm-up, and then nothing
 * but an abort stops it. */
enum nb_stop { NB_STOP_NONE, NB_STOP_PUMP, NB_STOP_ALL };

/* What the serving thread tells all flows of a run. */
struct nb_run_control {
	_Atomic int stop;  /* enum nb_stop: leave the loop */
	_Atomic int abort; /* NB_STOP_ALL: leave everything, a receiver too */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	enum nb_gate gate;
	_Atomic int
		marked; /* bytes-bounded: the window is open, its first bytes are still to come */
	_Atomic uint64_t first_data; /* when they came, 0: not yet */
	int notify;		     /* eventfd: a flow warmed_up or ended */
};

struct nb_flow {
	/* Written by the flow's thread, read by the serving thread at edges: relaxed. */
	_Atomic uint64_t bytes;
	_Atomic uint64_t steps;
	_Atomic uint64_t proof[8];
	_Atomic int warmed_up;
	_Atomic int ended; /* set last, with release: error and the rest may be read */

	int socket;
	uint32_t index;
	const struct nb_method *method;
	const struct nb_job *job;
	struct nb_run_control *control;
	struct nb_source source;
	struct nb_sink sink;
	unsigned char *buffer; /* of the user, at job->align from a page */
	void *allocated;
	void *state;	/* the method's own */
	size_t page;	/* of memory, in bytes */
	uint64_t limit; /* bytes to move in the measured window; NB_MISSING: until told to stop */
	uint64_t left;	/* of what the thread moves now */
	ssize_t moved;	/* by the last step */
	int failed;	/* 0 or a negative enum nb_code */
	struct nb_error error;
	pthread_t thread;
	int started;
	uint32_t thread_group; /* flows that this one's thread drives: itself and those that follow
				  it */
};

static inline void nb_count(struct nb_flow *flow, unsigned int proof, uint64_t by)
{
	uint64_t now = atomic_load_explicit(&flow->proof[proof], memory_order_relaxed);

	atomic_store_explicit(&flow->proof[proof], now + by, memory_order_relaxed);
}

/* Buffers, source, sink and the method's own. */
int nb_flow_open(struct nb_flow *flow, struct nb_error *error);
/* How many of a job's flows one thread drives. */
uint32_t nb_flow_thread_group(const struct nb_job *job, size_t count);
/* The thread of a thread_group of flows that begins here, pinned and waiting at the gate. */
int nb_flow_start(struct nb_flow *flow, uint32_t thread_group, struct nb_error *error);
void nb_flow_join(struct nb_flow *flow);
/* The same for one that was told to stop and may be held by what it reads: alive to the controller
 * meanwhile. */
void nb_flow_give_up(struct nb_flow *flow);
void nb_flow_close(struct nb_flow *flow);

/* Digest what the flow sent, or what arrived in its sink, from the first byte on. After the flow
 * has ended. */
int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error);

/* Allocate the user's buffer of a method: `size` bytes at job->align from a page, filled with a
 * pattern. */
int nb_flow_buffer(struct nb_flow *flow, size_t size, struct nb_error *error);

/* Fail a step: fill flow->error from errno. Returns a negative code. */
ssize_t nb_flow_fail(struct nb_flow *flow, const char *operation, const char *remedy,
		     const char *what);
/* The same where the sink takes no more, or the source gives none. */
ssize_t nb_flow_fail_sink(struct nb_flow *flow, const char *operation);
ssize_t nb_flow_fail_source(struct nb_flow *flow, const char *operation, const char *remedy);

/* Write all of it to the socket; counts calls and short ones in two proofs. Returns bytes or <0. */
static inline ssize_t nb_flow_write(struct nb_flow *flow, const void *bytes, size_t length,
				    unsigned int calls, unsigned int shorts)
{
	size_t done = 0;

	while (done < length) {
		ssize_t written = nb_write(flow->socket, (const char *)bytes + done, length - done);

		nb_count(flow, calls, 1);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && errno == EFAULT) /* a mapped page is beyond the source's end */
			return nb_flow_fail_source(
				flow, "write",
				"it was cut short: keep the source as it is during a run");
		if (written < 0)
			return nb_flow_fail(flow, "write",
					    "check the path between the data addresses",
					    "to the connection");
		done += (size_t)written;
		if (done < length)
			nb_count(flow, shorts, 1);
	}
	return (ssize_t)done;
}

int nb_run_control_open(struct nb_run_control *control, struct nb_error *error);
void nb_run_control_move(struct nb_run_control *control, enum nb_gate gate);
void nb_run_control_close(struct nb_run_control *control);

#endif
