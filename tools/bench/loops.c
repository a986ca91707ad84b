/* SPDX-License-Identifier: MIT */
/*
 * The peers of instructions.py: the loops that one writes by hand for trunc, splice and mmap, with
 *the same system calls and nothing to measure with but a count of chunks and bytes.
 *
 *	loops METHOD PLACE PORT BYTES CHUNK [FILE]
 *
 * Connects to 127.0.0.1:PORT and receives until the end (trunc), or sends the first BYTES of FILE
 *(splice, mmap). PLACE is the thread that does so, `main` or `thread`: libc's wrappers take a
 *longer way in a process that has threads, as the engine has. Prints chunks, bytes and calls that
 *moved less than asked.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct work {
	int (*loop)(struct work *work);
	int socket;
	int file;
	size_t bytes; /* to send */
	size_t chunk;
	uint64_t chunks;
	uint64_t moved;
	uint64_t shorts;
	int failed;
};

static int trunc_loop(struct work *work)
{
	int fd = work->socket;
	size_t chunk = work->chunk;
	uint64_t chunks = 0, moved = 0;
	ssize_t got;

	while ((got = recv(fd, NULL, chunk, MSG_TRUNC)) > 0) {
		moved += (uint64_t)got;
		chunks++;
	}
	work->chunks = chunks;
	work->moved = moved;
	return (int)got;
}

static int splice_loop(struct work *work)
{
	int fd = work->socket, file = work->file, ends[2];
	size_t chunk = work->chunk, total = work->bytes;
	uint64_t chunks = 0, shorts = 0;
	off_t offset = 0;

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, (int)chunk + 4096) < 0)
		return -1;
	while ((size_t)offset < total) {
		size_t left = total - (size_t)offset;
		ssize_t got = splice(file, &offset, ends[1], NULL, left < chunk ? left : chunk,
				     SPLICE_F_MOVE);

		if (got <= 0)
			return -1;
		do {
			ssize_t put = splice(ends[0], NULL, fd, NULL, (size_t)got, SPLICE_F_MOVE);

			if (put <= 0)
				return -1;
			got -= put;
			if (got)
				shorts++;
		} while (got);
		chunks++;
	}
	work->chunks = chunks;
	work->moved = (uint64_t)offset;
	work->shorts = shorts;
	return 0;
}

static int mmap_loop(struct work *work)
{
	int fd = work->socket, file = work->file;
	size_t chunk = work->chunk, total = work->bytes, offset = 0;
	uint64_t chunks = 0, shorts = 0;

	while (offset < total) {
		size_t length = total - offset < chunk ? total - offset : chunk, done = 0;
		char *map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, (off_t)offset);

		if (map == MAP_FAILED)
			return -1;
		for (;;) {
			ssize_t put = write(fd, map + done, length - done);

			if (put < 0)
				return -1;
			done += (size_t)put;
			if (done == length)
				break;
			shorts++;
		}
		if (munmap(map, length))
			return -1;
		offset += length;
		chunks++;
	}
	work->chunks = chunks;
	work->moved = offset;
	work->shorts = shorts;
	return 0;
}

static void *run(void *argument)
{
	struct work *work = argument;

	work->failed = work->loop(work);
	return NULL;
}

static int connect_to(int port)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd >= 0 && !connect(fd, (struct sockaddr *)&peer, sizeof(peer)) ? fd : -1;
}

int main(int argc, char **argv)
{
	struct work work = { .file = -1 };
	pthread_t thread;

	if (argc < 6)
		return 2;
	work.loop = !strcmp(argv[1], "trunc")	 ? trunc_loop
		    : !strcmp(argv[1], "splice") ? splice_loop
						 : mmap_loop;
	work.socket = connect_to(atoi(argv[3]));
	work.bytes = strtoull(argv[4], NULL, 10);
	work.chunk = strtoull(argv[5], NULL, 10);
	if (argc > 6)
		work.file = open(argv[6], O_RDONLY);
	if (work.socket < 0 || (argc > 6 && work.file < 0)) {
		perror("loops: cannot start");
		return 1;
	}
	if (!strcmp(argv[2], "main"))
		run(&work);
	else if (pthread_create(&thread, NULL, run, &work) || pthread_join(thread, NULL))
		return 1;
	if (work.failed) {
		perror("loops: a call failed");
		return 1;
	}
	printf("%llu %llu %llu\n", (unsigned long long)work.chunks, (unsigned long long)work.moved,
	       (unsigned long long)work.shorts);
	return 0;
}
