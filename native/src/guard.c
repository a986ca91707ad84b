/* SPDX-License-Identifier: MIT */
/* Nothing that a tool starts outlives it, and no program that runs, or what that has started, the
 * worker, however that ends: a guard adopts what leaves its session (PR_SET_CHILD_SUBREAPER of
 * prctl(2)), finds it in /proc/thread-self/children, proc(5), and kills it. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc_text.h"
#include "program.h"
#include "wire.h"

enum {
	KILL_ROUNDS = 5000,  /* of a millisecond */
	HEARTBEAT_MS = 1000, /* heartbeats are sent while a program runs */
	GUARD_DONE = 0
};

/* What a guard reports: first how the program began, then how it ended. */
struct beginning {
	pid_t program;
	int number;
};

/* The connection to the controller among others: it must end with the worker. */
static void close_all_but(int one, int other)
{
	unsigned int low = (unsigned int)(one < other ? one : other),
		     high = (unsigned int)(one < other ? other : one);

	if (low)
		nb_program_close(0, low - 1);
	nb_program_close(low + 1, high - 1);
	nb_program_close(high + 1, ~0U);
}

static void kill_children(void)
{
	char text[4096], *at = text, *end;

	nb_read_file("/proc/thread-self/children", text, sizeof(text));
	for (long pid = strtol(at, &end, 10); end != at && *end; pid = strtol(at, &end, 10)) {
		kill((pid_t)pid, SIGKILL);
		at = end;
	}
}

static void kill_what_is_left(void)
{
	for (int round = 0; round < KILL_ROUNDS; round++) {
		pid_t gone;

		kill_children();
		while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (gone < 0)
			return; /* ECHILD */
		nb_sleep(1000000);
	}
}

static void guard_program(pid_t program, int lifeline, int report, int leaves)
{
	struct pollfd fds[] = { { .fd = lifeline, .events = POLLIN },
				{ .fd = (int)syscall(SYS_pidfd_open, program, 0),
				  .events = POLLIN } };
	struct nb_ending ending;
	ssize_t written;
	char order;

	/* A byte asks the program to end, and the end of the pipe kills it. */
	for (;;) {
		siginfo_t exited = { 0 };

		fds[0].revents = 0;
		if (poll(fds, 2, -1) < 0)
			continue;
		if (!waitid(P_PID, (id_t)program, &exited, WEXITED | WNOHANG | WNOWAIT) &&
		    exited.si_pid)
			break;
		if (!fds[0].revents)
			continue;
		if (read(lifeline, &order, sizeof(order)) == sizeof(order)) {
			kill(-program, SIGTERM);
			continue;
		}
		kill(-program, SIGKILL);
		kill(program, SIGKILL);
		leaves = 0;
		break;
	}
	memset(&ending, 0, sizeof(ending));
	wait4(program, &ending.status, 0, &ending.usage);
	if (!leaves)
		kill_what_is_left();
	written = write(report, &ending, sizeof(ending));
	(void)written;
}

static void run_guard(const struct nb_guard *guard, char **arguments, const struct nb_cpus *cpus,
		      int out, int err, int lifeline, int report)
{
	struct beginning beginning;
	ssize_t written;

	setsid();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGCONT); /* were it stopped, it would see no end of the lifeline */
	beginning.program = nb_program_start(arguments, cpus, out, err, &beginning.number);
	close_all_but(lifeline, report);
	written = write(report, &beginning, sizeof(beginning));
	if (written == sizeof(beginning) && beginning.program > 0)
		guard_program(beginning.program, lifeline, report, guard->leaves);
	_exit(GUARD_DONE);
}

/* Close the guard's ends. Returns the program's pid, or -1 with an errno in *number. */
static pid_t await_beginning(struct nb_guard *guard, const int *lifeline, const int *report,
			     int *number)
{
	struct beginning beginning;
	ssize_t got;

	close(lifeline[0]);
	close(report[1]);
	guard->lifeline = lifeline[1];
	guard->report = report[0];
	do
		got = read(guard->report, &beginning, sizeof(beginning));
	while (got < 0 && errno == EINTR);
	if (got == sizeof(beginning) && beginning.program > 0) {
		fcntl(guard->report, F_SETFL, O_NONBLOCK);
		return beginning.program;
	}
	*number = got == sizeof(beginning) ? beginning.number : ECHILD;
	waitpid(guard->pid, NULL, 0);
	guard->pid = 0;
	return -1;
}

pid_t nb_guard_start(struct nb_guard *guard, char **arguments, const struct nb_cpus *cpus, int out,
		     int err, int *number)
{
	int lifeline[2] = { -1, -1 }, report[2] = { -1, -1 };

	guard->lifeline = guard->report = -1;
	*number = 0;
	if (!pipe2(lifeline, O_CLOEXEC) && !pipe2(report, O_CLOEXEC)) {
		guard->pid = fork();
		if (guard->pid == 0)
			run_guard(guard, arguments, cpus, out, err, lifeline[0], report[1]);
		if (guard->pid > 0)
			return await_beginning(guard, lifeline, report, number);
	}
	*number = errno;
	guard->pid = 0;
	for (int i = 0; i < 2; i++) {
		close(lifeline[i]);
		close(report[i]);
	}
	return -1;
}

int nb_guard_ended(struct nb_guard *guard, struct nb_ending *ending)
{
	ssize_t got = read(guard->report, ending, sizeof(*ending));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got != sizeof(*ending)) /* the guard was killed, and so was the program */
		*ending = (struct nb_ending){ .status = SIGKILL };
	waitpid(guard->pid, NULL, 0);
	guard->pid = 0;
	return 1;
}

void nb_guard_kill(struct nb_guard *guard)
{
	if (guard->lifeline >= 0)
		close(guard->lifeline);
	guard->lifeline = -1;
	if (guard->pid > 0)
		kill(guard->pid, SIGCONT);
}

void nb_guard_free(struct nb_guard *guard)
{
	nb_guard_kill(guard);
	if (guard->report >= 0)
		close(guard->report);
	guard->report = -1;
}

/* Read what a program prints, on two pipes, until it has exited. Returns its waitpid status, or -1
 * with errno when it took too long. */
static int collect_output(struct nb_guard *guard, struct nb_output *captured, uint64_t deadline)
{
	struct nb_ending ending;
	int number = 0, ended;

	do {
		struct pollfd pending[] = { { .fd = captured[0].fd, .events = POLLIN },
					    { .fd = captured[1].fd, .events = POLLIN },
					    { .fd = guard->report, .events = POLLIN } };
		uint64_t now = nb_now(), left = now < deadline ? (deadline - now) / 1000000 + 1 : 1;

		nb_heartbeat();
		poll(pending, 3, (int)(left < HEARTBEAT_MS ? left : HEARTBEAT_MS));
		ended = nb_guard_ended(guard, &ending);
		nb_output_read(&captured[0]);
		nb_output_read(&captured[1]);
		if (!ended && !number && nb_now() > deadline) {
			number = ETIMEDOUT;
			nb_guard_kill(guard);
		}
	} while (!ended);
	errno = number;
	return number ? -1 : ending.status;
}

int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error)
{
	char copy[16384], said[2048], *arguments[NB_ARGUMENTS_MAX];
	struct nb_output captured[2] = {
		{ .fd = -1, .text = output, .room = room - 1 },
		{ .fd = -1, .text = said, .room = sizeof(said), .keep_last = 1 }
	};
	int ends[2][2] = { { -1, -1 }, { -1, -1 } }, status = -1, number = 0;
	uint64_t deadline = nb_now() + limit_ns;
	struct nb_guard guard = { .lifeline = -1, .report = -1, .leaves = 1 }; /* a daemon */
	pid_t pid = -1;

	if (length >= sizeof(copy))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "shorten it",
			       "a command of %zu bytes, at most %zu fit", length, sizeof(copy) - 1);
	memset(copy, 0, sizeof(copy));
	memcpy(copy, argv, length);
	if (!nb_program_arguments(copy, sizeof(copy), arguments))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "name a program",
			       "the command is empty, or has more than %d words",
			       NB_ARGUMENTS_MAX - 1);
	for (int i = 0; i < 2 && !number; i++) {
		if (pipe2(ends[i], O_CLOEXEC) || fcntl(ends[i][0], F_SETFL, O_NONBLOCK))
			number = errno;
		captured[i].fd = ends[i][0];
	}
	if (!number)
		pid = nb_guard_start(&guard, arguments, NULL, ends[0][1], ends[1][1], &number);
	close(ends[0][1]);
	close(ends[1][1]);
	if (pid > 0) {
		status = collect_output(&guard, captured, deadline);
		number = status < 0 ? errno : 0;
	}
	nb_guard_free(&guard);
	close(captured[0].fd);
	close(captured[1].fd);
	if (status && captured[1].used) { /* of a failure what it says of that */
		captured[0].used = captured[1].used < room ? captured[1].used : room - 1;
		memcpy(output, said, captured[0].used);
	}
	output[captured[0].used] = 0;
	errno = number;
	if (number == ETIMEDOUT)
		return nb_fail_errno(error, "exec",
				     "let it end sooner; run what it had to do by hand",
				     "%s was stopped after %llu s", arguments[0],
				     (unsigned long long)(limit_ns / 1000000000));
	return number ? nb_fail_errno(error, "exec",
				      number == EMFILE ? "raise the limit on open files (ulimit -n)"
						       : "check that the command exists",
				      "%s", arguments[0])
		      : status;
}
