/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "proc_text.h"

#ifndef NB_LAYOUT
#define NB_LAYOUT 0
#endif
#define NB_ENGINE "0.2.0"

enum { NETNS_COOKIE = 71 }; /* SO_NETNS_COOKIE */

/* 1: the first of all network namespaces, which alone has this file; else its cookie (Linux 5.14),
 * given out once a boot; else its inode. */
static uint64_t network(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t length = sizeof(cookie);
	struct stat space;

	if (fd >= 0) {
		getsockopt(fd, SOL_SOCKET, NETNS_COOKIE, &cookie, &length);
		close(fd);
	}
	if (!access("/proc/sys/net/core/netdev_max_backlog", F_OK))
		return 1;
	return cookie || stat("/proc/self/ns/net", &space) ? cookie : space.st_ino;
}

static void read_id(const char *path, char *id, size_t room)
{
	nb_read_file(path, id, room);
	id[strcspn(id, "\n")] = 0;
}

void nb_fill_hello(struct nb_hello *hello)
{
	struct timespec tick;
	struct utsname name;

	memset(hello, 0, sizeof(*hello));
	hello->magic = NB_MAGIC;
	hello->version = NB_PROTOCOL;
	hello->byte_order = NB_BYTE_ORDER;
	hello->layout = NB_LAYOUT;
	hello->pid = (uint32_t)getpid();
	hello->clock_ticks = (uint32_t)sysconf(_SC_CLK_TCK);
	hello->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	hello->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	read_id("/etc/machine-id", hello->machine, sizeof(hello->machine));
	if (!uname(&name)) {
		snprintf(hello->architecture, sizeof(hello->architecture), "%.31s", name.machine);
		snprintf(hello->kernel, sizeof(hello->kernel), "%.95s", name.release);
	}
	read_id("/proc/sys/kernel/random/boot_id", hello->boot_id, sizeof(hello->boot_id));
	/* The coarse clock moves at each tick. */
	if (!clock_getres(CLOCK_MONOTONIC_COARSE, &tick) && tick.tv_nsec > 0)
		hello->tick_rate = (uint32_t)((1000000000 + tick.tv_nsec / 2) / tick.tv_nsec);
	hello->user = (uint32_t)geteuid();
	hello->network = network();
	snprintf(hello->engine, sizeof(hello->engine), "%s", NB_ENGINE);
}

void nb_hello_write(struct nb_writer *writer)
{
	size_t count = nb_describe(NULL, 0);
	struct nb_row *rows = malloc(count * sizeof(*rows));
	struct nb_hello hello;

	nb_fill_hello(&hello);
	hello.rows = (uint32_t)count;
	nb_put(writer, &hello, sizeof(hello));
	if (rows) {
		nb_describe(rows, count);
		nb_put(writer, rows, count * sizeof(*rows));
	} else {
		writer->failed = 1;
	}
	free(rows);
}

int nb_hello_check(const unsigned char *payload, size_t length, struct nb_error *error)
{
	struct nb_hello theirs;

	memset(&theirs, 0, sizeof(theirs));
	memcpy(&theirs, payload, length < sizeof(theirs) ? length : sizeof(theirs));
	if (theirs.magic != NB_MAGIC || theirs.byte_order != NB_BYTE_ORDER)
		return nb_fail(error, NB_ERR_PROTOCOL, "hello",
			       "controller and worker need the same byte order",
			       "the frame is not a hello, or its byte order differs");
	if (theirs.version != NB_PROTOCOL || theirs.layout != NB_LAYOUT)
		return nb_fail(error, NB_ERR_PROTOCOL, "hello",
			       "deploy the worker again from this controller",
			       "controller has version %u layout %016llx, worker has version %u "
			       "layout %016llx",
			       theirs.version, (unsigned long long)theirs.layout,
			       (unsigned int)NB_PROTOCOL, (unsigned long long)NB_LAYOUT);
	return 0;
}
