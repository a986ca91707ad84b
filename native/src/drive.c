/* SPDX-License-Identifier: MIT */
/*
 * The threads that move data. Each flow has one of its own; flows that are pinned to one CPU share
 * one, which steps those that are ready: threads that take turns on one CPU would cost a switch and
 * a wake-up from the other side at every full buffer.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "heartbeat.h"
#include "method.h"

static void wait_gate(struct nb_run_control *control, enum nb_gate gate)
{
	pthread_mutex_lock(&control->lock);
	while (control->gate < gate)
		pthread_cond_wait(&control->moved, &control->lock);
	pthread_mutex_unlock(&control->lock);
}

static void notify(struct nb_run_control *control)
{
	uint64_t one = 1;
	ssize_t written = write(control->notify, &one, sizeof(one));

	(void)written; /* full means that a notice is already there */
}

static void fail_flow(struct nb_flow *flow)
{
	if (flow->failed)
		return;
	flow->failed = flow->error.code ? -(int)flow->error.code : -NB_ERR_SYSTEM;
	shutdown(flow->socket, SHUT_RDWR);
	atomic_store_explicit(&flow->ended, 1, memory_order_release);
	notify(flow->control);
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
static void moved_some(struct nb_flow *flow, ssize_t moved)
{
	uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed) + (uint64_t)moved;
	uint64_t steps = atomic_load_explicit(&flow->steps, memory_order_relaxed) + 1;

	atomic_store_explicit(&flow->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&flow->steps, steps, memory_order_relaxed);
	if (flow->left != NB_MISSING)
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
		moved_some(flow, moved);
	return moved;
}

/*
 * A connection whose error queue holds something is always reported, though it may have no room: a
 * step would wait for room while the others are ready. One that has really failed is reported as
 * ready too, and its step says why.
 */
static ssize_t reap_or_step(struct nb_flow *flow, uint32_t events)
{
	int status;

	if (events != EPOLLERR || !flow->method->reap)
		return step(flow);
	status = flow->method->reap(flow);
	return status < 0 ? status : flow->moved;
}

/* A receiver reads until the stream ends, whatever the controller says but an abort. */
static const _Atomic int *stop_of(const struct nb_flow *flow)
{
	int draining = flow->job->role == NB_ROLE_RECEIVE &&
		       !(flow->method->flags & (NB_NO_DATA | NB_FETCHES));

	return draining ? &flow->control->abort : &flow->control->stop;
}

/* The loop of one flow: steps of the method until `stop` has come to `until`, the limit is reached
 * or the stream ends. */
static void pump_one(struct nb_flow *flow, int until)
{
	const _Atomic int *stop = stop_of(flow);
	uint64_t rate = flow->job->role == NB_ROLE_SEND ? flow->job->rate : 0,
		 begun = rate ? nb_now() : 0;
	uint64_t bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed), first = bytes;
	uint64_t steps = atomic_load_explicit(&flow->steps, memory_order_relaxed),
		 left = flow->left;
	size_t chunk = chunk_of(flow);
	int unseen = stop == &flow->control->abort && flow->job->bytes;
	ssize_t moved = flow->moved;

	while (left && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		moved = flow->method->step(flow, chunk < left ? chunk : (size_t)left);
		if (moved <= 0)
			break;
		bytes += (uint64_t)moved;
		atomic_store_explicit(&flow->bytes, bytes, memory_order_relaxed);
		atomic_store_explicit(&flow->steps, ++steps, memory_order_relaxed);
		if (left != NB_MISSING)
			left -= (uint64_t)moved;
		if (unseen && see_first_data(flow->control))
			unseen = 0;
		if (rate)
			keep_pace(flow, begun, bytes - first, until);
	}
	flow->left = left;
	flow->moved = moved;
}

static void fail_thread_group(struct nb_flow *flows, const char *what)
{
	for (uint32_t i = 0; i < flows->thread_group; i++)
		flows[i].moved =
			nb_flow_fail(&flows[i], what, "raise the limit on open files (ulimit -n)",
				     "for its streams");
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
		    !epoll_ctl(set, EPOLL_CTL_ADD, flows[i].socket, &event))
			open++;
	}
	if (set < 0)
		fail_thread_group(flows, "epoll_create1");
	while (open && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		int count = epoll_wait(set, ready, BATCH, LOOK_MS);

		for (int i = 0; i < count; i++) {
			struct nb_flow *flow = &flows[ready[i].data.u32];

			flow->moved = reap_or_step(flow, ready[i].events);
			if (flow->moved > 0 && unseen && see_first_data(flow->control))
				unseen = 0;
			if (flow->moved > 0 && flow->left)
				continue;
			epoll_ctl(set, EPOLL_CTL_DEL, flow->socket, NULL);
			open--;
			if (flow->moved < 0)
				fail_flow(flow);
		}
	}
	if (set >= 0)
		close(set);
}

static void pump(struct nb_flow *flows, int until)
{
	if (flows->thread_group > 1)
		pump_ready(flows, until);
	else
		pump_one(flows, until);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		if (flows[i].moved < 0)
			fail_flow(&flows[i]);
}

static int send_preamble(struct nb_flow *flow)
{
	static unsigned char header[1 << 20];
	size_t length = (size_t)flow->job->preamble, done = 0;

	while (done < length) {
		ssize_t sent = send(flow->socket, header + done, length - done, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return (int)nb_flow_fail(flow, "send preamble",
						 "look at the other side's error",
						 "to the connection");
		done += (size_t)sent;
	}
	atomic_fetch_add_explicit(&flow->bytes, length, memory_order_relaxed);
	return 0;
}

/* Everything sent so far has been acknowledged, or the run is being given up. */
static void wait_acknowledged(struct nb_flow *flow)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	int queued = 0;

	while (!ioctl(flow->socket, SIOCOUTQ, &queued) && queued &&
	       !atomic_load(&flow->control->abort))
		nanosleep(&pause, NULL);
}

/* The other side has closed its half too: then every byte has been taken. */
static int wait_closed(struct nb_flow *flow)
{
	char byte;
	ssize_t got;

	do
		got = recv(flow->socket, &byte, 1, 0);
	while ((got < 0 && errno == EINTR) || got > 0);
	return got < 0 ? (int)nb_flow_fail(flow, "finish", "look at the other side's error",
					   "waiting for the receiver to close")
		       : 0;
}

static int end_stream(struct nb_flow *flow)
{
	if (flow->job->role == NB_ROLE_SEND && flow->moved == 0)
		return nb_fail(&flow->error, NB_ERR_SYSTEM, "read source",
			       "keep the source as it is during a run",
			       "%.150s ended before its size: it was cut short during the run",
			       flow->job->source_path[0] ? flow->job->source_path : "the source");
	if (flow->method->drain && flow->method->drain(flow))
		return -1;
	shutdown(flow->socket, SHUT_WR);
	return 0;
}

static int drain_warmup(struct nb_flow *flow)
{
	wait_acknowledged(flow);
	return flow->method->drain ? flow->method->drain(flow) : 0;
}

/* Do something with every flow that has not failed. */
static void each(struct nb_flow *flows, int (*act)(struct nb_flow *flow))
{
	for (uint32_t i = 0; i < flows->thread_group; i++)
		if (!flows[i].failed && act(&flows[i]))
			fail_flow(&flows[i]);
}

static void set_limits(struct nb_flow *flows, int bounded)
{
	for (uint32_t i = 0; i < flows->thread_group; i++) {
		flows[i].left = bounded ? flows[i].limit : NB_MISSING;
		flows[i].moved = 1;
	}
}

/* Move as many bytes as it takes to be warm, then wait until the window is open. */
static void warm_up(struct nb_flow *flows)
{
	if (flows->job->warmup) {
		each(flows, send_preamble);
		set_limits(flows, 0);
		pump(flows, NB_STOP_PUMP);
		each(flows, drain_warmup);
	}
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].warmed_up, 1, memory_order_release);
	notify(flows->control);
	wait_gate(flows->control, NB_GATE_RUN);
}

static void *drive(void *argument)
{
	struct nb_flow *flows = argument;
	int sends = flows->job->role == NB_ROLE_SEND, bounded = flows->job->bytes != 0;

	wait_gate(flows->control, NB_GATE_WARM);
	if (sends && bounded)
		warm_up(flows);
	if (sends && !(bounded && flows->job->warmup))
		each(flows, send_preamble);
	set_limits(flows, sends && bounded);
	pump(flows, bounded ? NB_STOP_ALL : NB_STOP_PUMP);
	each(flows, end_stream);
	if (sends)
		each(flows, wait_closed);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].ended, 1, memory_order_release);
	notify(flows->control);
	return NULL;
}

/* Flows that can share a thread: they would take turns on one CPU anyway. Pacing sleeps, so a paced
 * flow is alone. */
uint32_t nb_flow_thread_group(const struct nb_job *job, size_t count)
{
	return job->cpu != NB_MISSING && !job->rate &&
			       !(job->method->flags & (NB_NO_DATA | NB_FETCHES))
		       ? (uint32_t)count
		       : 1;
}

int nb_flow_start(struct nb_flow *flow, uint32_t thread_group, struct nb_error *error)
{
	pthread_attr_t attributes;
	int status;

	flow->thread_group = thread_group;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 * 1024);
	if (flow->job->cpu != NB_MISSING) {
		cpu_set_t set;

		CPU_ZERO(&set);
		if (flow->job->cpu < CPU_SETSIZE) /* else no CPU, which pthread_create refuses */
			CPU_SET(flow->job->cpu, &set);
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	}
	status = pthread_create(&flow->thread, &attributes, drive, flow);
	pthread_attr_destroy(&attributes);
	flow->started = !status;
	errno = status;
	if (status)
		return nb_fail_errno(error, "start flow",
				     "pin to a CPU that this process may use (`taskset -p $$`), or "
				     "raise the limit on threads (ulimit -u)",
				     "a thread for stream %u", flow->index);
	return 0;
}

void nb_flow_join(struct nb_flow *flow)
{
	if (flow->started)
		pthread_join(flow->thread, NULL);
	flow->started = 0;
}

void nb_flow_give_up(struct nb_flow *flow)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	while (flow->started && pthread_tryjoin_np(flow->thread, NULL)) {
		if (flow->method->give_up)
			flow->method->give_up(flow);
		nb_heartbeat(); /* a file system whose server is gone may hold it for long all the
				 * same
				 */
		nanosleep(&pause, NULL);
	}
	flow->started = 0;
}
