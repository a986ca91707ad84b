/* SPDX-License-Identifier: MIT */
/* A request of a chunk, and a response of as many bytes: what netperf calls TCP_RR. */
#include <netinet/in.h>
#include <netinet/tcp.h>
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
