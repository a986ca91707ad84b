/* SPDX-License-Identifier: MIT */
#include "method.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

void nb_pump_fail(struct nb_flow *flow)
{
	if (flow->failed)
		return;
	flow->failed = flow->error.code ? -(int)flow->error.code : -NB_ERR_SYSTEM;
	flow->failed_at = nb_now();
	shutdown(flow->socket, SHUT_RDWR);
	atomic_store_explicit(&flow->ended, 1, memory_order_release);
	nb_run_control_notify(flow->control);
}

/* Until when a paced sender sleeps; 0: it sends on. It sleeps when it is PACE_QUANTUM_NS ahead,
 * which iperf3's --pacing-timer is too: once a chunk would add sleeps to the price of small chunks.
 * A sender that is behind sends at full speed, which no rate is: it catches up with PACE_DEBT_NS at
 * most, and with nothing from before its window. */
static uint64_t due_time(struct nb_flow *flow)
{
	enum { PACE_QUANTUM_NS = 1000000, PACE_DEBT_NS = 10000000 };
	uint64_t share = flow->job->rate / flow->job->streams, now = nb_now();
	uint64_t moved = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
	int opened = atomic_load_explicit(&flow->control->opened, memory_order_relaxed);
	uint64_t most = opened == flow->pace_opened ? PACE_DEBT_NS : 0;
	uint64_t due = flow->pace_begun + (uint64_t)((double)(moved - flow->pace_bytes) * 8e9 /
						     (double)(share ? share : 1));

	flow->pace_opened = opened;
	if (due + most < now)
		flow->pace_begun += now - most - due;
	return due < now + PACE_QUANTUM_NS ? 0 : due;
}

static int is_paced(const struct nb_flow *flow)
{
	return flow->job->role == NB_ROLE_SEND && flow->job->rate;
}

static void begin_pace(struct nb_flow *flow)
{
	flow->pace_begun = nb_now();
	flow->pace_bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
}

/* Hold the offered load: sleep until the bytes that were sent are due. */
static void keep_pace(struct nb_flow *flow, int until)
{
	uint64_t due = due_time(flow);

	for (uint64_t now; (now = nb_now()) < due && atomic_load(&flow->control->stop) < until;)
		nb_sleep_until(due, now);
}

/* The window of a bytes-bounded run was opened while nothing moved: its time begins with the first
 * bytes of any stream. */
static int see_first_data(struct nb_run_control *control)
{
	uint64_t none = 0;

	if (!atomic_load_explicit(&control->opened, memory_order_acquire))
		return 0;
	atomic_compare_exchange_strong(&control->first_data, &none, nb_now());
	return 1;
}

/* What one step moved: counts it, and takes it off what is left. */
static inline __attribute__((always_inline)) void count_step(struct nb_flow *flow, ssize_t moved)
{
	nb_add(&flow->bytes, (uint64_t)moved);
	nb_add(&flow->steps, 1);
	flow->left -= (uint64_t)moved;
}

static size_t chunk_of(const struct nb_flow *flow)
{
	return flow->job->chunk ? (size_t)flow->job->chunk : SIZE_MAX;
}

/* A step, or the rest of one. */
static ssize_t step(struct nb_flow *flow)
{
	size_t chunk = chunk_of(flow), rest = flow->rest_length;
	ssize_t moved;

	flow->rest_length = 0;
	moved = rest ? flow->method->resume(flow, flow->rest, rest)
		     : flow->method->step(flow, chunk < flow->left ? chunk : (size_t)flow->left);
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

/* The rare work after a step: a sender keeps its rate, a receiver looks for its first data. Returns
 * whether the next step needs it too. */
static int follow_step(struct nb_flow *flow, int until)
{
	if (flow->job->role == NB_ROLE_RECEIVE)
		return !see_first_data(flow->control);
	keep_pace(flow, until);
	return 1;
}

/* Steps of one flow until `stop` has come to `until`, the limit is reached, the stream ends, or no
 * step is to be followed any more. A copy of its own where none is: that loop is what a chunk
 * costs. */
static inline __attribute__((always_inline)) int take_steps(struct nb_flow *flow,
							    const _Atomic int *stop, int until,
							    int followed)
{
	ssize_t (*const take_step)(struct nb_flow *, size_t) = flow->method->step;
	size_t chunk = chunk_of(flow);

	while (flow->left && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		uint64_t left = flow->left;
		ssize_t moved = take_step(flow, chunk < left ? chunk : (size_t)left);

		if (moved <= 0) {
			flow->moved = moved;
			return 0;
		}
		count_step(flow, moved);
		if (followed && !follow_step(flow, until))
			return 1;
	}
	return 0;
}

static void pump_one(struct nb_flow *flow, int until)
{
	const _Atomic int *stop = stop_of(flow);
	int followed = is_paced(flow) || (stop == &flow->control->abort && flow->job->bytes);

	begin_pace(flow);
	do {
		flow->moved = 1;
		if (!followed || take_steps(flow, stop, until, 1))
			take_steps(flow, stop, until, 0);
	} while (flow->moved == NB_NOTHING && atomic_load(stop) < until); /* it has slept */
}

/* What a thread of several flows waits with. */
struct ready_set {
	int epoll;
	uint32_t events;
	uint32_t open;	  /* flows in it */
	uint32_t waiting; /* of these: for a time, not for their connection */
};

static int ready_fd(const struct nb_flow *flow)
{
	return flow->ready ? flow->ready : flow->socket;
}

static int set_events(const struct ready_set *set, const struct nb_flow *flow, uint32_t index,
		      int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = index };

	return epoll_ctl(set->epoll, operation, ready_fd(flow), &event);
}

static void remove_flow(struct ready_set *set, struct nb_flow *flow, ssize_t moved)
{
	flow->moved = moved;
	epoll_ctl(set->epoll, EPOLL_CTL_DEL, ready_fd(flow), NULL);
	set->open--;
	set->waiting -= flow->waits;
	if (moved < 0)
		nb_pump_fail(flow);
}

/* A flow that is to wait for a time waits for nothing else meanwhile. */
static void set_aside(struct ready_set *set, struct nb_flow *flow, uint32_t index)
{
	uint64_t due = is_paced(flow) ? due_time(flow) : 0;

	flow->wake = due > flow->wake ? due : flow->wake;
	if (!flow->wake || flow->waits)
		return;
	flow->waits = 1;
	set->waiting++;
	if (!flow->timed)
		set_events(set, flow, index, EPOLL_CTL_MOD, 0);
}

static int serve_flow(struct ready_set *set, struct nb_flow *flow, uint32_t index, uint32_t events);

/* Flows whose time has come wait for their connections again; those with a queue look at it.
 * Returns in how many ns the next one is due, at most `most`. */
static uint64_t wake_flows(struct ready_set *set, struct nb_flow *flows, uint64_t most)
{
	uint64_t now = set->waiting ? nb_now() : 0, next = now + most;

	for (uint32_t i = 0; set->waiting && i < flows->thread_group; i++) {
		if (flows[i].wake && flows[i].wake <= now) {
			flows[i].wake = 0;
			flows[i].waits = 0;
			set->waiting--;
			if (!flows[i].timed)
				set_events(set, &flows[i], i, EPOLL_CTL_MOD, set->events);
			if (flows[i].ready && flows[i].job->role == NB_ROLE_SEND)
				serve_flow(set, &flows[i], i, EPOLLIN);
		}
		if (flows[i].wake && flows[i].wake < next)
			next = flows[i].wake > now ? flows[i].wake : now;
	}
	return set->waiting ? next - now : most;
}

/* Wait for connections, at most so many ns: epoll_pwait2(2), Linux 5.11; else whole ms. */
static int await_ready(const struct ready_set *set, struct epoll_event *ready, int most,
		       uint64_t ns)
{
	const struct timespec time = nb_timespec(ns);
	long count = -1;

	if (ns % 1000000)
		count = syscall(SYS_epoll_pwait2, set->epoll, ready, most, &time, NULL, 0);
	if (ns % 1000000 == 0 || (count < 0 && errno == ENOSYS))
		count = epoll_wait(set->epoll, ready, most, (int)((ns + 999999) / 1000000));
	return (int)count;
}

/* Whether a thread goes on after its stop, for what its flows owe: not for ever. */
static int still_owes(const struct nb_flow *flows, uint64_t *since)
{
	int owing = 0;

	if (!flows->method->owes || atomic_load(&flows->control->abort))
		return 0;
	*since = *since ? *since : nb_now();
	for (uint32_t i = 0; !owing && i < flows->thread_group; i++)
		owing = !flows[i].failed && flows[i].method->owes(&flows[i]);
	return owing && nb_now() < *since + NB_OWED_SECONDS * 1000000000ULL;
}

/* Whether a flow has another turn, after so many turns of one look in which it moved so many bytes.
 * A paced one has none. With a queue of its own: as long as that has room, but a receiver not so
 * long that others starve. Without: for so many calls and bytes, as a thread of its own would: its
 * data is still in the processor's cache, and a sender whose buffer was full has room once the
 * receiver has read. */
static int has_turn(const struct nb_flow *flow, uint32_t events, size_t turns, size_t total)
{
	enum { TURNS = 16, LOOK_TURNS = 1024, LOOK_BYTES = 16 * 1024 * 1024 };

	if (is_paced(flow) || flow->timed)
		return 0;
	if (flow->ready)
		return flow->job->role == NB_ROLE_SEND || turns < TURNS;
	return flow->wait == NB_WAIT_LATER && turns < LOOK_TURNS && total < LOOK_BYTES &&
	       events != EPOLLERR;
}

static int serve_flow(struct ready_set *set, struct nb_flow *flow, uint32_t index, uint32_t events)
{
	size_t turns = 0, total = 0;
	int left = flow->rest_length > 0, answers = flow->job->role == NB_ROLE_RECEIVE;
	ssize_t moved;

	do {
		moved = reap_or_step(flow, events);
		if (moved == NB_NOTHING)
			break;
		if (moved <= 0 || !flow->left) {
			remove_flow(set, flow, moved);
			return total || moved > 0;
		}
		total += (size_t)moved;
	} while (has_turn(flow, events, ++turns, total));
	if (answers && left != (flow->rest_length > 0))
		set_events(set, flow, index, EPOLL_CTL_MOD, left ? set->events : EPOLLOUT);
	set_aside(set, flow, index);
	return total > 0;
}

static void add_flows(struct ready_set *set, struct nb_flow *flows)
{
	for (uint32_t i = 0; i < flows->thread_group; i++) {
		struct nb_flow *flow = &flows[i];

		flow->wake = 0;
		flow->waits = 0;
		begin_pace(flow);
		if (flow->failed || !flow->left)
			continue;
		if (set_events(set, flow, i, EPOLL_CTL_ADD, set->events)) {
			flow->moved = nb_flow_fail(flow, "epoll_ctl",
						   "raise /proc/sys/fs/epoll/max_user_watches",
						   "for a stream");
			continue;
		}
		set->open++;
		if (flow->ready && flow->job->role == NB_ROLE_SEND)
			serve_flow(set, flow, i, EPOLLIN); /* its queue is empty */
	}
}

/* Busy polling of one epoll(7), Linux 6.9 (epoll_params of linux/eventpoll.h). As many packets a
 * look as an account may ask for without CAP_NET_ADMIN. */
static int poll_busily(const struct ready_set *set, struct nb_flow *flow)
{
	const struct {
		uint32_t usecs;
		uint16_t budget;
		uint8_t prefer, pad;
	} params = { flow->polls, 64, 1, 0 };

	if (!flow->polls || !ioctl(set->epoll, _IOW(0x8A, 1, params), &params))
		return 0;
	nb_fail(&flow->error, errno == ENOTTY ? NB_ERR_UNSUPPORTED : NB_ERR_SYSTEM, "busy polling",
		"use wait: epoll or spin", "EPIOCSPARAMS, of Linux 6.9: %s", strerror(errno));
	flow->moved = -1;
	return -1;
}

/* The loop of several flows: those that are ready are served, over and over. */
static void pump_ready(struct nb_flow *flows, int until)
{
	enum { BATCH = 64, LOOK_NS = 100000000 };
	const _Atomic int *stop = stop_of(flows);
	int sends = flows->job->role == NB_ROLE_SEND,
	    unseen = stop == &flows->control->abort && flows->job->bytes;
	struct ready_set set = { .epoll = epoll_create1(EPOLL_CLOEXEC),
				 .events = sends && !flows->ready ? EPOLLOUT : EPOLLIN };
	struct epoll_event ready[BATCH];
	uint64_t stopped = 0;

	if (set.epoll < 0) {
		for (uint32_t i = 0; i < flows->thread_group; i++)
			flows[i].moved = nb_flow_fail(&flows[i], "epoll_create1",
						      "raise the limit on open files (ulimit -n)",
						      "for its streams");
		return;
	}
	if (poll_busily(&set, flows)) {
		close(set.epoll);
		return;
	}
	add_flows(&set, flows);
	while (set.open && (atomic_load_explicit(stop, memory_order_relaxed) < until ||
			    still_owes(flows, &stopped))) {
		uint64_t wait = wake_flows(&set, flows, flows->spins ? 0 : LOOK_NS);
		int count = await_ready(&set, ready, BATCH, wait);

		for (int i = 0; i < count; i++) {
			uint32_t index = ready[i].data.u32;
			int some = serve_flow(&set, &flows[index], index, ready[i].events);

			if (some && unseen && see_first_data(flows->control))
				unseen = 0;
		}
	}
	close(set.epoll);
}

void nb_pump_rest(struct nb_flow *flow)
{
	while (flow->rest_length && !atomic_load(&flow->control->abort)) {
		ssize_t moved;

		nb_flow_poll(flow, POLLOUT);
		moved = step(flow);
		if (moved == NB_NOTHING)
			nb_sleep(1000000);
		else if (moved < 0)
			flow->moved = moved;
		if (moved < 0 && moved != NB_NOTHING)
			return;
	}
}

void nb_pump(struct nb_flow *flows, int until)
{
	if (flows->thread_group > 1 || flows->timed)
		pump_ready(flows, until);
	else
		pump_one(flows, until);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		if (flows[i].moved < 0 && flows[i].moved != NB_NOTHING)
			nb_pump_fail(&flows[i]);
}
