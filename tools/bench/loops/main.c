/* SPDX-License-Identifier: MIT */
/*
 * The peers of instructions.py: a loop written by hand for each method that has peers elsewhere.
 *
 *	loops METHOD PORT BYTES CHUNK FILE
 *
 * Connects to 127.0.0.1:PORT and sends BYTES of FILE, or its first chunk over and over, or receives
 * until the end (BYTES is 0), in a method that has a sink into FILE. It does so in a thread: libc's
 * wrappers take a longer way in a process that has threads, as the engine has. Prints chunks,
 *bytes, and calls beyond those that each chunk needs.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loop.h"

static const struct {
	const char *name;
	int (*loop)(struct work *work);
} loops[] = {
	{ "send_write", send_write },	      { "send_readwrite", send_readwrite },
	{ "send_sendfile", send_sendfile },   { "send_splice", send_splice },
	{ "send_mmap", send_mmap },	      { "send_zerocopy", send_zerocopy },
	{ "send_uring", send_uring },	      { "receive_read", receive_read },
	{ "receive_trunc", receive_trunc },   { "receive_mmap", receive_mmap },
	{ "receive_splice", receive_splice }, { "receive_uring", receive_uring },
};

struct job {
	int (*loop)(struct work *work);
	struct work work;
	int failed;
};

static void *run(void *argument)
{
	struct job *job = argument;

	job->failed = job->loop(&job->work);
	return NULL;
}

static int connect_to(int port)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd >= 0 && !connect(fd, (struct sockaddr *)&peer, sizeof(peer)) ? fd : -1;
}

static int prepare(struct job *job, char **argv)
{
	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
		if (!strcmp(argv[1], loops[i].name))
			job->loop = loops[i].loop;
	job->work.socket = connect_to(atoi(argv[2]));
	job->work.bytes = strtoull(argv[3], NULL, 10);
	job->work.chunk = strtoull(argv[4], NULL, 10);
	job->work.file = open(argv[5], job->work.bytes ? O_RDONLY : O_RDWR | O_CREAT, 0600);
	return job->loop && job->work.socket >= 0 && job->work.file >= 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	pthread_t thread;

	if (argc != 6)
		return 2;
	if (prepare(&job, argv)) {
		perror("loops: cannot start");
		return 1;
	}
	if (pthread_create(&thread, NULL, run, &job) || pthread_join(thread, NULL))
		return 1;
	if (job.failed) {
		perror("loops: a call failed");
		return 1;
	}
	printf("%llu %llu %llu\n", (unsigned long long)job.work.chunks,
	       (unsigned long long)job.work.moved, (unsigned long long)job.work.again);
	return 0;
}
