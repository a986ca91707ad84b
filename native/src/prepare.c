/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "data_socket.h"
#include "method.h"
#include "program.h"
#include "wire.h"

/* How long flows and a tool have to end. */
static const uint64_t END_NS = 3000000000;

static int open_flows(struct nb_run *run, struct nb_error *error)
{
	nb_program_raise_files();
	run->flows = calloc(run->job.streams, sizeof(*run->flows));
	if (!run->flows)
		return nb_fail_memory(error, "flows");
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
	nb_flow_deal(run->flows, run->flows_count);
	for (size_t i = 0; i < run->flows_count; i++) {
		int status = nb_flow_open(&run->flows[i], error);

		if (status)
			return status;
	}
	return 0;
}

static int connect_flows(struct nb_run *run, struct nb_error *error)
{
	int sockets[NB_CONNECTING], status = 0;

	while (!status && run->connected < run->flows_count) {
		size_t first = run->connected, left = run->flows_count - first;
		uint32_t count = left < NB_CONNECTING ? (uint32_t)left : NB_CONNECTING;

		nb_heartbeat(); /* a connection takes round trips, and there may be many */
		status = nb_connect(&run->job, (uint32_t)first, count, sockets, error);
		for (uint32_t i = 0; !status && i < count; i++, run->connected++)
			run->flows[first + i].socket = sockets[i];
	}
	return status;
}

static int prepare_window(struct nb_run *run, struct nb_error *error)
{
	return nb_window_prepare(&run->window, &run->job, run->flows, run->flows_count, &run->tool,
				 error);
}

static int start_threads(struct nb_run *run, struct nb_error *error)
{
	for (size_t i = 0; i < run->flows_count; i += run->flows[i].thread_group) {
		int status = nb_flow_start(&run->flows[i], error);

		if (status)
			return status;
	}
	return 0;
}

/* Before any stream reads: one that reads ahead may bring in what is another's. */
static int prepare_cache(struct nb_run *run, struct nb_error *error)
{
	int status = 0;

	run->residence = (struct nb_residence){ 0, 0 };
	for (size_t i = 0; !status && i < run->flows_count; i++)
		status = nb_page_cache_prepare(&run->flows[i].source, &run->job, &run->residence,
					       error);
	return status;
}

/* The sender's streams are connected last: the receiver is ready then, and its port is known. */
static int prepare_transfer(struct nb_run *run, struct nb_error *error)
{
	const struct nb_job *job = &run->job;
	int status = open_flows(run, error);

	if (!status && job->role == NB_ROLE_SEND && run->flows[0].source.count)
		status = prepare_cache(run, error);
	if (!status)
		status = prepare_window(run, error);
	if (status)
		return status;
	status = job->role == NB_ROLE_SEND ? connect_flows(run, error)
					   : nb_listener_open(&run->listener, job, error);
	return status ? status : start_threads(run, error);
}

/* Why the job would be refused, as far as that is seen without making, reading or connecting
 * anything. */
static int ask_transfer(const struct nb_job *job, struct nb_error *error)
{
	union nb_address address;
	int six = nb_address_parse(&address, job->address, 0) == sizeof(address.v6);
	int fd = nb_data_socket(job, six ? AF_INET6 : AF_INET, error);
	if (fd < 0)
		return fd;
	close(fd);
	return nb_flow_ask(&(struct nb_flow){ .job = job, .method = job->method }, error);
}

int nb_run_prepare(struct nb_run *run, struct nb_error *error)
{
	int status;

	run->listener.socket = -1;
	nb_tool_init(&run->tool);
	run->residence = (struct nb_residence){ NB_MISSING, NB_MISSING };
	status = nb_run_control_open(&run->control, error);
	if (status)
		return status;
	if (run->job.ask && run->job.method)
		return ask_transfer(&run->job, error);
	return run->job.role == NB_ROLE_SEND || run->job.role == NB_ROLE_RECEIVE
		       ? prepare_transfer(run, error)
		       : prepare_window(run, error);
}

void nb_run_halt(struct nb_run *run)
{
	atomic_store(&run->control.stop, NB_STOP_ALL);
	atomic_store(&run->control.abort, NB_STOP_ALL);
	for (size_t i = 0; i < run->flows_count; i++)
		if (run->flows[i].socket >= 0)
			shutdown(run->flows[i].socket, SHUT_RDWR);
	nb_run_control_move(&run->control, NB_GATE_DRAIN);
	if (run->listener.socket >= 0)
		nb_listener_close(&run->listener);
	nb_tool_kill(&run->tool);
}

int nb_run_free(struct nb_run *run)
{
	uint64_t deadline = nb_now() + END_NS;
	int hangs = 0;

	nb_run_halt(run);
	for (size_t i = 0; i < run->flows_count; i++)
		hangs |= nb_flow_give_up(&run->flows[i], deadline);
	if (hangs || nb_tool_wait(&run->tool, deadline))
		return -1;
	nb_window_free(&run->window);
	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_close(&run->flows[i]);
	nb_tool_free(&run->tool);
	nb_writer_free(&run->seconds);
	nb_run_control_close(&run->control);
	free(run->flows);
	free(run);
	return 0;
}
