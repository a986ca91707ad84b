/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over the handshake of the data port: pending connections that send any bytes, in any
 * pieces, and close at any time. The first byte is the number of connections, the second the size
 * of the pieces.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data_socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[NB_TOKEN_BYTES] = "0123456789abcde";

/* Add a pending connection; returns its far end. */
static int add_pending(struct nb_listener *listener)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return -1;
	listener->pending[listener->pending_count++] =
		(struct nb_pending){ .socket = ends[0], .deadline = UINT64_MAX };
	return ends[1];
}

/* Every invariant that the run relies on. */
static void read_all(struct nb_listener *listener, const struct nb_job *job)
{
	for (size_t i = listener->pending_count; i-- > 0;) {
		uint32_t stream = UINT32_MAX;
		int fd = nb_listener_read(listener, i, job, &stream);

		if (fd < 0)
			continue;
		if (stream >= job->streams || fcntl(fd, F_GETFL) & O_NONBLOCK)
			__builtin_trap();
		close(fd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nb_job job = { .streams = 3 };
	struct nb_listener listener = { .socket = -1 };
	int peers[8];
	size_t count, piece;

	if (size < 2)
		return 0;
	count = 1 + data[0] % 8;
	piece = 1 + data[1] % 40;
	memcpy(job.token, token, NB_TOKEN_BYTES);
	for (size_t i = 0; i < count; i++)
		peers[i] = add_pending(&listener);
	for (size_t at = 2, round = 0; at < size; at += piece, round++) {
		size_t length = size - at < piece ? size - at : piece;
		int peer = peers[round % count];

		if (peer >= 0 && send(peer, data + at, length, MSG_NOSIGNAL) < 0) {
			close(peer);
			peers[round % count] = -1;
		}
		read_all(&listener, &job);
	}
	for (size_t i = 0; i < count; i++)
		if (peers[i] >= 0)
			close(peers[i]);
	read_all(&listener, &job);
	nb_listener_close(&listener);
	return 0;
}
