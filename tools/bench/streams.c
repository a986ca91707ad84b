/* SPDX-License-Identifier: MIT */
/*
 * The peer of shared_threads.py: streams that share threads, written by hand. epoll(7) says which
 * of them are ready, and read(2) or write(2) moves chunks as long as whole ones do, 4 MiB at most.
 *
 *	streams send ADDRESS PORT STREAMS THREADS CHUNK
 *	streams receive PORT STREAMS THREADS CHUNK SECONDS
 *
 * The receiver prints what arrived in a window of SECONDS, which begins after as long a warm-up,
 * and ends. The sender sends until then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, LOOK_BYTES = 4 * 1024 * 1024, BATCH = 32 };

struct stream {
	int socket;
	char *buffer;
	size_t done; /* of the chunk */
};

struct group {
	struct stream *streams;
	int count;
	int sends;
	size_t chunk;
	_Atomic uint64_t moved;
};

static struct stream streams[MOST];
static struct group groups[MOST];
static pthread_t threads[MOST];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns 0 when the stream has ended, or failed. */
static int serve(struct group *group, struct stream *stream)
{
	for (size_t total = 0; total < LOOK_BYTES;) {
		char *at = stream->buffer + stream->done;
		size_t rest = group->chunk - stream->done;
		ssize_t moved = group->sends ? write(stream->socket, at, rest)
					     : read(stream->socket, at, rest);

		if (moved < 0 && errno == EAGAIN)
			return 1;
		if (moved <= 0)
			return 0;
		total += (size_t)moved;
		atomic_store_explicit(&group->moved, group->moved + (uint64_t)moved,
				      memory_order_relaxed);
		if (group->sends)
			stream->done = (stream->done + (size_t)moved) % group->chunk;
		if ((size_t)moved < rest)
			return 1;
	}
	return 1;
}

static void *run(void *argument)
{
	struct group *group = argument;
	struct epoll_event ready[BATCH];
	int set = epoll_create1(0), open = group->count;

	for (int i = 0; i < group->count; i++) {
		struct epoll_event event = { .events = group->sends ? EPOLLOUT : EPOLLIN,
					     .data.ptr = &group->streams[i] };

		if (epoll_ctl(set, EPOLL_CTL_ADD, group->streams[i].socket, &event))
			fail("epoll_ctl");
	}
	while (open > 0) {
		int count = epoll_wait(set, ready, BATCH, -1);

		for (int i = 0; i < count; i++) {
			struct stream *stream = ready[i].data.ptr;

			if (serve(group, stream))
				continue;
			epoll_ctl(set, EPOLL_CTL_DEL, stream->socket, NULL);
			open--;
		}
	}
	close(set);
	return NULL;
}

static void open_streams(int sends, struct sockaddr_in *address, int count)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	if (!sends && (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
		       bind(listener, (struct sockaddr *)address, sizeof(*address)) ||
		       listen(listener, MOST)))
		fail("listen");
	for (int i = 0; i < count; i++) {
		int one = sends ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);

		if (one < 0 ||
		    (sends && (setsockopt(one, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) ||
			       connect(one, (struct sockaddr *)address, sizeof(*address)))))
			fail("connect");
		streams[i].socket = one;
	}
	close(listener);
}

/* Streams are dealt out as the engine does. */
static void start(int sends, int count, int over, size_t chunk)
{
	for (int i = 0; i < count; i++) {
		streams[i].buffer = aligned_alloc(4096, chunk);
		if (!streams[i].buffer || fcntl(streams[i].socket, F_SETFL, O_NONBLOCK))
			fail("prepare");
		memset(streams[i].buffer, 1, chunk);
	}
	for (int t = 0; t < over; t++) {
		int first = t * count / over;

		groups[t] = (struct group){ .streams = streams + first,
					    .count = (t + 1) * count / over - first,
					    .sends = sends,
					    .chunk = chunk };
		if (pthread_create(&threads[t], NULL, run, &groups[t]))
			fail("pthread_create");
	}
}

static double look(uint64_t *moved)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	*moved = 0;
	for (int t = 0; t < MOST; t++)
		*moved += groups[t].moved;
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Print what moved in a window of so many seconds, after as many. */
static void measure(double seconds)
{
	uint64_t opened, closed;
	double begun, ended;

	usleep((useconds_t)(seconds * 1e6));
	begun = look(&opened);
	usleep((useconds_t)(seconds * 1e6));
	ended = look(&closed);
	printf("%llu bytes in %.9f s\n", (unsigned long long)(closed - opened), ended - begun);
}

int main(int count, char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int sends = count == 7 && !strcmp(words[1], "send");
	char **numbers = words + (sends ? 3 : 2); /* PORT STREAMS THREADS CHUNK */

	if (count != 7)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	address.sin_port = htons((uint16_t)atoi(numbers[0]));
	if (sends)
		inet_pton(AF_INET, words[2], &address.sin_addr);
	open_streams(sends, &address, atoi(numbers[1]));
	start(sends, atoi(numbers[1]), atoi(numbers[2]), strtoull(numbers[3], NULL, 10));
	if (!sends) {
		measure(atof(numbers[4]));
		return 0;
	}
	for (int t = 0; t < atoi(numbers[2]); t++)
		pthread_join(threads[t], NULL);
	return 0;
}
