/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "heartbeat.h"

enum {
	ARGUMENTS_MAX = 256,
	OUTPUT_ROOM = 2 * 1024 * 1024,
	ERRORS_ROOM = 16 * 1024,
	EXEC_FAILED = 127
};
enum {
	HEARTBEAT_MS = 1000, /* often enough to be heard of while a program runs */
	LOOK_MS = 10	/* where a kernel older than 5.3 does not tell when it has exited */
};

void nb_tool_init(struct nb_tool *tool)
{
	memset(tool, 0, sizeof(*tool));
	tool->output.fd = tool->errors.fd = tool->pidfd = -1;
}

static size_t split_arguments(char *text, size_t length, char **arguments)
{
	size_t count = 0;

	for (size_t at = 0; at < length && text[at] && count + 1 < ARGUMENTS_MAX;
	     at += strlen(text + at) + 1)
		arguments[count++] = text + at;
	arguments[count] = NULL;
	return count;
}

/* On the CPU that was asked for, or -1 with errno: a tool that ran elsewhere would be measured as
 * something it is not. */
static int pin_to(uint64_t cpu)
{
	cpu_set_t set;

	if (cpu == NB_MISSING)
		return 0;
	CPU_ZERO(&set);
	if (cpu < CPU_SETSIZE) /* else no CPU, which the kernel refuses */
		CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static void exec_child(char **arguments, uint64_t cpu, int out, int err, int report)
{
	int number;
	ssize_t written;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	if (!pin_to(cpu) && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
		int null = open("/dev/null", O_RDONLY);

		if (null >= 0)
			dup2(null, STDIN_FILENO);
		execvp(arguments[0], arguments);
	}
	number = errno;
	written = write(report, &number, sizeof(number));
	(void)written;
	_exit(EXEC_FAILED);
}

/* Start a program; *number is the errno of a failed exec. Returns its pid or -1. */
static pid_t start(char **arguments, uint64_t cpu, int out, int err, int *number)
{
	int report[2];
	pid_t pid;

	*number = 0;
	if (pipe2(report, O_CLOEXEC)) {
		*number = errno;
		return -1;
	}
	pid = fork();
	if (pid == 0)
		exec_child(arguments, cpu, out, err, report[1]);
	if (pid < 0)
		*number = errno;
	close(report[1]);
	if (pid > 0 && read(report[0], number, sizeof(*number)) > 0) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(report[0]);
	return pid;
}

static int open_output(struct nb_output *output, size_t room, int *theirs)
{
	int ends[2];

	output->text = malloc(room);
	if (!output->text || pipe2(ends, O_CLOEXEC))
		return -1;
	output->room = room;
	output->fd = ends[0];
	*theirs = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

int nb_tool_start(struct nb_tool *tool, const struct nb_job *job, struct nb_error *error)
{
	char copy[sizeof(job->argv)], *arguments[ARGUMENTS_MAX];
	int out = -1, err = -1, number = 0;

	memcpy(copy, job->argv, sizeof(copy));
	if (!split_arguments(copy, sizeof(copy), arguments))
		return nb_fail(error, NB_ERR_REQUEST, "start tool",
			       "write tool: {argv: [program, ...]}", "no program is named");
	if (open_output(&tool->output, OUTPUT_ROOM, &out) ||
	    open_output(&tool->errors, ERRORS_ROOM, &err))
		number = errno;
	else
		tool->pid = start(arguments, job->cpu, out, err, &number);
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (!number && tool->pid > 0) {
		tool->pidfd = (int)syscall(SYS_pidfd_open, tool->pid, 0);
		return tool->pidfd >= 0 ? 0
					: nb_fail_errno(error, "start tool",
							"use Linux 5.3 or later", "pidfd_open");
	}
	tool->pid = 0;
	errno = number;
	return nb_fail_errno(error, "start tool", "install it on this host, or give its full path",
			     "%s", arguments[0]);
}

static void take_in(struct nb_output *output)
{
	char spill[4096];

	while (output->fd >= 0) {
		size_t left = output->room - output->used;
		ssize_t got = read(output->fd, left ? output->text + output->used : spill,
				   left ? left : sizeof(spill));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			close(output->fd);
			output->fd = -1;
		} else if (left) {
			output->used += (size_t)got;
		} else {
			output->lost += (uint64_t)got;
		}
	}
}

/* Whatever the tool left running in its session: while it is not waited for, its number is nobody
 * else's. */
static void kill_left_behind(pid_t pid)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid)
		kill(-pid, SIGKILL);
}

void nb_tool_poll(struct nb_tool *tool)
{
	take_in(&tool->output);
	take_in(&tool->errors);
	if (tool->pid && !tool->exited)
		kill_left_behind(tool->pid);
	if (tool->pid && !tool->exited &&
	    wait4(tool->pid, &tool->status, WNOHANG, &tool->usage) == tool->pid) {
		tool->exited = 1;
		take_in(&tool->output);
		take_in(&tool->errors);
	}
}

int nb_tool_printed(const struct nb_tool *tool, const char *text)
{
	return tool->output.used &&
	       memmem(tool->output.text, tool->output.used, text, strlen(text)) != NULL;
}

void nb_tool_kill(struct nb_tool *tool)
{
	if (!tool->pid || tool->exited)
		return;
	kill(-tool->pid, SIGKILL);
	kill(tool->pid, SIGKILL);
	while (wait4(tool->pid, &tool->status, 0, &tool->usage) < 0 && errno == EINTR)
		;
	tool->exited = 1;
}

void nb_tool_free(struct nb_tool *tool)
{
	nb_tool_kill(tool);
	if (tool->output.fd >= 0)
		close(tool->output.fd);
	if (tool->errors.fd >= 0)
		close(tool->errors.fd);
	if (tool->pidfd >= 0)
		close(tool->pidfd);
	free(tool->output.text);
	free(tool->errors.text);
	nb_tool_init(tool);
}

/* Take in what a program prints until it has exited: its waitpid status, or -1 with errno when it
 * took too long. */
static int collect_output(pid_t pid, struct nb_output *captured, uint64_t deadline)
{
	int watch = (int)syscall(SYS_pidfd_open, pid, 0), status = 0, number = 0;

	for (int exited = 0; !exited;) {
		struct pollfd pending[] = { { .fd = captured->fd, .events = POLLIN },
					    { .fd = watch, .events = POLLIN } };
		uint64_t now = nb_now(), left = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
		uint64_t patience = watch < 0 ? LOOK_MS : HEARTBEAT_MS;

		nb_heartbeat();
		poll(pending, 2, (int)(left < patience ? left : patience));
		take_in(captured);
		exited = waitpid(pid, &status, WNOHANG) == pid;
		if (!exited && nb_now() > deadline) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			number = ETIMEDOUT;
			exited = 1;
		}
	}
	take_in(captured);
	if (watch >= 0)
		close(watch);
	errno = number;
	return number ? -1 : status;
}

int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error)
{
	char copy[16384], *arguments[ARGUMENTS_MAX];
	struct nb_output captured = { .fd = -1, .text = output, .room = room - 1 };
	int ends[2], status = -1, number = 0;
	uint64_t deadline = nb_now() + limit_ns;
	pid_t pid;

	if (length >= sizeof(copy))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "shorten it",
			       "a command of %zu bytes, at most %zu fit", length, sizeof(copy) - 1);
	memset(copy, 0, sizeof(copy));
	memcpy(copy, argv, length);
	if (!split_arguments(copy, sizeof(copy), arguments))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "name a program",
			       "no program is named");
	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		return nb_fail_errno(error, "exec", "raise the limit on open files (ulimit -n)",
				     "%s", arguments[0]);
	captured.fd = ends[0];
	pid = start(arguments, NB_MISSING, ends[1], ends[1], &number);
	close(ends[1]);
	if (pid > 0) {
		status = collect_output(pid, &captured, deadline);
		number = status < 0 ? errno : 0;
	}
	if (captured.fd >= 0)
		close(captured.fd);
	output[captured.used] = 0;
	errno = number;
	return number ? nb_fail_errno(error, "exec",
				      "check that the command exists and ends by itself", "%s",
				      arguments[0])
		      : status;
}
