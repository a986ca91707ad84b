/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static void assign_stream(struct nb_run *run, int fd, uint32_t stream)
{
	if (run->flows[stream].socket >= 0) { /* the token is right, but the stream is connected */
		close(fd);
		run->listener.rejected_connections++;
		return;
	}
	run->flows[stream].socket = fd;
	run->connected++;
}

static void read_pending(struct nb_run *run, uint64_t now)
{
	struct pollfd pending[NB_PENDING_MAX];

	nb_listener_accept(&run->listener, &run->job);
	for (size_t i = 0; i < run->listener.pending_count; i++)
		pending[i] =
			(struct pollfd){ .fd = run->listener.pending[i].socket, .events = POLLIN };
	if (poll(pending, run->listener.pending_count, 0) > 0)
		for (size_t i = run->listener.pending_count; i-- > 0;) {
			uint32_t stream;
			int fd = pending[i].revents
					 ? nb_listener_read(&run->listener, i, &run->job, &stream)
					 : -1;

			if (fd >= 0)
				assign_stream(run, fd, stream);
		}
	nb_listener_expire(&run->listener, now);
}

static size_t count_ended(const struct nb_run *run, const struct nb_flow **failed)
{
	size_t ended = 0;

	for (size_t i = 0; i < run->flows_count; i++) {
		const struct nb_flow *flow = &run->flows[i];

		if (!atomic_load_explicit(&flow->ended, memory_order_acquire))
			continue;
		ended++;
		if (flow->failed && (!*failed || flow->failed_at < (*failed)->failed_at))
			*failed = flow;
	}
	return ended;
}

/* Whether all flows have warmed up, or those of a closing window have their sinks on the disk. */
static int all_have(const struct nb_run *run, enum nb_phase phase)
{
	size_t count = 0;

	for (size_t i = 0; i < run->flows_count; i++) {
		const struct nb_flow *flow = &run->flows[i];

		count += (size_t)atomic_load_explicit(phase == NB_WARMING ? &flow->warmed_up
									  : &flow->synced,
						      memory_order_acquire);
	}
	return run->phase == phase && count == run->flows_count;
}

/* What streams do with their sinks after they have ended: 0, still; 1, done; or a negative code
 * with the error filled. */
static int sinks_settled(const struct nb_run *run, struct nb_error *error)
{
	int all = 1;

	for (size_t i = 0; i < run->flows_count; i++) {
		int settled = atomic_load_explicit(&run->flows[i].settled, memory_order_acquire);

		if (settled < 0) {
			*error = run->flows[i].error;
			return settled;
		}
		all &= settled;
	}
	return all;
}

/* Bytes received since the window opened. The sender had stopped before and told how many bytes it
 * had sent. */
static uint64_t arrived_in_window(const struct nb_run *run)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		bytes += atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) -
			 run->warmup_bytes[i];
	return bytes;
}

static int dispatch_flows(struct nb_run *run, struct nb_error *error)
{
	const struct nb_flow *failed = NULL;
	size_t ended = count_ended(run, &failed);
	int events = NB_EVENT_NONE, settled;

	if (failed) {
		*error = failed->error;
		return failed->failed;
	}
	if (run->job.bytes && all_have(run, NB_WARMING)) {
		nb_phase_enter(run, NB_WAITING);
		return NB_EVENT_WARM;
	}
	if (all_have(run, NB_SYNCING)) {
		nb_phase_enter(run, NB_CLOSED);
		return NB_EVENT_CLOSE;
	}
	if (!ended || (ended < run->flows_count && (run->job.bytes || run->phase == NB_DRAINING)))
		return events;
	/* All flows of a bytes-bounded run have ended: their window ends with them. */
	if (run->phase == NB_MEASURING && run->job.bytes &&
	    (run->job.role != NB_ROLE_RECEIVE || run->job.bytes <= arrived_in_window(run))) {
		nb_phase_enter(run, NB_CLOSED);
		nb_phase_enter(run, NB_DRAINING);
		events = NB_EVENT_CLOSE;
	}
	if (run->phase == NB_CLOSED) /* the other side may stop before this side is told to */
		return events;
	settled = run->phase == NB_DRAINING ? sinks_settled(run, error) : 1;
	if (settled <= 0)
		return settled < 0 ? settled : events;
	if (nb_phase_enter(run, NB_DONE))
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed after %llu bytes, before the end of the "
			       "measured window",
			       (unsigned long long)arrived_in_window(run));
	return events | NB_EVENT_DONE;
}

static int fail_tool(const struct nb_run *run, struct nb_error *error)
{
	const struct nb_output *told =
		run->tool.errors.used ? &run->tool.errors : &run->tool.output;
	int status = run->tool.status, length = told->used < 150 ? (int)told->used : 150;
	const char *end = told->used ? told->text + told->used - length : ""; /* it has no NUL */

	return nb_fail(error, NB_ERR_PEER, "tool", "run the command by hand on this host",
		       "%.40s exited with status %d before the end of the measured window: %.*s",
		       run->job.argv,
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		       length ? length : 150, length ? end : "it printed nothing");
}

static int dispatch_tool(struct nb_run *run, struct nb_error *error)
{
	int whole_life = !run->job.duration && !run->job.marks, events = NB_EVENT_NONE;

	nb_tool_poll(&run->tool);
	if (run->phase == NB_WAITING && run->job.await_port && !run->tool.exited &&
	    nb_port_listens(run->job.await_port)) {
		run->job.await_port = 0;
		return NB_EVENT_WARM;
	}
	if (run->asked_output && nb_tool_printed(&run->tool)) {
		run->asked_output = 0;
		return NB_EVENT_PRINTED;
	}
	if (!run->tool.exited || run->phase == NB_CLOSED)
		return NB_EVENT_NONE;
	if (run->phase == NB_MEASURING && (run->job.marks || whole_life)) {
		nb_phase_enter(run,
			       NB_CLOSED); /* with marks: a server that exits with its client */
		events = NB_EVENT_CLOSE;
	}
	if (whole_life)
		nb_phase_enter(run, NB_DRAINING);
	else if (events)
		return events;
	if (nb_phase_enter(run, NB_DONE))
		return fail_tool(run, error);
	return events | NB_EVENT_DONE;
}

int nb_dispatch_warmup(struct nb_run *run)
{
	for (size_t i = 0; i < run->flows_count; i++)
		if (atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) <
		    run->warmup_bytes[i])
			return NB_EVENT_NONE;
	nb_phase_enter(run, NB_MEASURING);
	return NB_EVENT_OPEN;
}

static int dispatch_timers(struct nb_run *run, uint64_t now)
{
	if (run->warm_at && now >= run->warm_at) {
		run->warm_at = 0;
		if (!run->job.bytes || run->job.role == NB_ROLE_TOOL ||
		    run->job.role == NB_ROLE_OBSERVE) {
			nb_phase_enter(run, NB_MEASURING);
			return NB_EVENT_OPEN;
		}
		atomic_store(&run->control.stop, NB_STOP_PUMP);
	}
	if (run->kill_at && now >= run->kill_at) {
		run->kill_at = 0;
		nb_tool_kill(&run->tool);
	}
	if (run->phase == NB_WARMUP_DRAIN)
		return nb_dispatch_warmup(run);
	if (run->close_at && now >= run->close_at) {
		if (run->job.fsync == NB_FSYNC_WINDOW) {
			nb_phase_enter(run, NB_SYNCING);
			return NB_EVENT_NONE;
		}
		nb_phase_enter(run, NB_CLOSED);
		return NB_EVENT_CLOSE;
	}
	if (run->second_at && now >= run->second_at)
		nb_run_second(run, now);
	if (run->sample_at && now >= run->sample_at) {
		run->sample_at = now + run->job.sample;
		nb_window_sample(&run->window, now);
		if (run->report_at && now >= run->report_at) {
			run->report_at = now + run->job.report;
			return NB_EVENT_SAMPLES;
		}
	}
	return NB_EVENT_NONE;
}

int nb_run_dispatch(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int events, more;

	if (run->phase == NB_DONE)
		return NB_EVENT_NONE;
	nb_run_control_clear(&run->control);
	if (run->listener.socket >= 0)
		read_pending(run, now);
	events = dispatch_timers(run, now);
	if (run->flows_count)
		more = dispatch_flows(run, error);
	else if (run->tool.pid)
		more = dispatch_tool(run, error);
	else /* it only reads meters */
		more = nb_phase_enter(run, NB_DONE) ? NB_EVENT_NONE : NB_EVENT_DONE;
	return more < 0 ? more : events | more;
}

static uint64_t sooner(uint64_t one, uint64_t other)
{
	return other && other < one ? other : one;
}

uint64_t nb_run_due(const struct nb_run *run)
{
	uint64_t due = UINT64_MAX;

	due = sooner(due, run->warm_at);
	due = sooner(due, run->close_at);
	due = sooner(due, run->sample_at);
	due = sooner(due, run->second_at);
	due = sooner(due, run->kill_at);
	if (run->phase == NB_WAITING && run->job.await_port) /* no event tells that it listens */
		due = sooner(due, nb_now() + 2000000);
	if (run->phase == NB_WARMUP_DRAIN) /* flows do not notify how far they are */
		due = sooner(due, nb_now() + 100000);
	for (size_t i = 0; i < run->listener.pending_count; i++)
		due = sooner(due, run->listener.pending[i].deadline);
	return due;
}

size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds)
{
	size_t count = 0;

	fds[count++] = (struct pollfd){ .fd = run->control.notify, .events = POLLIN };
	if (run->listener.socket >= 0)
		fds[count++] = (struct pollfd){ .fd = run->listener.socket, .events = POLLIN };
	for (size_t i = 0; i < run->listener.pending_count; i++)
		fds[count++] =
			(struct pollfd){ .fd = run->listener.pending[i].socket, .events = POLLIN };
	if (run->tool.pid && !run->tool.exited)
		fds[count++] = (struct pollfd){ .fd = run->tool.guard.report, .events = POLLIN };
	if (run->tool.output.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.output.fd, .events = POLLIN };
	if (run->tool.errors.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.errors.fd, .events = POLLIN };
	return count;
}
