/* SPDX-License-Identifier: MIT */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "field.h"
#include "heartbeat.h"
#include "program.h"

enum {
	HEARTBEAT_MS = 1000, /* heartbeats are sent while a program runs */
	EXIT_POLL_MS = 10    /* a kernel older than 5.3 has no pidfd_open(2) */
};

/* Read what a program prints until it has exited. Returns its waitpid status, or -1 with errno when
 * it took too long. */
static int collect_output(pid_t pid, struct nb_output *captured, uint64_t deadline)
{
	int watch = (int)syscall(SYS_pidfd_open, pid, 0), status = 0, number = 0;

	for (int exited = 0; !exited;) {
		struct pollfd pending[] = { { .fd = captured->fd, .events = POLLIN },
					    { .fd = watch, .events = POLLIN } };
		uint64_t now = nb_now(), left = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
		uint64_t interval = watch < 0 ? EXIT_POLL_MS : HEARTBEAT_MS;

		nb_heartbeat();
		poll(pending, 2, (int)(left < interval ? left : interval));
		nb_output_read(captured);
		exited = waitpid(pid, &status, WNOHANG) == pid;
		if (!exited && nb_now() > deadline) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			number = ETIMEDOUT;
			exited = 1;
		}
	}
	nb_output_read(captured);
	if (watch >= 0)
		close(watch);
	errno = number;
	return number ? -1 : status;
}

int nb_exec(const char *argv, size_t length, uint64_t limit_ns, char *output, size_t room,
	    struct nb_error *error)
{
	char copy[16384], *arguments[NB_ARGUMENTS_MAX];
	struct nb_output captured = { .fd = -1, .text = output, .room = room - 1 };
	int ends[2], status = -1, number = 0;
	uint64_t deadline = nb_now() + limit_ns;
	pid_t pid;

	if (length >= sizeof(copy))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "shorten it",
			       "a command of %zu bytes, at most %zu fit", length, sizeof(copy) - 1);
	memset(copy, 0, sizeof(copy));
	memcpy(copy, argv, length);
	if (!nb_program_arguments(copy, sizeof(copy), arguments))
		return nb_fail(error, NB_ERR_REQUEST, "exec", "name a program",
			       "the command is empty, or has more than %d words",
			       NB_ARGUMENTS_MAX - 1);
	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		return nb_fail_errno(error, "exec", "raise the limit on open files (ulimit -n)",
				     "%s", arguments[0]);
	captured.fd = ends[0];
	pid = nb_program_start(arguments, NULL, ends[1], ends[1], &number);
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
