/* SPDX-License-Identifier: MIT */
/* What the controller orders: go, mark, stop. */
#include "run.h"

#include <string.h>

#include "clock.h"
#include "method.h"

static int go_tool(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int status;

	if (!run->job.duration && !run->job.marks) { /* the whole life of the tool is the window */
		nb_window_open(run);
		return nb_tool_start(&run->tool, &run->job, error);
	}
	status = nb_tool_start(&run->tool, &run->job, error);
	run->phase = run->job.marks ? NB_WAITING : NB_WARMING;
	run->warm_at = run->job.marks ? 0 : now + run->job.warmup;
	return status;
}

static int tell_connected(struct nb_run *run, struct nb_error *error)
{
	int status = 0;

	for (size_t i = 0; !status && i < run->flows_count; i++)
		if (run->flows[i].method->connected)
			status = run->flows[i].method->connected(&run->flows[i], error);
	return status;
}

int nb_run_go(struct nb_run *run, struct nb_error *error)
{
	uint64_t now = nb_now();
	int status;

	if (run->phase != NB_PREPARED)
		return nb_fail(error, NB_ERR_PROTOCOL, "go", "report it as a defect of netbench",
			       "the run is already under way");
	if (run->connected < run->flows_count)
		return nb_fail(error, NB_ERR_PEER, "go", "look at the sender's error",
			       "%zu of %zu streams are connected", run->connected,
			       run->flows_count);
	if (run->job.role == NB_ROLE_TOOL)
		return go_tool(run, now, error);
	status = tell_connected(run, error);
	if (status)
		return status;
	nb_run_control_move(&run->control, NB_GATE_WARM);
	run->phase = run->job.bytes && run->job.role == NB_ROLE_RECEIVE ? NB_WAITING : NB_WARMING;
	run->warm_at = run->phase == NB_WARMING ? now + run->job.warmup : 0;
	return 0;
}

int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length,
		struct nb_error *error)
{
	if (run->phase == NB_WAITING && length <= run->flows_count * sizeof(uint64_t)) {
		memcpy(run->warmup_bytes, arrived, length);
		run->phase = NB_WARMUP_DRAIN;
		return nb_window_warmup_arrived(run) ? nb_window_open_marked(run) : NB_EVENT_NONE;
	}
	if (run->phase == NB_MEASURING && run->job.marks) {
		nb_window_close(run);
		return NB_EVENT_CLOSE;
	}
	if (run->phase == NB_CLOSED && run->job.marks)
		return NB_EVENT_NONE; /* a server that has left with its client closed it */
	return nb_fail(error, NB_ERR_PROTOCOL, "mark", "report it as a defect of netbench",
		       "the run waits for no mark of %zu bytes", length);
}

int nb_run_stop(struct nb_run *run, struct nb_error *error)
{
	if (run->phase != NB_CLOSED)
		return nb_fail(error, NB_ERR_PROTOCOL, "stop", "report it as a defect of netbench",
			       "the measured window is not closed");
	atomic_store(&run->control.stop, NB_STOP_ALL);
	if (run->job.marks)
		nb_tool_kill(&run->tool); /* a server that waits for the next client */
	run->phase = NB_DRAINING;
	return 0;
}
