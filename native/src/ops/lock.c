/* SPDX-License-Identifier: MIT */
/*
 * The lock of a host, or of its whole kernel: an abstract unix socket (unix(7)) of a network
 * namespace, which the kernel closes when its process ends, however it ends. A second socket has
 * the holder's name, which other processes read from /proc/net/unix.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "op.h"

enum { HOLDER_MAX = 60, ATTEMPTS = 1000 };

static const char OPERATION[] = "lock", NAMELESS[] = "unknown", OWN[] = "/proc/thread-self/ns/net";
static const struct timespec PAUSE = { .tv_nsec = 1000000 };

struct lock_request {
	const char *what;   /* host, kernel */
	const char *holder; /* that takes it; NULL: only look */
	const char *place;  /* the network namespace where it is, when it is another */
	char found[HOLDER_MAX + 1];
	struct nb_error *error;
	int status;
};

/* Bind an abstract name for as long as this process lives. Returns 0, or -1 with errno. */
static int bind_name(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), number;

	if (fd < 0)
		return -1;
	memcpy(address.sun_path + 1, name, length);
	if (!bind(fd, (struct sockaddr *)&address,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)))
		return 0; /* the descriptor stays open until the process ends */
	number = errno;
	close(fd);
	errno = number;
	return -1;
}

/* Find the holder: 1 and its name; 0: there is none; -1 with errno. */
static int look(const char *what, char *holder)
{
	FILE *file = fopen("/proc/thread-self/net/unix", "re");
	char lock[64], by[64], *line = NULL;
	size_t room = 0;
	int held = 0, named = 0;

	if (!file)
		return -1;
	snprintf(lock, sizeof(lock), "@netbench.lock.%s", what);
	snprintf(by, sizeof(by), "@netbench.lock.%s.by.", what);
	while (getline(&line, &room, file) > 0) {
		const char *name = strchr(line, '@');

		line[strcspn(line, "\n")] = 0;
		held |= name && !strcmp(name, lock);
		if (name && !strncmp(name, by, strlen(by)) &&
		    strlen(name + strlen(by)) <= HOLDER_MAX) {
			strcpy(holder, name + strlen(by));
			named = 1;
		}
	}
	free(line);
	fclose(file);
	if (!held || !named)
		strcpy(holder, held ? NAMELESS : "");
	return held;
}

static int fail_lock(const struct lock_request *request)
{
	return nb_fail_errno(request->error, OPERATION, "look at `dmesg` on that host",
			     "the lock of this %s", request->what);
}

/* Its sockets are bound one after the other: a lock may be taken while its holder has no name yet.
 */
static int is_decided(int held, const char *holder)
{
	return held < 0 || (held && strcmp(holder, NAMELESS) != 0);
}

static int take(struct lock_request *request)
{
	char lock[64], by[128];
	int held = 0;

	snprintf(lock, sizeof(lock), "netbench.lock.%s", request->what);
	snprintf(by, sizeof(by), "netbench.lock.%s.by.%s", request->what, request->holder);
	for (int i = 0; i < ATTEMPTS && !is_decided(held, request->found); i++) {
		if (i)
			nanosleep(&PAUSE, NULL);
		if (!bind_name(lock))
			return bind_name(by) && errno != EADDRINUSE ? fail_lock(request) : 0;
		held = errno == EADDRINUSE ? look(request->what, request->found) : -1;
	}
	if (held < 0)
		return fail_lock(request);
	if (!strcmp(request->found, request->holder))
		return 0;
	return nb_fail(request->error, NB_ERR_REQUEST, OPERATION,
		       "wait until it is done, or stop it", "locked by %s", request->found);
}

static void run(struct lock_request *request)
{
	if (request->holder)
		request->status = take(request);
	else if (look(request->what, request->found) < 0)
		request->status = fail_lock(request);
}

static int fail_namespace(const struct lock_request *request)
{
	return nb_fail_errno(request->error, OPERATION,
			     "run as root there, or leave out settings of the whole kernel",
			     "the lock of the kernel is in its first network namespace");
}

/*
 * The kernel's first network namespace: that of the first process, or, where one may not look at
 * that (it may have capabilities that other processes lack), of the kernel's own threads.
 */
static const char *first_namespace(struct stat *found)
{
	static const char of_init[] = "/proc/1/ns/net", of_kernel[] = "/proc/2/ns/net";
	char name[16] = "";
	FILE *file;

	if (!stat(of_init, found))
		return of_init;
	file = fopen("/proc/2/comm", "re"); /* in a container it may be any process */
	if (file) {
		if (!fgets(name, sizeof(name), file))
			name[0] = 0;
		fclose(file);
	}
	return !strcmp(name, "kthreadd\n") && !stat(of_kernel, found) ? of_kernel : NULL;
}

/* A thread's namespace is its own, and ends with it; sockets stay where they were made. */
static void *run_there(void *given)
{
	struct lock_request *request = given;
	int fd = open(request->place, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		request->status = fail_namespace(request);
	else
		run(request);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int run_in_kernel(struct lock_request *request)
{
	struct stat first, own;
	pthread_t thread;

	request->place = first_namespace(&first);
	if (!request->place || stat(OWN, &own))
		return fail_namespace(request);
	if (first.st_ino == own.st_ino && first.st_dev == own.st_dev) {
		run(request);
		return request->status;
	}
	errno = pthread_create(&thread, NULL, run_there, request);
	if (errno)
		return fail_namespace(request);
	pthread_join(thread, NULL);
	return request->status;
}

static int run_in_namespace(struct lock_request *request)
{
	if (!strcmp(request->what, "kernel"))
		return run_in_kernel(request);
	if (strcmp(request->what, "host") != 0)
		return nb_fail(request->error, NB_ERR_REQUEST, OPERATION, "lock host or kernel",
			       "unknown lock '%.40s'", request->what);
	run(request);
	return request->status;
}

static int get_lock(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	struct lock_request request = { .what = nb_target_word(target, 0), .error = error };
	int status = run_in_namespace(&request);

	if (!status && request.found[0])
		nb_text_add(text, "%s\n", request.found);
	return status;
}

static int set_lock(const struct nb_target *target, const char *value, struct nb_error *error)
{
	struct lock_request request = { .what = nb_target_word(target, 0),
					.holder = value,
					.error = error };
	size_t length = 0;

	while (value[length] > ' ' && value[length] <= '~')
		length++;
	if (!length || length > HOLDER_MAX || value[length])
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "use a short word",
			       "'%.70s' is not a valid lock holder", value);
	return run_in_namespace(&request);
}

const struct nb_op nb_op_lock = {
	.name = "lock",
	.about = "the lock of this host or its kernel; a lock is held until the worker ends",
	.words = 1,
	.lasting = 1,
	.get = get_lock,
	.set = set_lock,
};
