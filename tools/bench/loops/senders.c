/* SPDX-License-Identifier: MIT */
/* Senders. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>

#include "loop.h"

enum { BATCH = 16 };

int send_write(struct work *work)
{
	const char *memory = chunks_of_memory(work, 1);
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	uint64_t chunks = 0, again = 0;
	int fd = work->socket;

	if (!memory)
		return -1;
	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);

		if (write_all(fd, memory, length, &again))
			return -1;
		sent += length;
	}
	return count(work, chunks, sent, again);
}

int send_readwrite(struct work *work)
{
	char *memory = chunks_of_memory(work, 1);
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	int fd = work->socket, file = work->file;
	uint64_t chunks = 0, again = 0;

	if (!memory)
		return -1;
	for (; sent < total; chunks++) {
		ssize_t got = read(file, memory, next_length(total, sent, chunk));

		if (got < 0 || (!got && lseek(file, 0, SEEK_SET)))
			return -1;
		if (got && write_all(fd, memory, (size_t)got, &again))
			return -1;
		sent += (size_t)got;
	}
	return count(work, chunks, sent, again);
}

int send_sendfile(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	int fd = work->socket, file = work->file;
	uint64_t chunks = 0, again = 0;
	off_t offset = (off_t)work->begin, end = (off_t)work->size;

	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);
		ssize_t put = sendfile(fd, file, &offset, length);

		if (put <= 0)
			return -1;
		again += (size_t)put < length;
		sent += (size_t)put;
		if (offset == end)
			offset = (off_t)work->begin;
	}
	return count(work, chunks, sent, again);
}

int send_splice(struct work *work)
{
	int fd = work->socket, file = work->file, ends[2];
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	uint64_t chunks = 0, again = 0;
	off_t offset = 0, end = (off_t)work->size;

	if (pipe_for(work, ends))
		return -1;
	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);
		ssize_t got = splice(file, &offset, ends[1], NULL, length, SPLICE_F_MOVE);

		if (got <= 0 || splice_all(ends[0], fd, (size_t)got, &again))
			return -1;
		sent += (size_t)got;
		if (offset == end)
			offset = 0;
	}
	return count(work, chunks, sent, again);
}

int send_mmap(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	int fd = work->socket, file = work->file;
	uint64_t chunks = 0, again = 0;
	off_t offset = 0, end = (off_t)work->size;

	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);
		char *map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, offset);

		if (map == MAP_FAILED || write_all(fd, map, length, &again) || munmap(map, length))
			return -1;
		sent += length;
		offset += (off_t)length;
		if (offset == end)
			offset = 0;
	}
	return count(work, chunks, sent, again);
}

/* One notice of the error queue: how many sends it completes, 0 if there is none, or -1. */
static int64_t take_notice(int fd)
{
	char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in))];
	struct msghdr message = { .msg_control = room, .msg_controllen = sizeof(room) };
	struct sock_extended_err *notice;
	struct cmsghdr *first;

	if (recvmsg(fd, &message, MSG_ERRQUEUE) < 0)
		return errno == EAGAIN ? 0 : -1;
	first = CMSG_FIRSTHDR(&message);
	if (!first || first->cmsg_level != IPPROTO_IP || first->cmsg_type != IP_RECVERR)
		return -1;
	notice = (struct sock_extended_err *)(void *)CMSG_DATA(first);
	if (notice->ee_errno || notice->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
		return -1;
	return (int64_t)(notice->ee_data - notice->ee_info) + 1;
}

/* All notices that are there; *owed: sends without one. */
static int take_notices(int fd, uint64_t *owed)
{
	while (*owed) {
		int64_t completed = take_notice(fd);

		if (completed <= 0)
			return (int)completed;
		*owed -= (uint64_t)completed;
	}
	return 0;
}

static int await_notices(int fd, uint64_t *owed, uint64_t *again)
{
	struct pollfd look = { .fd = fd };

	++*again;
	return poll(&look, 1, 100) < 0 ? -1 : take_notices(fd, owed);
}

int send_zerocopy(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes, sent = 0, done = 0;
	const char *memory = chunks_of_memory(work, 1);
	uint64_t chunks = 0, again = 0, owed = 0;
	int fd = work->socket, one = 1;
	unsigned int unseen = 0;

	if (!memory || setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		return -1;
	while (sent < total) {
		size_t length = next_length(total, sent, chunk - done);
		ssize_t put = send(fd, memory + done, length, MSG_ZEROCOPY | MSG_NOSIGNAL);

		if (put < 0 && (errno != ENOBUFS || await_notices(fd, &owed, &again)))
			return -1;
		if (put < 0)
			continue;
		owed++;
		sent += (size_t)put;
		if ((size_t)put < length) {
			done += (size_t)put;
			again++;
		} else {
			done = 0;
			chunks++;
		}
		if (++unseen < BATCH)
			continue;
		unseen = 0;
		if (take_notices(fd, &owed))
			return -1;
	}
	while (owed)
		if (await_notices(fd, &owed, &again))
			return -1;
	return count(work, chunks, sent, again);
}
