/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "beat.h"
#include "clock.h"
#include "method.h"

int nb_gates_open(struct nb_gates *gates, struct nb_error *error)
{
	memset(gates, 0, sizeof(*gates));
	pthread_mutex_init(&gates->lock, NULL);
	pthread_cond_init(&gates->moved, NULL);
	gates->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return gates->notify >= 0 ? 0
				  : nb_fail_errno(error, "prepare run", "raise the limit on open files (ulimit -n)", "eventfd");
}

void nb_gates_move(struct nb_gates *gates, enum nb_gate gate)
{
	pthread_mutex_lock(&gates->lock);
	gates->gate = gate;
	pthread_cond_broadcast(&gates->moved);
	pthread_mutex_unlock(&gates->lock);
}

void nb_gates_close(struct nb_gates *gates)
{
	close(gates->notify);
	pthread_cond_destroy(&gates->moved);
	pthread_mutex_destroy(&gates->lock);
}

static void wait_gate(struct nb_gates *gates, enum nb_gate gate)
{
	pthread_mutex_lock(&gates->lock);
	while (gates->gate < gate)
		pthread_cond_wait(&gates->moved, &gates->lock);
	pthread_mutex_unlock(&gates->lock);
}

static void notify(struct nb_gates *gates)
{
	uint64_t one = 1;
	ssize_t written = write(gates->notify, &one, sizeof(one));

	(void)written; /* full means that a notice is already there */
}

ssize_t nb_flow_fail(struct nb_flow *flow, const char *operation, const char *remedy, const char *what)
{
	if (errno == EPIPE || errno == ECONNRESET || errno == ECONNABORTED)
		remedy = "look at the other side's error";
	return nb_fail_errno(&flow->error, operation, remedy, "%s", what);
}

int nb_flow_buffer(struct nb_flow *flow, size_t size, struct nb_error *error)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size_t)flow->job->align + size;

	whole = (whole + page - 1) / page * page;
	if (posix_memalign(&flow->allocated, page, whole)) {
		flow->allocated = NULL;
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use a smaller chunk", "no memory for a buffer of %zu bytes",
			       whole);
	}
	flow->buffer = (unsigned char *)flow->allocated + flow->job->align;
	nb_pattern(flow->allocated, whole, 0);
	return 0;
}

ssize_t nb_flow_write(struct nb_flow *flow, const void *bytes, size_t length, unsigned int calls, unsigned int shorts)
{
	size_t done = 0;

	while (done < length) {
		ssize_t written = write(flow->socket, (const char *)bytes + done, length - done);

		nb_count(flow, calls, 1);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return nb_flow_fail(flow, "write", "keep the source as it is during a run", "to the connection");
		done += (size_t)written;
		if (done < length)
			nb_count(flow, shorts, 1);
	}
	return (ssize_t)done;
}

/* Hold the offered load: sleep until the bytes that were sent are due, in slices so that a stop is seen. */
static void keep_pace(const struct nb_flow *flow, uint64_t begun, uint64_t moved, int until)
{
	uint64_t share = flow->job->rate / flow->job->streams;
	uint64_t due = begun + (uint64_t)((double)moved * 8e9 / (double)(share ? share : 1));

	while (atomic_load_explicit(&flow->gates->stop, memory_order_relaxed) < until) {
		uint64_t now = nb_now(), wake = due < now + 10000000 ? due : now + 10000000;
		struct timespec at = { .tv_sec = (time_t)(wake / 1000000000), .tv_nsec = (long)(wake % 1000000000) };

		if (now >= due)
			return;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}

/* The window of a bytes-bounded run was opened while nothing moved: its time begins with the first bytes of any stream. */
static int see_first_data(struct nb_gates *gates)
{
	uint64_t none = 0;

	if (!atomic_load_explicit(&gates->marked, memory_order_acquire))
		return 0;
	atomic_compare_exchange_strong(&gates->first_data, &none, nb_now());
	return 1;
}

/* The shared loop: steps of the method until `stop` has come to `until`, the limit is reached or the stream ends. */
static ssize_t pump(struct nb_flow *flow, uint64_t limit, int until)
{
	const struct nb_method *method = flow->method;
	const _Atomic int *stop = &flow->gates->stop;
	uint64_t rate = flow->job->role == NB_ROLE_SEND ? flow->job->rate : 0;
	uint64_t begun = rate ? nb_now() : 0, bytes = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
	uint64_t steps = atomic_load_explicit(&flow->steps, memory_order_relaxed), first = bytes;
	size_t chunk = flow->job->chunk ? (size_t)flow->job->chunk : SIZE_MAX;
	int draining = flow->job->role == NB_ROLE_RECEIVE && !(method->flags & NB_NO_DATA);
	int unseen = draining && flow->job->bytes;
	ssize_t moved = 1;

	if (draining) /* a receiver reads until the stream ends */
		stop = &flow->gates->abort;
	while (limit && atomic_load_explicit(stop, memory_order_relaxed) < until) {
		moved = method->step(flow, chunk < limit ? chunk : (size_t)limit);
		if (moved <= 0)
			break;
		if (unseen && see_first_data(flow->gates))
			unseen = 0;
		bytes += (uint64_t)moved;
		atomic_store_explicit(&flow->bytes, bytes, memory_order_relaxed);
		atomic_store_explicit(&flow->steps, ++steps, memory_order_relaxed);
		if (limit != NB_MISSING)
			limit -= (uint64_t)moved;
		if (rate)
			keep_pace(flow, begun, bytes - first, until);
	}
	return moved;
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
			return (int)nb_flow_fail(flow, "send preamble", "look at the other side's error", "to the connection");
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

	while (!ioctl(flow->socket, SIOCOUTQ, &queued) && queued && !atomic_load(&flow->gates->abort))
		nanosleep(&pause, NULL);
}

/* Close our half and wait until the other side has closed its own: then every byte has been taken. */
static int finish_connection(struct nb_flow *flow)
{
	char byte;
	ssize_t got;

	shutdown(flow->socket, SHUT_WR);
	if (flow->job->role == NB_ROLE_RECEIVE)
		return 0;
	do
		got = recv(flow->socket, &byte, 1, 0);
	while ((got < 0 && errno == EINTR) || got > 0);
	return got < 0 ? (int)nb_flow_fail(flow, "finish", "look at the other side's error", "waiting for the receiver to close")
		       : 0;
}

static int move_data(struct nb_flow *flow)
{
	struct nb_gates *gates = flow->gates;
	int sends = flow->job->role == NB_ROLE_SEND, bounded = flow->job->bytes != 0;
	ssize_t moved;

	wait_gate(gates, NB_GATE_WARM);
	if (sends && bounded) {
		if (flow->job->warmup) {
			if (send_preamble(flow))
				return -1;
			if (pump(flow, NB_MISSING, NB_STOP_PUMP) < 0)
				return -1;
			wait_acknowledged(flow);
		}
		atomic_store_explicit(&flow->parked, 1, memory_order_release);
		notify(gates);
		wait_gate(gates, NB_GATE_RUN);
	}
	if (sends && !(bounded && flow->job->warmup) && send_preamble(flow))
		return -1;
	moved = pump(flow, sends && bounded ? flow->limit : NB_MISSING, bounded ? NB_STOP_ALL : NB_STOP_PUMP);
	if (moved < 0)
		return -1;
	if (sends && moved == 0)
		return nb_fail(&flow->error, NB_ERR_SYSTEM, "read source", "keep the source as it is during a run",
			       "the source ended before its size: it was cut short during the run");
	if (flow->method->drain && flow->method->drain(flow))
		return -1;
	return finish_connection(flow);
}

int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error)
{
	uint64_t left = atomic_load_explicit(&flow->bytes, memory_order_relaxed), preamble = flow->job->preamble;
	static const unsigned char zeros[4096];

	*digest = NB_DIGEST_START;
	if (flow->job->role == NB_ROLE_RECEIVE)
		return nb_sink_digest(&flow->sink, left, digest, error);
	for (uint64_t done = 0; done < preamble && left; done += sizeof(zeros)) {
		size_t length = preamble - done < sizeof(zeros) ? (size_t)(preamble - done) : sizeof(zeros);

		*digest = nb_digest(*digest, zeros, length);
		left -= length;
	}
	if (flow->source.count)
		return nb_source_digest(&flow->source, left, digest, error);
	while (left) {
		size_t length = left < flow->job->chunk ? (size_t)left : (size_t)flow->job->chunk;

		nb_beat();
		*digest = nb_digest(*digest, flow->buffer, length);
		left -= length;
	}
	return 0;
}

static void *flow_main(void *argument)
{
	struct nb_flow *flow = argument;

	if (move_data(flow)) {
		flow->failed = flow->error.code ? -(int)flow->error.code : -NB_ERR_SYSTEM;
		shutdown(flow->socket, SHUT_RDWR);
	}
	atomic_store_explicit(&flow->ended, 1, memory_order_release);
	notify(flow->gates);
	return NULL;
}

int nb_flow_open(struct nb_flow *flow, struct nb_error *error)
{
	int status = 0;

	flow->sink.fd = -1;
	if (flow->job->role == NB_ROLE_SEND && flow->method->flags & NB_FROM_FILE)
		status = nb_source_open(&flow->source, flow->job, error);
	else if (flow->job->role == NB_ROLE_RECEIVE)
		status = nb_sink_open(&flow->sink, flow->job, flow->index, error);
	if (!status && flow->source.count && !flow->job->chunk && flow->source.largest == NB_MISSING)
		status = nb_fail(error, NB_ERR_REQUEST, "prepare run", "give a size as chunk", "this source is endless");
	if (!status && flow->method->open)
		status = flow->method->open(flow, error);
	return status;
}

int nb_flow_start(struct nb_flow *flow, struct nb_error *error)
{
	pthread_attr_t attributes;
	int status;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 * 1024);
	if (flow->job->cpu != NB_MISSING) {
		cpu_set_t set;

		CPU_ZERO(&set);
		if (flow->job->cpu < CPU_SETSIZE) /* else no CPU, which pthread_create refuses */
			CPU_SET(flow->job->cpu, &set);
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	}
	status = pthread_create(&flow->thread, &attributes, flow_main, flow);
	pthread_attr_destroy(&attributes);
	flow->started = !status;
	errno = status;
	if (status)
		return nb_fail_errno(error, "start flow", "pin to a CPU that this process may use (see `nproc`, `taskset -p $$`)",
				     "a thread for stream %u", flow->index);
	return 0;
}

void nb_flow_join(struct nb_flow *flow)
{
	if (flow->started)
		pthread_join(flow->thread, NULL);
	flow->started = 0;
}

void nb_flow_close(struct nb_flow *flow)
{
	if (flow->method && flow->method->close)
		flow->method->close(flow);
	nb_source_close(&flow->source);
	nb_sink_close(&flow->sink);
	free(flow->allocated);
	flow->allocated = NULL;
	if (flow->socket >= 0)
		close(flow->socket);
	flow->socket = -1;
}
