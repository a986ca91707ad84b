/* SPDX-License-Identifier: MIT */
/* Flows: opened, digested, closed, and the threads that move data. Each flow has one of its own;
 * flows that are pinned share one for each CPU, which steps those that are ready: several threads
 * on one CPU would cost a switch and a wake-up from the other side at every full buffer. */
#include "run.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"
#include "pattern.h"
#include "wire.h"

/* Bytes of a file that both sides digest where neither sends them. */
enum { FETCHED_BYTES = 8 * 1024 * 1024 };

enum { UNSHARE = 2 }; /* CLOSE_RANGE_UNSHARE, which older headers lack */

int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error)
{
	uint64_t left = atomic_load_explicit(&flow->bytes, memory_order_relaxed),
		 preamble = flow->job->preamble;
	static const unsigned char zeros[4096];

	*digest = NB_DIGEST_START;
	if (flow->method->flags & NB_FETCHES)
		return nb_source_digest(&flow->source,
					flow->source.largest < FETCHED_BYTES ? flow->source.largest
									     : FETCHED_BYTES,
					digest, error);
	if (flow->job->role == NB_ROLE_RECEIVE)
		return nb_sink_digest(&flow->sink, left, digest, error);
	for (uint64_t done = 0; done < preamble && left; done += sizeof(zeros)) {
		size_t length =
			preamble - done < sizeof(zeros) ? (size_t)(preamble - done) : sizeof(zeros);

		*digest = nb_digest(*digest, zeros, length);
		left -= length;
	}
	if (flow->source.count)
		return nb_source_digest(&flow->source, left, digest, error);
	while (left) {
		size_t length = left < flow->job->chunk ? (size_t)left : (size_t)flow->job->chunk;

		nb_heartbeat();
		*digest = nb_digest(*digest, flow->buffer, length);
		left -= length;
	}
	return 0;
}

/* Whether the flow takes bytes from descriptors, memory and zero among them, or from the user's
 * buffer or the connection. */
static int takes_from_source(const struct nb_flow *flow)
{
	uint32_t flags = flow->method->flags;

	return flags & NB_FETCHES || (flow->job->role == NB_ROLE_SEND && flags & NB_FROM_FILE);
}

/* `chunk: file` needs a source of files with an end. */
static int check_chunk(const struct nb_flow *flow, struct nb_error *error)
{
	if (flow->job->role != NB_ROLE_SEND || flow->job->chunk ||
	    (flow->source.count && flow->source.largest != NB_MISSING))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "prepare run", "give a size as chunk",
		       "chunk: file sends a whole file a call, and this source has no end");
}

int nb_flow_open(struct nb_flow *flow, struct nb_error *error)
{
	int status = 0;

	flow->page = (size_t)sysconf(_SC_PAGESIZE);
	flow->sink.fd = -1;
	if (takes_from_source(flow))
		status = nb_source_open(&flow->source, flow->job, flow->index, error);
	else if (flow->job->role == NB_ROLE_RECEIVE && !(flow->method->flags & NB_REQUESTS))
		status = nb_sink_open(&flow->sink, flow->job, flow->index, error);
	if (status)
		return status;
	status = check_chunk(flow, error);
	return status || !flow->method->open ? status : flow->method->open(flow, error);
}

int nb_flow_ask(const struct nb_flow *flow, struct nb_error *error)
{
	const struct nb_job *job = flow->job;

	if (job->role == NB_ROLE_RECEIVE)
		return nb_sink_ask(job, error);
	return job->source == NB_SOURCE_FILE && takes_from_source(flow) ? nb_source_ask(job, error)
									: 0;
}

void nb_flow_close(struct nb_flow *flow)
{
	if (flow->method && flow->method->close)
		flow->method->close(flow);
	free(flow->state);
	flow->state = NULL;
	nb_source_close(&flow->source);
	nb_sink_close(&flow->sink);
	free(flow->allocated);
	flow->allocated = NULL;
	if (flow->socket >= 0)
		close(flow->socket);
	flow->socket = -1;
}

static int send_preamble(struct nb_flow *flow)
{
	static unsigned char header[1 << 20];
	size_t length = (size_t)flow->job->preamble, done = 0;

	while (done < length) {
		ssize_t sent = send(flow->socket, header + done, length - done, MSG_NOSIGNAL);

		if (sent < 0 && nb_flow_later(flow))
			nb_flow_poll(flow, POLLOUT);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
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

/* Everything sent so far has been acknowledged, or the run is being given up. What a connection
 * that was reset still had to send, SIOCOUTQ counts for ever. */
static int wait_acknowledged(struct nb_flow *flow)
{
	enum { PAUSE_NS = 200000 };
	int queued = 0;

	while (!ioctl(flow->socket, SIOCOUTQ, &queued) && queued &&
	       !atomic_load(&flow->control->abort))
		if (nb_flow_pause(flow, PAUSE_NS, "wait for acknowledgements"))
			return -1;
	return 0;
}

/* The other side has closed its half too: it has read every byte. */
static int wait_closed(struct nb_flow *flow)
{
	char byte;
	ssize_t got;

	do {
		nb_flow_poll(flow, POLLIN);
		got = recv(flow->socket, &byte, 1, 0);
	} while (got > 0 || (got < 0 && (nb_flow_later(flow) || errno == EINTR)));
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
	int status;

	nb_pump_rest(flow);
	status = flow->moved < 0 ? -1 : flow->method->drain ? flow->method->drain(flow) : 0;
	return status ? status : wait_acknowledged(flow);
}

static int sync_sink(struct nb_flow *flow)
{
	return nb_sink_sync(&flow->sink) ? (int)nb_flow_fail_sink(flow, "fsync") : 0;
}

/* After its end: see what the sink has left in the page cache, and force it to its disk. */
static int settle(struct nb_flow *flow)
{
	int failed = 0;

	if (flow->failed || flow->sink.fd < 0)
		return 1;
	nb_page_cache_look(flow->sink.fd, &flow->sink.after);
	if (flow->job->fsync == NB_FSYNC_AFTER && sync_sink(flow))
		failed = flow->error.code ? -(int)flow->error.code : -NB_ERR_SYSTEM;
	return failed ? failed : 1;
}

static int begin(struct nb_flow *flow)
{
	return flow->method->begin ? flow->method->begin(flow) : 0;
}

static void each(struct nb_flow *flows, int (*act)(struct nb_flow *flow))
{
	for (uint32_t i = 0; i < flows->thread_group; i++)
		if (!flows[i].failed && act(&flows[i]))
			nb_pump_fail(&flows[i]);
}

static void set_limits(struct nb_flow *flows, int bounded)
{
	for (uint32_t i = 0; i < flows->thread_group; i++) {
		flows[i].left = flows[i].failed ? 0 : bounded ? flows[i].limit : UINT64_MAX;
		flows[i].moved = 1;
	}
}

static void warm_up(struct nb_flow *flows)
{
	if (flows->job->warmup) {
		each(flows, send_preamble);
		set_limits(flows, 0);
		nb_pump(flows, NB_STOP_PUMP);
		each(flows, drain_warmup);
	}
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].warmed_up, 1, memory_order_release);
	nb_run_control_notify(flows->control);
	nb_run_control_wait(flows->control, NB_GATE_RUN);
}

/* A window that is bounded by time ends with its sinks on the disk: then data moves on until the
 * sender stops. Streams that have ended by themselves do not wait. */
static void sync_in_window(struct nb_flow *flows)
{
	if (atomic_load(&flows->control->abort) != NB_STOP_PUMP)
		return;
	each(flows, sync_sink);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].synced, 1, memory_order_release);
	nb_run_control_notify(flows->control);
	nb_run_control_wait(flows->control, NB_GATE_DRAIN);
	if (flows->thread_group > 1 || !flows->failed)
		nb_pump(flows, NB_STOP_ALL);
}

/* Streams end, and then do what is left to do with their sinks, which no window waits for. */
static void end_flows(struct nb_flow *flows)
{
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].ended, 1, memory_order_release);
	nb_run_control_notify(flows->control);
	for (uint32_t i = 0; i < flows->thread_group; i++)
		atomic_store_explicit(&flows[i].settled, settle(&flows[i]), memory_order_release);
	nb_run_control_notify(flows->control);
}

static void *drive(void *argument)
{
	struct nb_flow *flows = argument;
	int sends = flows->job->role == NB_ROLE_SEND, bounded = flows->job->bytes != 0;

	nb_run_control_wait(flows->control, NB_GATE_WARM);
	each(flows, begin);
	/* Descriptors of its own, without the controller's: where threads share a table, each call
	 * counts references, which is 7% of a send of 1 KiB. Before Linux 5.9 they share it. */
	if (flows->apart)
		syscall(SYS_close_range, STDIN_FILENO, STDERR_FILENO, UNSHARE);
	if (sends && bounded)
		warm_up(flows);
	if (sends && !(bounded && flows->job->warmup))
		each(flows, send_preamble);
	set_limits(flows, sends && bounded);
	nb_pump(flows, bounded ? NB_STOP_ALL : NB_STOP_PUMP);
	if (flows->job->fsync == NB_FSYNC_WINDOW && !bounded)
		sync_in_window(flows);
	each(flows, end_stream);
	if (sends)
		each(flows, wait_closed);
	else if (flows->job->fsync == NB_FSYNC_WINDOW && bounded)
		each(flows, sync_sink);
	end_flows(flows);
	return NULL;
}

/* A thread each flow; of pinned ones a thread each CPU, which runs them one at a time anyway. */
static size_t count_threads(const struct nb_job *job, size_t flows)
{
	size_t wanted = (size_t)(job->threads ? job->threads : job->cpus.count);
	int alone =
		nb_method_is_alone(job) || (!job->threads && job->method->flags & NB_THREAD_EACH);

	if (!wanted && job->method->flags & NB_REQUESTS)
		wanted = 1; /* connections are many */
	return !wanted || alone || wanted > flows ? flows : wanted;
}

void nb_flow_deal(struct nb_flow *flows, size_t count)
{
	const struct nb_job *job = flows->job;
	size_t threads = count_threads(job, count);

	for (size_t t = 0; t < threads; t++) {
		size_t first = t * count / threads, end = (t + 1) * count / threads;

		flows[first].thread_group = (uint32_t)(end - first);
		flows[first].cpu =
			job->cpus.count ? job->cpus.each[t % job->cpus.count] : NB_MISSING;
		for (size_t i = first; i < end; i++)
			flows[i].shares = end - first > 1;
	}
}

int nb_flow_start(struct nb_flow *flow, struct nb_error *error)
{
	pthread_attr_t attributes;
	int status;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 * 1024);
	if (flow->cpu != NB_MISSING) {
		cpu_set_t set;

		CPU_ZERO(&set);
		if (flow->cpu < CPU_SETSIZE) /* else it is empty, which pthread_create refuses */
			CPU_SET(flow->cpu, &set);
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	}
	flow->apart = syscall(SYS_gettid) == getpid();
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

int nb_flow_give_up(struct nb_flow *flow, uint64_t deadline)
{
	while (flow->started && pthread_tryjoin_np(flow->thread, NULL)) {
		if (nb_now() >= deadline)
			return -1;
		if (flow->method->give_up)
			flow->method->give_up(flow);
		nb_heartbeat();
		nb_sleep(1000000);
	}
	flow->started = 0;
	return 0;
}
