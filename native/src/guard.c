/* SPDX-License-Identifier: MIT */
/* PR_SET_CHILD_SUBREAPER of prctl(2): the orphans of a program become children of its guard. They
 * are found in /proc/thread-self/children, proc(5). */
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
#include <time.h>
#include <unistd.h>

#include "proc_text.h"
#include "program.h"

enum {
	KILL_ROUNDS = 5000, /* of a millisecond */
	GUARD_DONE = 0
};

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
	static const struct timespec pause = { .tv_nsec = 1000000 };

	for (int round = 0; round < KILL_ROUNDS; round++) {
		pid_t gone;

		kill_children();
		while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (gone < 0)
			return; /* ECHILD */
		nanosleep(&pause, NULL);
	}
}

static void guard_program(pid_t program, int lifeline, int report)
{
	struct pollfd fds[] = { { .fd = lifeline, .events = POLLIN },
				{ .fd = (int)syscall(SYS_pidfd_open, program, 0),
				  .events = POLLIN } };
	struct nb_ending ending;
	ssize_t written;
	char order;

	/* A byte asks the program to end, and the end of the pipe kills it. */
	for (;;) {
		fds[0].revents = fds[1].revents = 0;
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			break;
		if (read(lifeline, &order, sizeof(order)) == sizeof(order)) {
			kill(-program, SIGTERM);
			continue;
		}
		kill(-program, SIGKILL);
		kill(program, SIGKILL);
		break;
	}
	memset(&ending, 0, sizeof(ending));
	wait4(program, &ending.status, 0, &ending.usage);
	kill_what_is_left();
	written = write(report, &ending, sizeof(ending));
	(void)written;
}

static void run_guard(char **arguments, const struct nb_cpus *cpus, int out, int err, int lifeline,
		      int report)
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
		guard_program(beginning.program, lifeline, report);
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

	*number = 0;
	if (!pipe2(lifeline, O_CLOEXEC) && !pipe2(report, O_CLOEXEC)) {
		guard->pid = fork();
		if (guard->pid == 0)
			run_guard(arguments, cpus, out, err, lifeline[0], report[1]);
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

void nb_guard_terminate(const struct nb_guard *guard)
{
	ssize_t written = guard->lifeline >= 0 ? write(guard->lifeline, "", 1) : 0;

	(void)written; /* it has ended */
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
