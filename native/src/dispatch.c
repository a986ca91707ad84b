/* SPDX-License-Identifier: MIT */
/* What happens to a run by itself: timers, pending connections, flow and tool events. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"
#include "run.h"

static void assign_stream(struct nb_run *run, int fd, uint32_t stream)
{
	if (run->flows[stream].socket >=
	    0) { /* the token is known, the stream is taken: a stranger all the same */
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

	nb_listener_accept(&run->listener);
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
		if (flow->failed && !*failed)
			*failed = flow;
	}
	return ended;
}

static size_t count_warmed_up(const struct nb_run *run)
{
	size_t warmed_up = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		warmed_up += (size_t)atomic_load_explicit(&run->flows[i].warmed_up,
							  memory_order_acquire);
	return warmed_up;
}

/* Bytes that a receiver has got since the window opened; before that the sender was warmed_up, and
 * said how many there were. */
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
	int events = NB_EVENT_NONE;

	if (failed) {
		*error = failed->error;
		return failed->failed;
	}
	if (run->phase == NB_WARMING && run->job.bytes &&
	    count_warmed_up(run) == run->flows_count) {
		run->phase = NB_WAITING;
		run->warm_at = 0;
		return NB_EVENT_WARM;
	}
	if (!ended || (ended < run->flows_count && (run->job.bytes || run->phase == NB_DRAINING)))
		return events;
	if (run->phase == NB_MEASURING && run->job.role == NB_ROLE_RECEIVE &&
	    run->job.bytes > arrived_in_window(run))
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed after %llu of %llu bytes",
			       (unsigned long long)arrived_in_window(run),
			       (unsigned long long)run->job.bytes);
	if (run->phase == NB_MEASURING && run->job.bytes) {
		nb_window_close(run);
		run->phase = NB_DRAINING;
		events = NB_EVENT_CLOSE;
	}
	/* Between the closing edge and the stop the other side may already have stopped. */
	if (run->phase != NB_DRAINING && run->phase != NB_CLOSED)
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed before the measured window was");
	if (run->phase == NB_CLOSED)
		return events;
	nb_window_snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return events | NB_EVENT_DONE;
}

static int dispatch_tool(struct nb_run *run, struct nb_error *error)
{
	int whole = !run->job.duration && !run->job.marks;
	size_t said;

	nb_tool_poll(&run->tool);
	if (run->phase == NB_WAITING && run->job.await[0] &&
	    nb_tool_printed(&run->tool, run->job.await)) {
		run->job.await[0] = 0;
		return NB_EVENT_WARM;
	}
	if (!run->tool.exited)
		return NB_EVENT_NONE;
	said = run->tool.errors.used < 150 ? run->tool.errors.used : 150; /* it has no end */
	if (run->phase == NB_MEASURING && run->job.marks) {
		nb_window_close(
			run); /* a server that leaves with its client: its life is the window */
		return NB_EVENT_CLOSE;
	}
	if (run->phase == NB_MEASURING && whole) {
		nb_window_close(run);
		run->phase = NB_DRAINING;
	} else if (run->phase != NB_DRAINING && run->phase != NB_CLOSED) {
		return nb_fail(
			error, NB_ERR_PEER, "tool", "run the command by hand on this host",
			"%.40s ended with status %d before the measured window was closed: %.*s",
			run->job.argv,
			WIFEXITED(run->tool.status) ? WEXITSTATUS(run->tool.status)
						    : 128 + WTERMSIG(run->tool.status),
			said ? (int)said : 150,
			said ? run->tool.errors.text : "it printed no error");
	}
	if (run->phase != NB_DRAINING)
		return NB_EVENT_NONE;
	nb_window_snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return (whole ? NB_EVENT_CLOSE : NB_EVENT_NONE) | NB_EVENT_DONE;
}

static int dispatch_timers(struct nb_run *run, uint64_t now)
{
	if (run->warm_at && now >= run->warm_at) {
		run->warm_at = 0;
		if (!run->job.bytes || run->job.role == NB_ROLE_TOOL ||
		    run->job.role == NB_ROLE_OBSERVE) {
			nb_window_open(run);
			return NB_EVENT_OPEN;
		}
		atomic_store(&run->control.stop, NB_STOP_PUMP);
	}
	if (run->phase == NB_WARMUP_DRAIN && nb_window_warmup_arrived(run))
		return nb_window_open_marked(run);
	if (run->close_at && now >= run->close_at) {
		nb_window_close(run);
		return NB_EVENT_CLOSE;
	}
	if (run->sample_at && now >= run->sample_at)
		nb_window_sample(run, now);
	return NB_EVENT_NONE;
}

static void clear_notices(struct nb_run *run)
{
	uint64_t count;
	ssize_t got = read(run->control.notify, &count, sizeof(count));

	(void)got; /* nothing there is fine */
}

int nb_run_dispatch(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int events, more;

	if (run->phase == NB_DONE)
		return NB_EVENT_NONE;
	clear_notices(run);
	if (run->listener.socket >= 0)
		read_pending(run, now);
	events = dispatch_timers(run, now);
	if (run->flows_count)
		more = dispatch_flows(run, error);
	else if (run->tool.pid)
		more = dispatch_tool(run, error);
	else if (run->phase == NB_DRAINING) {
		nb_window_snapshot(run, NB_EDGE_DRAINED);
		run->phase = NB_DONE;
		more = NB_EVENT_DONE;
	} else {
		more = NB_EVENT_NONE;
	}
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
	if (run->phase == NB_WARMUP_DRAIN) /* flows do not tell how far they are */
		due = sooner(due, nb_now() + 100000);
	for (size_t i = 0; i < run->listener.pending_count; i++)
		due = sooner(due, run->listener.pending[i].deadline);
	return due;
}

size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds)
{
	size_t count = 0;

	fds[count++] = (struct pollfd){ .fd = run->control.notify, .events = POLLIN };
	if (run->listener.socket >= 0 &&
	    run->listener.pending_count < NB_PENDING_MAX) /* who finds it full waits outside */
		fds[count++] = (struct pollfd){ .fd = run->listener.socket, .events = POLLIN };
	for (size_t i = 0; i < run->listener.pending_count; i++)
		fds[count++] =
			(struct pollfd){ .fd = run->listener.pending[i].socket, .events = POLLIN };
	if (run->tool.pid && !run->tool.exited)
		fds[count++] = (struct pollfd){ .fd = run->tool.pidfd, .events = POLLIN };
	if (run->tool.output.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.output.fd, .events = POLLIN };
	if (run->tool.errors.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.errors.fd, .events = POLLIN };
	return count;
}
