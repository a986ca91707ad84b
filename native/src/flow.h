/* SPDX-License-Identifier: MIT */
/* A flow: one connection with its source, sink and buffer, and what a method calls to work on it.
 */
#ifndef NB_FLOW_H
#define NB_FLOW_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "direct.h"
#include "ends.h"
#include "fail.h"
#include "job.h"

/* How the serving thread starts and stops the flows of a run, and how flows wake it. */

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
	_Atomic uint64_t from, to;   /* of the window of requests; 0: not open yet */
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

/* How a call on the connection waits: in itself, or not at all, since its thread serves others, and
 * waits for all of them. */
enum nb_wait { NB_WAIT_BLOCK, NB_WAIT_LATER };

enum { NB_NOTHING = -1000 }; /* of a step: it could move nothing now */

struct nb_flow {
	/* Written by the flow's thread, read by the serving thread at edges: relaxed. */
	_Atomic uint64_t bytes;
	_Atomic uint64_t steps;
	_Atomic uint64_t proof[8];
	_Atomic int warmed_up;
	_Atomic int ended;   /* set with release: error and the rest may be read */
	_Atomic int synced;  /* in the window: the sink is on its disk */
	_Atomic int settled; /* after the end, with release: 1, or a negative enum nb_code: what is
				left to do with the sink is done */

	int socket;
	int ready; /* what epoll(7) waits for in a thread group, 0: the connection */
	int wait;  /* enum nb_wait; the connection is non-blocking where it is not NB_WAIT_BLOCK */
	int spins; /* with NB_WAIT_LATER: its thread looks again and again */
	uint32_t polls; /* us for which epoll(7) looks at the device's queue itself; 0: it does not
			 */
	int timed; /* it waits for its time and its connection at once, and has one turn a look */
	uint32_t index;
	const struct nb_method *method;
	const struct nb_job *job;
	struct nb_run_control *control;
	struct nb_source source;
	struct nb_sink sink;
	unsigned char *buffer; /* of the user, at job->align from a page */
	void *allocated;
	void *state;	/* the method's own; freed behind its close() */
	size_t page;	/* of memory, in bytes */
	uint64_t limit; /* bytes to move in the measured window; NB_MISSING: until told to stop */
	uint64_t left;	/* of what the thread moves now; 16 EiB where only time ends it */
	ssize_t moved;	/* by the last step */
	const unsigned char *rest; /* with NB_WAIT_LATER: what a step left of its chunk */
	size_t rest_length;
	uint64_t wake;	/* in a thread group: no step before that time; 0: as soon as it is ready */
	uint32_t waits; /* 1: it does */
	uint64_t pace_begun; /* where the pace of a sender counts from: time, bytes */
	uint64_t pace_bytes;
	int pace_opened;    /* 1: its window was open then */
	int failed;	    /* 0 or a negative enum nb_code */
	uint64_t failed_at; /* what fails first takes others along */
	struct nb_error error;
	uint64_t rejected_connections; /* by the method */
	pthread_t thread;
	int started;
	uint32_t thread_group; /* flows that this one's thread drives: itself and those that follow
				  it; 0: it follows another */
	int shares;	       /* its thread drives others too */
	int apart;	       /* its worker has a process of its own, which tests' have not */
	uint64_t cpu;	       /* that its thread is pinned to, NB_MISSING: none */
};

/* Add to a counter that this thread alone writes: relaxed. On x86-64 it is one instruction, of
 * which a compiler makes three; its store is as whole as any other aligned one. */
static inline __attribute__((always_inline)) void nb_add(_Atomic uint64_t *counter, uint64_t by)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__("addq %1, %0" : "+m"(*(uint64_t *)counter) : "er"(by) : "cc");
#else
	uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, now + by, memory_order_relaxed);
#endif
}

static inline void nb_count(struct nb_flow *flow, unsigned int proof, uint64_t by)
{
	nb_add(&flow->proof[proof], by);
}

/* For what a method counts elsewhere: the proof is so much now. */
static inline void nb_set_count(struct nb_flow *flow, unsigned int proof, uint64_t count)
{
	atomic_store_explicit(&flow->proof[proof], count, memory_order_relaxed);
}

/* Allocate flow->state, all zeros: that, or NULL with the error filled. */
void *nb_flow_state(struct nb_flow *flow, size_t size, struct nb_error *error);

/* Allocate the user's buffer of a method: `size` bytes at job->align from a page, filled with a
 * pattern, or zeros where these are the source. */
int nb_flow_buffer(struct nb_flow *flow, size_t size, struct nb_error *error);

/* The same of a chunk: the `open` of a method that needs no more. */
int nb_flow_open_buffer(struct nb_flow *flow, struct nb_error *error);

/* Fail a step: fill flow->error from errno. Returns a negative code. */
ssize_t nb_flow_fail(struct nb_flow *flow, const char *operation, const char *remedy,
		     const char *what);
/* The same for a sink that accepts no more data, and for a source that gives none. */
ssize_t nb_flow_fail_sink(struct nb_flow *flow, const char *operation);
ssize_t nb_flow_fail_source(struct nb_flow *flow, const char *operation, const char *remedy);

/* Whether the other side has not acknowledged all that was sent. */
int nb_flow_unacknowledged(const struct nb_flow *flow);

/* Wait so long, or until the connection is no more, which is an error of the operation: nothing
 * leaves it any longer. 0, or <0. */
int nb_flow_pause(struct nb_flow *flow, uint64_t ns, const char *operation);

/* poll(2) the connection until it is ready for `events`. */
void nb_flow_poll(const struct nb_flow *flow, short events);

/* After a call that failed: whether it is for another step. */
static inline int nb_flow_later(const struct nb_flow *flow)
{
	return errno == EAGAIN && flow->wait == NB_WAIT_LATER;
}

/* Leave the rest of a chunk for another step. Returns what this one moved. */
static inline ssize_t nb_flow_leave(struct nb_flow *flow, const unsigned char *rest, size_t length,
				    size_t moved)
{
	flow->rest = rest;
	flow->rest_length = length;
	return moved ? (ssize_t)moved : NB_NOTHING;
}

/* Write all of it to the sink; counts calls in a proof. Returns 0, or <0. */
static inline int nb_flow_write_sink(struct nb_flow *flow, const void *bytes, size_t length,
				     unsigned int calls)
{
	for (size_t done = 0; done < length;) {
		ssize_t written =
			nb_write(flow->sink.fd, (const char *)bytes + done, length - done);

		nb_count(flow, calls, 1);
		if (written < 0 && errno != EINTR)
			return (int)nb_flow_fail_sink(flow, "write sink");
		if (written > 0)
			done += (size_t)written;
	}
	return 0;
}

/* The same for a sink with direct I/O: what arrived waits in the buffer until it is a chunk, or the
 * stream has ended (0). What is left of a block then goes through the page cache. */
int nb_flow_fill_blocks(struct nb_flow *flow, size_t got, unsigned int calls);

/* `got` bytes have arrived in the flow's buffer, behind those that its sink holds: write them. 0:
 * the stream has ended. Counts calls in a proof. Returns 0, or <0. */
static inline int nb_flow_fill_sink(struct nb_flow *flow, size_t got, unsigned int calls)
{
	return __builtin_expect(flow->sink.block != 0, 0)
		       ? nb_flow_fill_blocks(flow, got, calls)
		       : nb_flow_write_sink(flow, flow->buffer, got, calls);
}

/* After a call of a receiver's step that failed: NB_NOTHING where it is for another step, else the
 * failure. */
ssize_t nb_flow_fail_receive(struct nb_flow *flow, const char *operation);

/* Fail a write(2) to the socket. */
ssize_t nb_flow_fail_write(struct nb_flow *flow);

/* Write all of it to the socket, with NB_WAIT_LATER what it takes; counts calls and short ones in
 * two proofs. Returns bytes or <0. */
static inline ssize_t nb_flow_write(struct nb_flow *flow, const void *bytes, size_t length,
				    unsigned int calls, unsigned int shorts)
{
	size_t done = 0;

	while (done < length) {
		ssize_t written = nb_write(flow->socket, (const char *)bytes + done, length - done);

		nb_count(flow, calls, 1);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && nb_flow_later(flow))
			return nb_flow_leave(flow, (const unsigned char *)bytes + done,
					     length - done, done);
		if (written < 0)
			return nb_flow_fail_write(flow);
		done += (size_t)written;
		if (done < length)
			nb_count(flow, shorts, 1);
	}
	return (ssize_t)done;
}

#endif
