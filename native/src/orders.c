/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"

/* How long a tool has to end by itself once it was told to. */
static const uint64_t TERMINATE_NS = 1000000000;

static int go_tool(struct nb_run *run, struct nb_error *error)
{
	int whole_life = !run->job.duration && !run->job.marks, status = 0;

	if (whole_life)
		nb_phase_enter(run, NB_MEASURING);
	/* A server may pass over the address that another program has taken, for others. */
	if (run->job.port_low && (status = nb_listen_in_range(&run->job, error)) >= 0)
		close(status);
	else if (status && error->error == EADDRINUSE)
		return status;
	status = nb_tool_start(&run->tool, &run->job, error);
	if (!status && !whole_life)
		nb_phase_enter(run, run->job.marks ? NB_WAITING : NB_WARMING);
	return status;
}

static int prepare_connections(struct nb_run *run, struct nb_error *error)
{
	int status = 0;

	for (size_t i = 0; !status && i < run->flows_count; i++)
		if (run->flows[i].method->connected)
			status = run->flows[i].method->connected(&run->flows[i], error);
	return status;
}

int nb_run_go(struct nb_run *run, struct nb_error *error)
{
	int status;

	if (run->phase != NB_PREPARED)
		return nb_fail(error, NB_ERR_PROTOCOL, "go", "report it as a defect of netbench",
			       "the run has already been started");
	if (run->connected < run->flows_count)
		return nb_fail(error, NB_ERR_PEER, "go", "look at the sender's error",
			       "%zu of %zu streams are connected", run->connected,
			       run->flows_count);
	if (run->job.role == NB_ROLE_TOOL)
		return go_tool(run, error);
	status = prepare_connections(run, error);
	if (status)
		return status;
	nb_run_control_move(&run->control, NB_GATE_WARM);
	return nb_phase_enter(run, run->job.bytes && run->job.role == NB_ROLE_RECEIVE ? NB_WAITING
										      : NB_WARMING);
}

int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length,
		struct nb_error *error)
{
	if (run->phase == NB_WAITING && length <= run->flows_count * sizeof(uint64_t)) {
		memcpy(run->warmup_bytes, arrived, length);
		nb_phase_enter(run, NB_WARMUP_DRAIN);
		return nb_dispatch_warmup(run);
	}
	if (run->job.marks && !nb_phase_enter(run, NB_CLOSED))
		return NB_EVENT_CLOSE;
	if (run->phase == NB_CLOSED && run->job.marks)
		return NB_EVENT_NONE; /* a server that exited with its client closed it */
	return nb_fail(error, NB_ERR_PROTOCOL, "mark", "report it as a defect of netbench",
		       "the run does not wait for a mark of %zu bytes", length);
}

int nb_run_stop(struct nb_run *run, struct nb_error *error)
{
	if (nb_phase_enter(run, NB_DRAINING))
		return nb_fail(error, NB_ERR_PROTOCOL, "stop", "report it as a defect of netbench",
			       "the measured window is not closed");
	atomic_store(&run->control.stop, NB_STOP_ALL);
	if (run->job.marks) { /* a server that waits for the next client */
		nb_tool_poll(&run->tool);
		run->tool.told = !run->tool.exited;
		nb_tool_terminate(&run->tool);
		run->kill_at = nb_now() + TERMINATE_NS;
	}
	return 0;
}
