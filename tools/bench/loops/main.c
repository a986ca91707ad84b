/* SPDX-License-Identifier: MIT */
/*
 * The peers of instructions.py and methods.py: a loop written by hand for each method that has
 * peers elsewhere.
 *
 *	loops METHOD PORT BYTES CHUNK FILE
 *	loops METHOD PORT BYTES CHUNK FILE STREAMS WARMUP_MS WINDOW_MS
 *
 * Connects to 127.0.0.1:PORT and sends BYTES of FILE, or its first chunk over and over, or receives
 * until the end (BYTES is 0), in a method that has a sink into FILE. It does so in a thread: libc's
 * wrappers take a longer way in a process that has threads, as the engine has. Prints chunks,
 * bytes, and calls beyond those that each chunk needs.
 *
 * With STREAMS each has a thread, of `requests` all of them one; a receiver listens instead, and
 *prints its port. After the warm-up both print what moved in a window: bytes (tcpi_bytes_received,
 *without those that are not read yet, or tcpi_bytes_acked), ns, and us of CPU.
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "loop.h"

enum { STREAMS_MAX = 64 };

static const struct {
	const char *name;
	int (*loop)(struct work *work);
} loops[] = {
	{ "send_write", send_write },	      { "send_readwrite", send_readwrite },
	{ "send_sendfile", send_sendfile },   { "send_splice", send_splice },
	{ "send_mmap", send_mmap },	      { "send_zerocopy", send_zerocopy },
	{ "send_uring", send_uring },	      { "receive_read", receive_read },
	{ "receive_trunc", receive_trunc },   { "receive_mmap", receive_mmap },
	{ "send_request", send_request },     { "receive_request", receive_request },
	{ "send_requests", send_requests },   { "receive_requests", receive_requests },
	{ "send_connect", send_connect },     { "receive_connect", receive_connect },
	{ "receive_splice", receive_splice }, { "receive_uring", receive_uring },
};

struct job {
	int (*loop)(struct work *work);
	struct work work;
	int failed;
	pthread_t thread;
};

/* What had moved, and what it had cost, at a time. */
struct moment {
	uint64_t bytes;
	uint64_t ns;
	uint64_t cpu_us;
};

static pthread_barrier_t *gate; /* streams begin together */

/* With a table of descriptors of its own: where threads share one, each call counts references. */
static void *run(void *argument)
{
	struct job *job = argument;

	unshare(CLONE_FILES);
	if (gate)
		pthread_barrier_wait(gate);
	job->failed = job->loop(&job->work);
	return NULL;
}

static int connect_to(int port)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
	return fd >= 0 && !connect(fd, (struct sockaddr *)&peer, sizeof(peer)) ? fd : -1;
}

static int listener(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	socklen_t length = sizeof(own);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) || listen(fd, STREAMS_MAX) ||
	    getsockname(fd, (struct sockaddr *)&own, &length))
		return -1;
	printf("%d\n", ntohs(own.sin_port));
	fflush(stdout);
	return fd;
}

static int prepare(struct job *job, char **argv, int listening)
{
	struct stat status;

	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
		if (!strcmp(argv[1], loops[i].name))
			job->loop = loops[i].loop;
	job->work.bytes = strtoull(argv[3], NULL, 10);
	job->work.chunk = strtoull(argv[4], NULL, 10);
	job->work.file = open(argv[5], job->work.bytes ? O_RDONLY : O_RDWR | O_CREAT, 0600);
	if (!job->loop || job->work.file < 0 || fstat(job->work.file, &status))
		return -1;
	job->work.size = (size_t)status.st_size;
	job->work.port = atoi(argv[2]);
	job->work.listener = listening;
	job->work.socket =
		listening < 0 ? connect_to(atoi(argv[2])) : accept(listening, NULL, NULL);
	return job->work.socket >= 0 ? 0 : -1;
}

/* Sums over streams, of times too: a thread that has its CPU with others may be long about it. */
static struct moment look(const struct job *jobs, int streams)
{
	struct moment found = { 0 };

	for (int i = 0; i < streams; i++) {
		struct timespec now, cpu;
		struct tcp_info info = { 0 };
		socklen_t length = sizeof(info);
		int unread = 0;

		getsockopt(jobs[i].work.socket, IPPROTO_TCP, TCP_INFO, &info, &length);
		ioctl(jobs[i].work.socket, SIOCINQ, &unread);
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
		found.bytes += jobs[i].work.bytes ? info.tcpi_bytes_acked
						  : info.tcpi_bytes_received - (uint64_t)unread;
		found.bytes += jobs[i].work.told * jobs[i].work.chunk;
		found.ns += (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		found.cpu_us += (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000;
	}
	return found;
}

static void pause_ms(const char *word)
{
	long ms = atol(word);

	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Leaves the process: the loops have no end. */
static int window(struct job *jobs, char **argv)
{
	int streams = atoi(argv[6]), listening = strncmp(argv[1], "send_", 5) ? listener() : -1;
	int one = strstr(argv[1], "_requests") != NULL, threads = one ? 1 : streams;
	static int sockets[STREAMS_MAX];
	struct moment opened, closed;
	pthread_barrier_t barrier;

	gate = &barrier;
	pthread_barrier_init(gate, NULL, (unsigned int)threads + 1);
	for (int i = 0; i < streams; i++) {
		struct work *work = &jobs[i].work;

		if (prepare(&jobs[i], argv, listening))
			return 1;
		sockets[i] = work->socket;
		work->begin = (size_t)i * (work->size / (size_t)streams);
		work->size = work->begin + work->size / (size_t)streams;
	}
	jobs->work.sockets = sockets;
	jobs->work.streams = streams;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]))
			return 1;
	pthread_barrier_wait(gate);
	pause_ms(argv[7]);
	opened = look(jobs, streams);
	pause_ms(argv[8]);
	closed = look(jobs, streams);
	for (int i = 0; i < streams; i++)
		if (jobs[i].failed)
			return 1;
	printf("%llu %llu %llu\n", (unsigned long long)(closed.bytes - opened.bytes),
	       (unsigned long long)(closed.ns - opened.ns) / (unsigned int)streams,
	       (unsigned long long)(closed.cpu_us - opened.cpu_us) / (unsigned int)streams);
	fflush(stdout);
	getchar(); /* the other side has closed its window, too */
	_exit(0);
}

int main(int argc, char **argv)
{
	static struct job jobs[STREAMS_MAX];
	struct job *job = jobs;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 9 && atoi(argv[6]) <= STREAMS_MAX)
		return window(jobs, argv);
	if (argc == 4 && !strcmp(argv[1], "pace"))
		return pace(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	if (argc != 6)
		return 2;
	if (prepare(job, argv, -1)) {
		perror("loops: cannot start");
		return 1;
	}
	if (pthread_create(&job->thread, NULL, run, job) || pthread_join(job->thread, NULL))
		return 1;
	if (job->failed) {
		perror("loops: a call failed");
		return 1;
	}
	printf("%llu %llu %llu\n", (unsigned long long)job->work.chunks,
	       (unsigned long long)job->work.moved, (unsigned long long)job->work.again);
	return 0;
}
