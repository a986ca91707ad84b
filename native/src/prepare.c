/* SPDX-License-Identifier: MIT */
/* A run's beginning and its end: flows, source, window, connections. */
#include <stdlib.h>
#include <sys/socket.h>

#include "heartbeat.h"
#include "method.h"
#include "run.h"

static int open_flows(struct nb_run *run, struct nb_error *error)
{
	run->flows = calloc(run->job.streams, sizeof(*run->flows));
	if (!run->flows)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use fewer streams",
			       "no memory for flows");
	for (; run->flows_count < run->job.streams; run->flows_count++) {
		struct nb_flow *flow = &run->flows[run->flows_count];
		uint64_t share = run->job.bytes / run->job.streams;

		flow->socket = -1;
		flow->sink.fd = -1;
		flow->index = (uint32_t)run->flows_count;
		flow->method = run->job.method;
		flow->job = &run->job;
		flow->control = &run->control;
		flow->limit =
			run->job.bytes
				? share + (flow->index == 0 ? run->job.bytes % run->job.streams : 0)
				: NB_MISSING;
	}
	for (size_t i = 0; i < run->flows_count; i++) {
		int status = nb_flow_open(&run->flows[i], error);

		if (status)
			return status;
	}
	return 0;
}

static int connect_flows(struct nb_run *run, struct nb_error *error)
{
	for (size_t i = 0; i < run->flows_count; i++) {
		int fd;

		nb_heartbeat(); /* each takes round trips, and there may be many */
		fd = nb_connect(&run->job, (uint32_t)i, error);
		if (fd < 0)
			return fd;
		run->flows[i].socket = fd;
		run->connected++;
	}
	return 0;
}

int nb_run_prepare(struct nb_run *run, struct nb_error *error)
{
	int moves = run->job.role == NB_ROLE_SEND || run->job.role == NB_ROLE_RECEIVE, status;

	run->listener.socket = -1;
	nb_tool_init(&run->tool);
	run->phase = NB_PREPARED;
	run->resident = run->source_size = NB_MISSING;
	status = nb_run_control_open(&run->control, error);
	if (!status && moves)
		status = open_flows(run, error);
	if (!status && run->job.role == NB_ROLE_SEND && run->flows[0].source.count)
		status = nb_source_cache(&run->flows[0].source, &run->job, &run->resident,
					 &run->source_size, error);
	if (!status)
		status = nb_window_prepare(run, error);
	if (!status && run->job.role == NB_ROLE_RECEIVE)
		status = nb_listener_open(&run->listener, &run->job, error);
	if (!status && run->job.role == NB_ROLE_SEND)
		status = connect_flows(run, error);
	for (size_t i = 0; !status && i < run->flows_count;
	     i += nb_flow_thread_group(&run->job, run->flows_count))
		status = nb_flow_start(&run->flows[i],
				       nb_flow_thread_group(&run->job, run->flows_count), error);
	return status;
}

void nb_run_free(struct nb_run *run)
{
	atomic_store(&run->control.stop, NB_STOP_ALL);
	atomic_store(&run->control.abort, NB_STOP_ALL);
	for (size_t i = 0; i < run->flows_count; i++)
		if (run->flows[i].socket >= 0)
			shutdown(run->flows[i].socket, SHUT_RDWR);
	nb_run_control_move(&run->control, NB_GATE_RUN);
	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_give_up(&run->flows[i]);
	nb_window_free(run);
	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_close(&run->flows[i]);
	if (run->listener.socket >= 0)
		nb_listener_close(&run->listener);
	nb_tool_free(&run->tool);
	nb_run_control_close(&run->control);
	free(run->flows);
	free(run);
}
