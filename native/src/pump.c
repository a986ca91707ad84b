/* SPDX-License-Identifier: MIT */
#include "pump.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"

void nb_pump_fail(struct nb_flow *flow)
{
	if (flow->failed)
		return;
	flow->failed = flow->error.code ? -(int)flow->error.code : -NB_ERR_SYSTEM;
	shutdown(flow->socket, SHUT_RDWR);
	atomic_store_explicit(&flow->ended, 1, memory_order_release);
	nb_run_control_notify(flow->control);
}

/* Hold the offered load: sleep until the bytes that were sent are due, in slices so that a stop is
 * seen. */
static void keep_pace(const struct nb_flow *flow, uint64_t begun, uint64_t moved, int until)
{
	uint64_t share = flow->job->rate / flow->job->streams;
	uint64_t due = begun + (uint64_t)((double)moved * 8e9 / (double)(share ? share : 1));

	while (atomic_load_explicit(&flow->control->stop, memory_order_relaxed) < until) {
		uint64_t now = nb_now(), wake = due < now + 10000000 ? due : now + 10000000;
		struct timespec at = { .tv_sec = (time_t)(wake / 1000000000),
				       .tv_nsec = (long)(wake % 1000000000) };

		if (now >= due)
			return;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}

/* The window of a bytes-bounded run was opened while nothing moved: its time begins with the first
 * bytes of any stream. */
static int see_first_data(struct nb_run_control *control)
{
	uint64_t none = 0;

	if (!atomic_load_explicit(&control->marked, memory_order_acquire))
		return 0;
	atomic_compare_exchange_strong(&control->first_data, &none, nb_now());
	return 1;
}

/* What one step moved: counts it, and takes it off what is left. */
static inline __attribute__((always_inline)) void count_step(struct nb_flow *flow, ssize_t moved)
{
	uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed) + (uint64_t)moved;
	uint64_t steps = atomic_load_explicit(&flow->steps, memory_order_relaxed) + 1;

	atomic_store_explicit(&flow->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&flow->steps, steps, memory_order_relaxed);
	flow->left -= (uint64_t)moved;
}

static size_t chunk_of(const struct nb_flow *flow)
{
	return flow->job->chunk ? (size_t)flow->job->chunk : SIZE_MAX;
}

static ssize_t step(struct nb_flow *flow)
{
	size_t chunk = chunk_of(flow);
	ssize_t moved = flow->method->step(flow, chunk < flow->left ? chunk : (size_t)flow->left);

	if (moved > 0)
		count_step(flow, moved);
	return moved;
}

/* epoll(7) reports a connection whose error queue holds something even if it has no room: a step
 * would block while others are ready. One that has failed is reported as ready too, and its step
 * returns the error. */
static ssize_t reap_or_step(struct nb_flow *flow, uint32_t events)
{
	int status;

	if (events != EPOLLERR || !flow->method->reap)
		return step(flow);
	status = flow->method->reap(flow);
	return status < 0 ? status : flow->moved;
}

/* A receiver reads until the stream ends; only an abort stops it. */
static const _Atomic int *stop_of(const struct nb_flow *flow)
{
	int draining = flow->job->role == NB_ROLE_RECEIVE &&
		       !(flow->method->flags & (NB_NO_DATA | NB_FETCHES));

	return draining ? &flow->control->abort : &flow->control->stop;
}

/* Where the pace of a sender counts from. */
struct pace {
	uint64_t begun;
	uint64_t bytes;
};

/* The rare work after a step: a sender keeps its rate, a receiver looks for its first data. Returns
 * whether the next step needs it too. */
static int follow_step(const struct nb_flow *flow, const struct pace *pace, int until)
{
	uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);

	if (flow->job->role == NB_ROLE_RECEIVE)
		return !see_first_data(flow->control);
	keep_pace(flow, pace->begun, bytes - pace->bytes, until);
	return 1;
}

/* Steps of one flow until `stop` has come to `until`, the limit is reached, the stream ends, or no
 * step is to be followed any more. A copy of its own where none is: that loop is what a chunk
 * costs. */
static inline __attribute__((always_inline)) int take_steps(struct nb_flow *flow,
							    const _Atomic int *stop, int until,
							    const struct pace *pace)
{
	size_t chunk = chunk_of(flow);

	while (flow->left && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		uint64_t left = flow->left;
		ssize_t moved = flow->method->step(flow, chunk < left ? chunk : (size_t)left);

		if (moved <= 0) {
			flow->moved = moved;
			return 0;
		}
		count_step(flow, moved);
		if (pace && !follow_step(flow, pace, until))
			return 1;
	}
	return 0;
}

/* The loop of one flow. */
static void pump_one(struct nb_flow *flow, int until)
{
	const _Atomic int *stop = stop_of(flow);
	uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
	int paced = flow->job->role == NB_ROLE_SEND && flow->job->rate;
	int followed = paced || (stop == &flow->control->abort && flow->job->bytes);
	const struct pace pace = { .begun = paced ? nb_now() : 0, .bytes = bytes };

	if (!followed || take_steps(flow, stop, until, &pace))
		take_steps(flow, stop, until, NULL);
}

static void fail_thread_group(struct nb_flow *flows, const char *what)
{
	for (uint32_t i = 0; i < flows->thread_group; i++)
		flows[i].moved =
			nb_flow_fail(&flows[i], what, "raise the limit on open files (ulimit -n)",
				     "for its streams");
}

static int ready_fd(const struct nb_flow *flow)
{
	return flow->ready ? flow->ready : flow->socket;
}

/* The loop of several flows: a step of each that is ready, over and over. */
static void pump_ready(struct nb_flow *flows, int until)
{
	enum { BATCH = 32, LOOK_MS = 100 };
	const _Atomic int *stop = stop_of(flows);
	uint32_t events = flows->job->role == NB_ROLE_SEND ? EPOLLOUT : EPOLLIN, open = 0;
	int unseen = stop == &flows->control->abort && flows->job->bytes,
	    set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ready[BATCH];

	for (uint32_t i = 0; set >= 0 && i < flows->thread_group; i++) {
		struct epoll_event event = { .events = events, .data.u32 = i };

		if (!flows[i].failed && flows[i].left &&
		    !epoll_ctl(set, EPOLL_CTL_ADD, ready_fd(&flows[i]), &event))
			open++;
	}
	if (set < 0)
		fail_thread_group(flows, "epoll_create1");
	while (open && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		int count = epoll_wait(set, ready, BATCH, LOOK_MS);

		for (int i = 0; i < count; i++) {
			struct nb_flow *flow = &flows[ready[i].data.u32];
			ssize_t moved;

			moved = reap_or_step(flow, ready[i].events);
			if (moved == NB_NOTHING)
				continue;
			flow->moved = moved;
			if (flow->moved > 0 && unseen && see_first_data(flow->control))
				unseen = 0;
			if (flow->moved > 0 && flow->left)
				continue;
			epoll_ctl(set, EPOLL_CTL_DEL, ready_fd(flow), NULL);
			open--;
			if (flow->moved < 0)
				nb_pump_fail(flow);
		}
	}
	if (set >= 0)
		close(set);
}

void nb_pump(struct nb_flow *flows, int until)
{
	if (flows->thread_group > 1)
		pump_ready(flows, until);
	else
		pump_one(flows, until);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		if (flows[i].moved < 0)
			nb_pump_fail(&flows[i]);
}
