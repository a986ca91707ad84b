/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "heartbeat.h"

void nb_tool_init(struct nb_tool *tool)
{
	memset(tool, 0, sizeof(*tool));
	tool->output.fd = tool->errors.fd = tool->pidfd = -1;
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
	char copy[sizeof(job->argv)], *arguments[NB_ARGUMENTS_MAX];
	int out = -1, err = -1, number = 0;

	memcpy(copy, job->argv, sizeof(copy));
	if (!nb_program_arguments(copy, sizeof(copy), arguments))
		return nb_fail(error, NB_ERR_REQUEST, "start tool",
			       "write tool: {argv: [program, ...]}", "the command is empty");
	if (open_output(&tool->output, NB_TOOL_OUTPUT, &out) ||
	    open_output(&tool->errors, NB_TOOL_ERRORS, &err))
		number = errno;
	else
		tool->pid = nb_program_start(arguments, job->cpu, out, err, &number);
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

/* Kill what the tool left running in its session. While the tool is not waited for, no other
 * process can get its pid. */
static void kill_left_behind(pid_t pid)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid)
		kill(-pid, SIGKILL);
}

void nb_tool_poll(struct nb_tool *tool)
{
	nb_output_read(&tool->output);
	nb_output_read(&tool->errors);
	if (tool->pid && !tool->exited)
		kill_left_behind(tool->pid);
	if (tool->pid && !tool->exited &&
	    wait4(tool->pid, &tool->status, WNOHANG, &tool->usage) == tool->pid) {
		tool->exited = 1;
		nb_output_read(&tool->output);
		nb_output_read(&tool->errors);
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
}

int nb_tool_wait(struct nb_tool *tool, uint64_t deadline)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	for (nb_tool_poll(tool); tool->pid && !tool->exited; nb_tool_poll(tool)) {
		if (nb_now() >= deadline)
			return -1;
		nb_heartbeat();
		nanosleep(&pause, NULL);
	}
	return 0;
}

void nb_tool_free(struct nb_tool *tool)
{
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
