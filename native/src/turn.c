/* SPDX-License-Identifier: MIT */
/* What happens to a run by itself: time comes, guests knock, flows and tools say something. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"
#include "run.h"

static void adopt(struct nb_run *run, int fd, uint32_t stream)
{
	if (run->flows[stream].socket >=
	    0) { /* the token is known, the stream is taken: a stranger all the same */
		close(fd);
		run->door.rejected_connections++;
		return;
	}
	run->flows[stream].socket = fd;
	run->connected++;
}

static void hear_guests(struct nb_run *run, uint64_t now)
{
	struct pollfd pending[NB_GUESTS_MAX];

	nb_door_accept(&run->door);
	for (size_t i = 0; i < run->door.guests_count; i++)
		pending[i] = (struct pollfd){ .fd = run->door.guests[i].socket, .events = POLLIN };
	if (poll(pending, run->door.guests_count, 0) > 0)
		for (size_t i = run->door.guests_count; i-- > 0;) {
			uint32_t stream;
			int fd = pending[i].revents
					 ? nb_door_hear(&run->door, i, &run->job, &stream)
					 : -1;

			if (fd >= 0)
				adopt(run, fd, stream);
		}
	nb_door_expire(&run->door, now);
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

static size_t count_parked(const struct nb_run *run)
{
	size_t parked = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		parked += (size_t)atomic_load_explicit(&run->flows[i].parked, memory_order_acquire);
	return parked;
}

/* Bytes that a receiver has got since the window opened; before that the sender was parked, and
 * said how many there were. */
static uint64_t arrived_in_window(const struct nb_run *run)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		bytes += atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) -
			 run->settled[i];
	return bytes;
}

static int turn_flows(struct nb_run *run, struct nb_error *error)
{
	const struct nb_flow *failed = NULL;
	size_t ended = count_ended(run, &failed);
	int news = NB_NEWS_NONE;

	if (failed) {
		*error = failed->error;
		return failed->failed;
	}
	if (run->phase == NB_WARMING && run->job.bytes && count_parked(run) == run->flows_count) {
		run->phase = NB_WAITING;
		run->warm_at = 0;
		return NB_NEWS_WARM;
	}
	if (!ended || (ended < run->flows_count && (run->job.bytes || run->phase == NB_DRAINING)))
		return news;
	if (run->phase == NB_MEASURING && run->job.role == NB_ROLE_RECEIVE &&
	    run->job.bytes > arrived_in_window(run))
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed after %llu of %llu bytes",
			       (unsigned long long)arrived_in_window(run),
			       (unsigned long long)run->job.bytes);
	if (run->phase == NB_MEASURING && run->job.bytes) {
		nb_window_close(run);
		run->phase = NB_DRAINING;
		news = NB_NEWS_CLOSE;
	}
	/* Between the closing edge and the stop the other side may already have stopped. */
	if (run->phase != NB_DRAINING && run->phase != NB_CLOSED)
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed before the measured window was");
	if (run->phase == NB_CLOSED)
		return news;
	nb_window_snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return news | NB_NEWS_DONE;
}

static int turn_tool(struct nb_run *run, struct nb_error *error)
{
	int whole = !run->job.duration && !run->job.marks;
	size_t said;

	nb_tool_listen(&run->tool);
	if (run->phase == NB_WAITING && run->job.await[0] &&
	    nb_tool_says(&run->tool, run->job.await)) {
		run->job.await[0] = 0;
		return NB_NEWS_WARM;
	}
	if (!run->tool.exited)
		return NB_NEWS_NONE;
	said = run->tool.errors.used < 150 ? run->tool.errors.used : 150; /* it has no end */
	if (run->phase == NB_MEASURING && run->job.marks) {
		nb_window_close(
			run); /* a server that leaves with its client: its life is the window */
		return NB_NEWS_CLOSE;
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
		return NB_NEWS_NONE;
	nb_window_snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return (whole ? NB_NEWS_CLOSE : NB_NEWS_NONE) | NB_NEWS_DONE;
}

static int turn_clock(struct nb_run *run, uint64_t now)
{
	if (run->warm_at && now >= run->warm_at) {
		run->warm_at = 0;
		if (!run->job.bytes || run->job.role == NB_ROLE_TOOL ||
		    run->job.role == NB_ROLE_OBSERVE) {
			nb_window_open(run);
			return NB_NEWS_OPEN;
		}
		atomic_store(&run->gates.stop, NB_STOP_PUMP);
	}
	if (run->phase == NB_SETTLING && nb_window_settled(run))
		return nb_window_open_marked(run);
	if (run->close_at && now >= run->close_at) {
		nb_window_close(run);
		return NB_NEWS_CLOSE;
	}
	if (run->sample_at && now >= run->sample_at)
		nb_window_sample(run, now);
	return NB_NEWS_NONE;
}

static void clear_notices(struct nb_run *run)
{
	uint64_t count;
	ssize_t got = read(run->gates.notify, &count, sizeof(count));

	(void)got; /* nothing there is fine */
}

int nb_run_turn(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int news, more;

	if (run->phase == NB_DONE)
		return NB_NEWS_NONE;
	clear_notices(run);
	if (run->door.socket >= 0)
		hear_guests(run, now);
	news = turn_clock(run, now);
	if (run->flows_count)
		more = turn_flows(run, error);
	else if (run->tool.pid)
		more = turn_tool(run, error);
	else if (run->phase == NB_DRAINING) {
		nb_window_snapshot(run, NB_EDGE_DRAINED);
		run->phase = NB_DONE;
		more = NB_NEWS_DONE;
	} else {
		more = NB_NEWS_NONE;
	}
	return more < 0 ? more : news | more;
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
	if (run->phase == NB_SETTLING) /* flows do not tell how far they are */
		due = sooner(due, nb_now() + 100000);
	for (size_t i = 0; i < run->door.guests_count; i++)
		due = sooner(due, run->door.guests[i].deadline);
	return due;
}

size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds)
{
	size_t count = 0;

	fds[count++] = (struct pollfd){ .fd = run->gates.notify, .events = POLLIN };
	if (run->door.socket >= 0 &&
	    run->door.guests_count < NB_GUESTS_MAX) /* who finds it full waits outside */
		fds[count++] = (struct pollfd){ .fd = run->door.socket, .events = POLLIN };
	for (size_t i = 0; i < run->door.guests_count; i++)
		fds[count++] =
			(struct pollfd){ .fd = run->door.guests[i].socket, .events = POLLIN };
	if (run->tool.pid && !run->tool.exited)
		fds[count++] = (struct pollfd){ .fd = run->tool.pidfd, .events = POLLIN };
	if (run->tool.output.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.output.fd, .events = POLLIN };
	if (run->tool.errors.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.errors.fd, .events = POLLIN };
	return count;
}
