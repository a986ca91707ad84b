/* SPDX-License-Identifier: MIT */
/* A request of a chunk, and a response of as many bytes: what netperf calls TCP_RR; over several
 * connections of one thread; over a connection each, which netperf calls TCP_CRR.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "loop.h"

static int read_all(int fd, char *memory, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t got = recv(fd, memory + done, length - done, 0);

		if (got <= 0)
			return got ? -1 : 1;
		done += (size_t)got;
	}
	return 0;
}

int send_request(struct work *work)
{
	char *memory = chunks_of_memory(work, 1);
	uint64_t chunks = 0, again = 0;
	int one = 1;

	setsockopt(work->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (; memory && chunks * work->chunk < work->bytes; chunks++)
		if (write_all(work->socket, memory, work->chunk, &again) ||
		    read_all(work->socket, memory, work->chunk))
			return -1;
	return memory ? count(work, chunks, chunks * work->chunk, again) : -1;
}

int receive_request(struct work *work)
{
	char *memory = chunks_of_memory(work, 1);
	uint64_t chunks = 0, again = 0;
	int one = 1, ended = 0;

	setsockopt(work->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (memory && !(ended = read_all(work->socket, memory, work->chunk))) {
		if (write_all(work->socket, memory, work->chunk, &again))
			return -1;
		chunks++;
	}
	return memory && ended > 0 ? count(work, chunks, chunks * work->chunk, again) : -1;
}

/* A small chunk comes as it was sent. A sender writes first. */
static int answer_ready(struct work *work, int first)
{
	char *memory = chunks_of_memory(work, 1);
	struct epoll_event ready[64], event = { .events = EPOLLIN };
	int set = epoll_create1(0), one = 1;
	uint64_t again = 0;

	for (int i = 0; memory && i < work->streams; i++) {
		event.data.fd = work->sockets[i];
		setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event) ||
		    (first && write_all(event.data.fd, memory, work->chunk, &again)))
			return -1;
	}
	for (int count; memory && (count = epoll_wait(set, ready, 64, -1)) > 0;)
		for (int i = 0; i < count; i++)
			if (read_all(ready[i].data.fd, memory, work->chunk) ||
			    write_all(ready[i].data.fd, memory, work->chunk, &again))
				return -1;
	return -1;
}

int send_requests(struct work *work)
{
	return answer_ready(work, 1);
}

int receive_requests(struct work *work)
{
	return answer_ready(work, 0);
}

/* One over a connection that the receiver closes first. */
static int transact(struct work *work, int fd, char *memory, int sends)
{
	uint64_t again = 0;
	int one = 1, failed;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	failed = sends ? write_all(fd, memory, work->chunk, &again) ||
				 read_all(fd, memory, work->chunk) || recv(fd, memory, 1, 0)
		       : read_all(fd, memory, work->chunk) ||
				 write_all(fd, memory, work->chunk, &again);
	close(fd);
	work->told++;
	return failed;
}

int send_connect(struct work *work)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)work->port) };
	char *memory = chunks_of_memory(work, 1);
	int fd;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	do {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
		if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
			return -1;
	} while (memory && !transact(work, fd, memory, 1));
	return -1;
}

int receive_connect(struct work *work)
{
	char *memory = chunks_of_memory(work, 1);
	int fd;

	do
		fd = accept(work->listener, NULL, NULL);
	while (memory && fd >= 0 && !transact(work, fd, memory, 0));
	return -1;
}
