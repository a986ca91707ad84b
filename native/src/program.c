/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "job.h"
#include "wire.h"

enum { EXEC_FAILED = 127 };

size_t nb_program_arguments(char *text, size_t length, char **arguments)
{
	size_t count = 0, at = 0;

	for (; at < length && text[at] && count + 1 < NB_ARGUMENTS_MAX; at += strlen(text + at) + 1)
		arguments[count++] = text + at;
	arguments[count] = NULL;
	return at < length && text[at] ? 0 : count;
}

/* Pin to the CPU that was asked for. 0, or -1 with errno: on another CPU the measurement would be
 * wrong. */
static int pin_to(const struct nb_cpus *cpus)
{
	cpu_set_t set;

	if (!cpus || !cpus->count)
		return 0;
	CPU_ZERO(&set);
	for (uint64_t i = 0; i < cpus->count; i++)
		if (cpus->each[i] < CPU_SETSIZE) /* an empty set is refused by the kernel */
			CPU_SET(cpus->each[i], &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static struct rlimit usual_files; /* all zero: never raised */

void nb_program_raise_files(void)
{
	struct rlimit limit;

	if (usual_files.rlim_max || getrlimit(RLIMIT_NOFILE, &limit) ||
	    limit.rlim_cur == limit.rlim_max)
		return;
	usual_files = limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void nb_program_close(unsigned int first, unsigned int last)
{
	if (first <= last)
		syscall(SYS_close_range, first, last, 0);
}

static void exec_child(char **arguments, const struct nb_cpus *cpus, int out, int err, int report)
{
	int number;
	ssize_t written;

	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (usual_files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &usual_files);
	if (!pin_to(cpus) && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
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
pid_t nb_program_start(char **arguments, const struct nb_cpus *cpus, int out, int err, int *number)
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
		exec_child(arguments, cpus, out, err, report[1]);
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

static void drop_older_half(struct nb_output *output)
{
	size_t dropped = output->used - output->room / 2;

	memmove(output->text, output->text + dropped, output->used - dropped);
	output->used -= dropped;
	output->taken -= output->taken < dropped ? output->taken : dropped;
	output->lost += dropped;
}

size_t nb_output_take(struct nb_output *output, char *text, size_t room)
{
	size_t length = output->used - output->taken;

	length = length < room ? length : room;
	memcpy(text, output->text + output->taken, length);
	output->taken += length;
	return length;
}

void nb_output_read(struct nb_output *output)
{
	char spill[4096];

	while (output->fd >= 0) {
		size_t left;
		ssize_t got;

		if (output->keep_last && output->used == output->room)
			drop_older_half(output);
		left = output->room - output->used;
		got = read(output->fd, left ? output->text + output->used : spill,
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

void nb_program_clear_environment(void)
{
	for (char **entry = environ; entry && *entry; entry++)
		explicit_bzero(*entry, strlen(*entry));
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
}
