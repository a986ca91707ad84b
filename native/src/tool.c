/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "wire.h"

enum { LISTEN = 0x0a };

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
		tool->pid = nb_guard_start(&tool->guard, arguments, &job->cpus, out, err, &number);
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
	struct nb_ending ending;

	nb_output_read(&tool->output);
	nb_output_read(&tool->errors);
	if (tool->pid && !tool->exited && nb_guard_ended(&tool->guard, &ending)) {
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
		nb_guard_kill(&tool->guard);
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
	nb_guard_free(&tool->guard);
	free(tool->output.text);
	free(tool->errors.text);
	nb_tool_init(tool);
}

/* proc_net_tcp: the kernel's Documentation/networking/proc_net_tcp.rst. */
int nb_port_listens(uint64_t port)
{
	enum { NOBODY = 65534 };
	static const char *const paths[] = { "/proc/self/net/tcp", "/proc/self/net/tcp6" };
	unsigned int local, state, user;
	char line[512];
	int found = 0;

	for (size_t i = 0; i < NB_LENGTH(paths); i++) {
		FILE *table = fopen(paths[i], "re");

		while (table && !found && fgets(line, sizeof(line), table))
			found = sscanf(line, "%*d: %*[^:]:%x %*s %x %*s %*s %*s %u", &local, &state,
				       &user) == 3 &&
				state == LISTEN && local == port &&
				(!user || user == geteuid() || user == NOBODY);
		if (table)
			fclose(table);
	}
	return found;
}
