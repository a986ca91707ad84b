/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "histogram.h"
#include "method.h"
#include "rows.h"

static void put_number(struct nb_writer *writer, size_t readback, int edge, uint64_t number)
{
	if (number != NB_MISSING)
		nb_put_numbers(writer, nb_row_of(&nb_readbacks[readback]), edge, 0, &number, 1);
}

/* Which files the streams write, so that later runs write no others. */
static void put_sinks(const struct nb_run *run, struct nb_writer *writer)
{
	uint64_t devices[NB_STREAMS_MAX], inodes[NB_STREAMS_MAX];

	for (size_t i = 0; i < run->flows_count; i++) {
		devices[i] = run->flows[i].sink.device;
		inodes[i] = run->flows[i].sink.inode;
	}
	nb_put_numbers(writer, nb_row_of(&nb_readbacks[NB_READBACK_SINK_DEVICE]), 0, 0, devices,
		       (uint32_t)run->flows_count);
	nb_put_numbers(writer, nb_row_of(&nb_readbacks[NB_READBACK_SINK_INODE]), 0, 0, inodes,
		       (uint32_t)run->flows_count);
}

void nb_run_readbacks(const struct nb_run *run, struct nb_writer *writer)
{
	int fd = run->listener.socket, number;
	socklen_t length = sizeof(number);
	char name[16] = "";

	if (run->flows_count && run->flows[0].socket >= 0)
		fd = run->flows[0].socket;
	if (run->listener.socket >= 0)
		put_number(writer, NB_READBACK_PORT, 0, run->listener.port);
	put_number(writer, NB_READBACK_RESIDENT, 0, run->residence.resident);
	put_number(writer, NB_READBACK_SOURCE_SIZE, 0, run->residence.size);
	if (run->flows_count && run->job.sink == NB_SINK_FILE && run->flows[0].sink.fd >= 0)
		put_sinks(run, writer);
	if (fd < 0)
		return;
	if (run->job.role == NB_ROLE_SEND &&
	    !getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &number, &length))
		put_number(writer, NB_READBACK_SEND_BUFFER, 0, (uint64_t)number);
	if (run->job.role == NB_ROLE_RECEIVE &&
	    !getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &number, &length))
		put_number(writer, NB_READBACK_RECEIVE_BUFFER, 0, (uint64_t)number);
	length = sizeof(name) - 1;
	if (!getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length))
		nb_put_text(writer, nb_row_of(&nb_readbacks[NB_READBACK_CONGESTION]), 0, name,
			    strnlen(name, sizeof(name)));
}

void nb_run_warmup_bytes(const struct nb_run *run, struct nb_writer *writer)
{
	for (size_t i = 0; i < run->flows_count; i++) {
		uint64_t bytes = atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed);

		nb_put(writer, &bytes, sizeof(bytes));
	}
}

/* The counters of one meter; returns where the next meter's begin. */
static const uint64_t *put_counters(const struct nb_reading *reading, int edge, uint64_t ns,
				    const uint64_t *at, struct nb_writer *writer)
{
	for (size_t c = 0; c < reading->meter->counters_count; c++) {
		size_t items = nb_items(reading, &reading->meter->counters[c]);

		if (items)
			nb_put_numbers(writer, nb_row_of(&reading->meter->counters[c]), edge, ns,
				       at, (uint32_t)items);
		at += items;
	}
	return at;
}

static void put_edge(struct nb_run *run, int edge, struct nb_writer *writer)
{
	struct nb_snapshot *snapshot = &run->window.edges[edge];
	uint64_t first = atomic_load(&run->control.first_data);
	const uint64_t *at = snapshot->numbers;
	const struct nb_method *method = run->flows_count ? run->flows[0].method : NULL;

	if (edge == NB_EDGE_OPEN && first) /* read while nothing moved: the time begins later */
		snapshot->ns = first;
	for (size_t i = 0; i < run->window.readings_count; i++)
		at = put_counters(&run->window.readings[i], edge, snapshot->ns, at, writer);
	/* a method's proofs follow its options, and these its row */
	for (size_t p = 0; method && p < method->proofs_count; p++) {
		size_t row = nb_row_of(method) + 1 + method->options_count + p;

		nb_put_numbers(writer, (uint32_t)row, edge, snapshot->ns, at,
			       (uint32_t)run->flows_count);
		at += run->flows_count;
	}
}

static int put_digests(const struct nb_run *run, struct nb_writer *writer, struct nb_error *error)
{
	uint64_t digests[NB_STREAMS_MAX];

	for (size_t i = 0; i < run->flows_count; i++) {
		int status = nb_flow_digest(&run->flows[i], &digests[i], error);

		if (status)
			return status;
	}
	nb_put_numbers(writer, nb_row_of(&nb_readbacks[NB_READBACK_DIGEST]), NB_EDGE_DRAINED, 0,
		       digests, (uint32_t)run->flows_count);
	return 0;
}

static void put_tool(const struct nb_run *run, struct nb_writer *writer)
{
	int status = run->tool.status;

	if (!run->tool.told) /* else it is how it takes a signal */
		put_number(writer, NB_READBACK_STATUS, NB_EDGE_DRAINED,
			   (uint64_t)(WIFEXITED(status) ? WEXITSTATUS(status)
							: 128 + WTERMSIG(status)));
	nb_put_text(writer, nb_row_of(&nb_readbacks[NB_READBACK_OUTPUT]), NB_EDGE_DRAINED,
		    run->tool.output.text, run->tool.output.used);
	nb_put_text(writer, nb_row_of(&nb_readbacks[NB_READBACK_ERRORS]), NB_EDGE_DRAINED,
		    run->tool.errors.text, run->tool.errors.used);
}

static uint64_t sum_or_missing(uint64_t sum, uint64_t more)
{
	return sum == NB_MISSING || more == NB_MISSING ? NB_MISSING : sum + more;
}

/* What the page cache held of the streams' files, and how long it took to force them to disks. */
static void put_cached(const struct nb_run *run, struct nb_writer *writer)
{
	struct nb_cached before = { 0, 0 }, after = { 0, 0 };
	uint64_t began = UINT64_MAX, ended = 0, source = 0;

	for (size_t i = 0; i < run->flows_count; i++) {
		const struct nb_sink *sink = &run->flows[i].sink;

		if (run->residence.size != NB_MISSING)
			nb_page_cache_add(&run->flows[i].source, &source);
		before.resident = sum_or_missing(before.resident, sink->before.resident);
		before.dirty = sum_or_missing(before.dirty, sink->before.dirty);
		after.resident = sum_or_missing(after.resident, sink->after.resident);
		after.dirty = sum_or_missing(after.dirty, sink->after.dirty);
		began = sink->sync_ns[0] && sink->sync_ns[0] < began ? sink->sync_ns[0] : began;
		ended = sink->sync_ns[1] > ended ? sink->sync_ns[1] : ended;
	}
	if (run->residence.size != NB_MISSING)
		put_number(writer, NB_READBACK_RESIDENT_AFTER, NB_EDGE_DRAINED, source);
	if (!run->flows_count || run->job.sink != NB_SINK_FILE ||
	    run->flows[0].sink.device == NB_MISSING || run->flows[0].sink.fd < 0)
		return;
	put_number(writer, NB_READBACK_SINK_RESIDENT, NB_EDGE_OPEN, before.resident);
	put_number(writer, NB_READBACK_SINK_RESIDENT, NB_EDGE_DRAINED, after.resident);
	put_number(writer, NB_READBACK_SINK_DIRTY, NB_EDGE_OPEN, before.dirty);
	put_number(writer, NB_READBACK_SINK_DIRTY, NB_EDGE_DRAINED, after.dirty);
	if (ended)
		put_number(writer, NB_READBACK_FSYNC, NB_EDGE_DRAINED, ended - began);
}

static const int LATENCY_ROWS[] = { NB_READBACK_LATENCY, NB_READBACK_SERVICE,
				    NB_READBACK_LATENESS };

static const struct nb_histogram *histogram_of(const struct nb_flow *flow, int which)
{
	const struct nb_latencies *const *latencies = flow->state;

	return &(*latencies)->of[which];
}

static uint32_t add_up(const struct nb_flow *flows, size_t streams, int which, uint64_t *numbers)
{
	uint32_t used = 3;

	for (size_t i = 0; i < streams; i += flows[i].thread_group) {
		const struct nb_histogram *one = histogram_of(&flows[i], which);

		numbers[0] += one->count;
		numbers[1] += one->sum;
		numbers[2] = one->most > numbers[2] ? one->most : numbers[2];
	}
	for (uint32_t bucket = 0; bucket < NB_BUCKETS; bucket++) {
		uint64_t total = 0;

		for (size_t i = 0; i < streams; i += flows[i].thread_group)
			total += histogram_of(&flows[i], which)->buckets[bucket];
		if (total) {
			numbers[used++] = bucket;
			numbers[used++] = total;
		}
	}
	return used;
}

/* A vector for a histogram of all threads: count, sum and most, then the numbers of buckets that
 * hold some, each with how many. */
static void put_histogram(const struct nb_run *run, int which, int readback, uint64_t ns,
			  struct nb_writer *writer)
{
	uint64_t *numbers = calloc(3 + 2 * NB_BUCKETS, sizeof(*numbers));
	uint32_t used = numbers ? add_up(run->flows, run->flows_count, which, numbers) : 0;

	if (numbers && (numbers[0] || which == NB_LATENCY))
		nb_put_numbers(writer, nb_row_of(&nb_readbacks[readback]), NB_EDGE_DRAINED, ns,
			       numbers, used);
	free(numbers);
}

int nb_run_asks(const struct nb_run *run)
{
	return run->job.role == NB_ROLE_SEND && run->job.method->flags & NB_REQUESTS;
}

void nb_run_second(struct nb_run *run, uint64_t now)
{
	run->second_at += NB_SECOND;
	if (run->seconds.used < NB_SECONDS_BYTES)
		put_histogram(run, NB_LATENCY, NB_READBACK_SECOND, now, &run->seconds);
}

int nb_run_result(struct nb_run *run, struct nb_writer *writer, struct nb_error *error)
{
	int delivers = run->job.method && run->job.method->flags & (NB_DELIVERS | NB_FETCHES);

	for (size_t i = 0; i < run->flows_count; i++) {
		nb_flow_join(&run->flows[i]);
		run->listener.rejected_connections += run->flows[i].rejected_connections;
	}
	for (int edge = NB_EDGE_OPEN; edge <= NB_EDGE_DRAINED; edge++)
		if (run->window.edges[edge].taken)
			put_edge(run, edge, writer);
	nb_run_readbacks(run, writer);
	put_cached(run, writer);
	if (run->job.role == NB_ROLE_RECEIVE)
		/* a connection that is still pending has sent no token */
		put_number(writer, NB_READBACK_REJECTED, NB_EDGE_DRAINED,
			   run->listener.rejected_connections + run->listener.pending_count);
	if (nb_run_asks(run))
		for (int which = 0; which < NB_LATENCIES; which++)
			put_histogram(run, which, LATENCY_ROWS[which], 0, writer);
	nb_put(writer, run->seconds.data, run->seconds.used);
	put_number(writer, NB_READBACK_LOST, NB_EDGE_DRAINED, run->window.samples_lost);
	put_number(writer, NB_READBACK_SILENCE, NB_EDGE_DRAINED, run->silence);
	if (run->tool.pid)
		put_tool(run, writer);
	return run->job.verify && delivers ? put_digests(run, writer, error) : 0;
}

int nb_run_samples(struct nb_run *run, struct nb_writer *writer)
{
	const struct nb_window *window = &run->window;

	while (run->samples_sent < window->samples_count && writer->used < 256 * 1024) {
		const uint64_t *at = window->samples + run->samples_sent++ * (1 + window->sampled);
		uint64_t ns = *at++;

		for (size_t i = 0; i < window->readings_count; i++)
			if (nb_sampled(&window->readings[i]))
				at = put_counters(&window->readings[i], 0, ns, at, writer);
	}
	return run->samples_sent < window->samples_count;
}
