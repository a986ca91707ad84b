/* SPDX-License-Identifier: MIT */
/* Senders whose pages the connection has until the other side has acknowledged them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>

#include "loop.h"

enum { SLOTS = 16, BATCH = 16 };

/* A ring of chunks of memory, and what of them has left the connection. */
struct memory_ring {
	uint64_t sent;
	uint64_t left;
	uint64_t ends[SLOTS]; /* `sent` after each was sent last */
};

/* Until the connection no longer has what was sent up to `end`. */
static int await_left(int fd, struct memory_ring *ring, uint64_t end, uint64_t *again)
{
	struct pollfd look = { .fd = fd };
	struct timespec nap = { .tv_nsec = 50000 };
	int queued;

	for (;;) {
		if (ioctl(fd, SIOCOUTQ, &queued))
			return -1;
		ring->left = ring->sent - (uint64_t)queued;
		if (ring->left >= end)
			return 0;
		++*again;
		if (ppoll(&look, 1, &nap, NULL) > 0)
			return -1;
	}
}

static int send_pages(struct work *work, unsigned int flags)
{
	size_t chunk = work->chunk, total = work->bytes, slot = 0, stride = stride_of(work);
	char *memory = chunks_of_memory(work, SLOTS);
	uint64_t chunks = 0, again = 0;
	struct memory_ring ring = { 0 };
	int fd = work->socket, ends[2];

	if (!memory || pipe_for(work, ends))
		return -1;
	for (; ring.sent < total; chunks++) {
		struct iovec part = { memory + slot * stride,
				      next_length(total, ring.sent, chunk) };

		if (ring.left < ring.ends[slot] && await_left(fd, &ring, ring.ends[slot], &again))
			return -1;
		if (vmsplice(ends[1], &part, 1, flags) != (ssize_t)part.iov_len ||
		    splice_all(ends[0], fd, part.iov_len, &again))
			return -1;
		ring.ends[slot] = ring.sent += part.iov_len;
		slot = slot + 1 == SLOTS ? 0 : slot + 1;
	}
	return count(work, chunks, ring.sent, again);
}

int send_vmsplice(struct work *work)
{
	return send_pages(work, 0);
}

int send_vmsplice_gift(struct work *work)
{
	return send_pages(work, SPLICE_F_GIFT);
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
