/* SPDX-License-Identifier: MIT */
/* A worker like this one that its controller has lost. One that is stopped (SIGSTOP, a debugger)
 * neither undoes what it holds nor gives its lock back: it is killed, and the journal undoes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock.h"
#include "../proc_text.h"
#include "client.h"

enum { PATH = 64, WORDS = 4096, ATTEMPTS = 1000 };

static const char OPERATION[] = "end a worker", ENDED[] = "ended";

static ssize_t read_proc(const char *pid, const char *name, char *text)
{
	char path[PATH];

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
	return nb_read_file(path, text, WORDS);
}

/* Whether it is the same program with the same words as this process, and of the same user: its
 * number may be another process's by now. Another copy of the program is told by the log of its
 * campaign, in which workers alone are. */
static int is_worker(const char *pid)
{
	char path[PATH], mine[WORDS], its[WORDS];
	ssize_t length = read_proc("self", "cmdline", mine);
	struct stat own, other, folder;

	if (nb_log_has((pid_t)strtol(pid, NULL, 10)))
		return 1;
	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	if (length != read_proc(pid, "cmdline", its) || memcmp(mine, its, (size_t)length) ||
	    stat(path, &folder) || folder.st_uid != geteuid())
		return 0;
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return !stat("/proc/self/exe", &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

/* Its state and its parent as in proc(5): after the name, which is in parentheses. */
static char state_of(const char *pid, int *parent)
{
	char text[WORDS], *name, state = 0;

	*parent = 0;
	read_proc(pid, "stat", text);
	name = strrchr(text, ')');
	if (name && sscanf(name + 1, " %c %d", &state, parent) != 2)
		return 0;
	return state;
}

/* sudo, and its monitor where it has one, stop when their child is stopped, and would never see
 * that it has died. */
static void wake_sudo(int parent)
{
	char pid[16], name[WORDS];

	while (parent > 1) {
		snprintf(pid, sizeof(pid), "%d", parent);
		read_proc(pid, "comm", name);
		if (strcmp(name, "sudo\n") != 0 || kill(parent, SIGCONT))
			return;
		state_of(pid, &parent);
	}
}

static int get_worker(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *pid = target->words;
	int parent = 0;
	char state;

	if (!*pid || strlen(pid) > 10 || strspn(pid, "0123456789") != strlen(pid))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "give a pid",
			       "'%.20s' is not a pid", pid);
	state = is_worker(pid) ? state_of(pid, &parent) : 0;
	fprintf(text, "%s\n",
		!state			       ? ENDED
		: state == 'T' || state == 't' ? "stopped"
					       : "running");
	return 0;
}

static int set_worker(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const char *pid = target->words;
	int parent = 0;
	char state = is_worker(pid) ? state_of(pid, &parent) : 0;

	if (strcmp(value, ENDED) != 0 || (state && state != 'T' && state != 't'))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "wait until it has left",
			       "process %.20s is not stopped", pid);
	if (state && kill((pid_t)strtol(pid, NULL, 10), SIGKILL) && errno != ESRCH)
		return nb_fail_errno(error, OPERATION, "kill it by hand", "process %.20s", pid);
	if (state)
		wake_sudo(parent);
	for (int i = 0; i < ATTEMPTS && is_worker(pid); i++)
		nb_sleep(1000000);
	return 0;
}

const struct nb_op nb_op_worker = {
	.name = "worker",
	.about = "a worker of the same program and user, by its pid: `ended` kills one that is "
		 "stopped",
	.words = 1,
	.lasting = 1,
	.get = get_worker,
	.set = set_worker,
};
