/* SPDX-License-Identifier: MIT */
/*
 * Nothing that a tool starts outlives it, nor the worker, however that ends: a guard adopts what
 * leaves its session (PR_SET_CHILD_SUBREAPER of prctl(2)), finds it in /proc/thread-self/children,
 * proc(5), and kills it.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc_text.h"
#include "wire.h"

enum {
	LISTEN = 0x0a,
	KILL_ROUNDS = 5000, /* of a millisecond */
	GUARD_DONE = 0
};

/* What a guard reports: first how the program began, then how it ended. */
struct beginning {
	pid_t program;
	int number;
};

struct ending {
	int status; /* of waitpid */
	struct rusage usage;
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

static void guard_program(pid_t program, int lifeline, int report)
{
	struct pollfd fds[] = { { .fd = lifeline, .events = POLLIN },
				{ .fd = (int)syscall(SYS_pidfd_open, program, 0),
				  .events = POLLIN } };
	struct ending ending;
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

/* Start a program as nb_program_start does. Returns its pid, or -1 with an errno in *number. */
static pid_t guard_start(struct nb_guard *guard, char **arguments, const struct nb_cpus *cpus,
			 int out, int err, int *number)
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

/* Whether the program has ended, and how; what it left is gone then. Waits for nothing. */
static int guard_ended(struct nb_guard *guard, struct ending *ending)
{
	ssize_t got = read(guard->report, ending, sizeof(*ending));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got != sizeof(*ending)) /* the guard was killed, and so was the program */
		*ending = (struct ending){ .status = SIGKILL };
	waitpid(guard->pid, NULL, 0);
	guard->pid = 0;
	return 1;
}

static void guard_kill(struct nb_guard *guard)
{
	if (guard->lifeline >= 0)
		close(guard->lifeline);
	guard->lifeline = -1;
	if (guard->pid > 0)
		kill(guard->pid, SIGCONT);
}

void nb_tool_init(struct nb_tool *tool)
{
	memset(tool, 0, sizeof(*tool));
	tool->output.fd = tool->errors.fd = -1;
	tool->guard.lifeline = tool->guard.report = -1;
}

static int open_output(struct nb_output *output, size_t room, int *theirs)
{
	int ends[2];

	output->text = malloc(room);
	if (!output->text || pipe2(ends, O_CLOEXEC))
		return -1;
	output->room = room;
	output->keep_last = 1;
	output->fd = ends[0];
	*theirs = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

int nb_tool_start(struct nb_tool *tool, const struct nb_job *job, struct nb_error *error)
{
	char copy[sizeof(job->argv)], *arguments[NB_ARGUMENTS_MAX];
	int out = -1, err = -1, number = 0;

	memcpy(copy, job->argv, sizeof(copy));
	if (!nb_program_arguments(copy, sizeof(copy), arguments))
		return nb_fail(
			error, NB_ERR_REQUEST, "start tool", "write tool: {argv: [program, ...]}",
			"the command is empty, or has more than %d words", NB_ARGUMENTS_MAX - 1);
	if (open_output(&tool->output, NB_TOOL_OUTPUT, &out) ||
	    open_output(&tool->errors, NB_TOOL_ERRORS, &err))
		number = errno;
	else
		tool->pid = guard_start(&tool->guard, arguments, &job->cpus, out, err, &number);
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (!number && tool->pid > 0)
		return 0;
	tool->pid = 0;
	errno = number;
	return nb_fail_errno(error, "start tool", "install it on this host, or give its full path",
			     "%s", arguments[0]);
}

void nb_tool_poll(struct nb_tool *tool)
{
	struct ending ending;

	nb_output_read(&tool->output);
	nb_output_read(&tool->errors);
	if (tool->pid && !tool->exited && guard_ended(&tool->guard, &ending)) {
		tool->exited = 1;
		tool->status = ending.status;
		tool->usage = ending.usage;
		nb_output_read(&tool->output);
		nb_output_read(&tool->errors);
	}
}

int nb_tool_printed(const struct nb_tool *tool)
{
	return tool->output.taken < tool->output.used || tool->errors.taken < tool->errors.used;
}

size_t nb_tool_take(struct nb_tool *tool, char *text, size_t room)
{
	size_t length = nb_output_take(&tool->output, text, room);

	return length + nb_output_take(&tool->errors, text + length, room - length);
}

void nb_tool_terminate(const struct nb_tool *tool)
{
	ssize_t written = tool->pid && !tool->exited && tool->guard.lifeline >= 0
				  ? write(tool->guard.lifeline, "", 1)
				  : 0;

	(void)written; /* it has ended */
}

void nb_tool_kill(struct nb_tool *tool)
{
	if (tool->pid && !tool->exited)
		guard_kill(&tool->guard);
}

int nb_tool_wait(struct nb_tool *tool, uint64_t deadline)
{
	for (nb_tool_poll(tool); tool->pid && !tool->exited; nb_tool_poll(tool)) {
		if (nb_now() >= deadline)
			return -1;
		nb_heartbeat();
		nb_sleep(1000000);
	}
	return 0;
}

void nb_tool_free(struct nb_tool *tool)
{
	if (tool->output.fd >= 0)
		close(tool->output.fd);
	if (tool->errors.fd >= 0)
		close(tool->errors.fd);
	guard_kill(&tool->guard);
	if (tool->guard.report >= 0)
		close(tool->guard.report);
	free(tool->output.text);
	free(tool->errors.text);
	nb_tool_init(tool);
}

/* proc_net_tcp: the kernel's Documentation/networking/proc_net_tcp.rst. */
int nb_port_listens(uint64_t port)
{
	static const char *const paths[] = { "/proc/self/net/tcp", "/proc/self/net/tcp6" };
	unsigned int local, state;
	char line[512];
	int found = 0;

	for (size_t i = 0; i < NB_LENGTH(paths); i++) {
		FILE *table = fopen(paths[i], "re");

		while (table && !found && fgets(line, sizeof(line), table))
			found = sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local,
				       &state) == 2 &&
				state == LISTEN && local == port;
		if (table)
			fclose(table);
	}
	return found;
}
