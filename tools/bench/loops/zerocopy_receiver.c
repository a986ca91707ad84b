/* SPDX-License-Identifier: MIT */
/* TCP_ZEROCOPY_RECEIVE: pages of packets are mapped, and what cannot be mapped is read. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "loop.h"

/* Until there is data. Whether none is left to map: read(2) tells. */
static int await_data(int fd, uint64_t *again)
{
	struct pollfd data = { .fd = fd, .events = POLLIN | POLLRDHUP };

	++*again;
	return poll(&data, 1, -1) < 0 || (data.revents & ~POLLIN);
}

int receive_zerocopy(struct work *work)
{
	size_t chunk = work->chunk;
	uint64_t chunks = 0, moved = 0, again = 0;
	char *memory = chunks_of_memory(work, 1);
	int fd = work->socket;
	void *map = mmap(NULL, chunk, PROT_READ, MAP_SHARED, fd, 0);
	ssize_t got = 1;

	if (!memory || map == MAP_FAILED)
		return -1;
	while (got > 0) {
		struct tcp_zerocopy_receive wish = { .address = (uint64_t)(uintptr_t)map,
						     .length = (uint32_t)chunk };
		socklen_t length = offsetof(struct tcp_zerocopy_receive, copybuf_address);
		int status = getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &wish, &length);
		size_t rest = wish.recv_skip_hint;

		if ((status && errno != EIO) || wish.err)
			return -1;
		if (status) { /* the end, which read(2) confirms */
			wish.length = 0;
			rest = chunk;
		}
		if (!wish.length && !rest) {
			if (!await_data(fd, &again))
				continue;
			rest = chunk;
		}
		if (rest > chunk - wish.length)
			rest = chunk - wish.length;
		got = rest ? read(fd, memory, rest) : (ssize_t)wish.length;
		if (got < 0)
			return -1;
		moved += wish.length + (rest ? (uint64_t)got : 0);
		chunks += wish.length || got;
	}
	return count(work, chunks, moved, again);
}
