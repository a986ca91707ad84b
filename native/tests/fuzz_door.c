/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over the handshake of the data port: guests who say anything, in any pieces, and leave
 * at any time. The first byte says how many guests there are, the second how their words are cut.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[NB_TOKEN_BYTES] = "0123456789abcde";

/* A guest at the door; returns the end that it speaks from. */
static int invite(struct nb_door *door)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return -1;
	door->guests[door->guests_count++] =
		(struct nb_guest){ .socket = ends[0], .deadline = UINT64_MAX };
	return ends[1];
}

/* Every invariant that the run relies on. */
static void listen_to(struct nb_door *door, const struct nb_job *job)
{
	for (size_t i = door->guests_count; i-- > 0;) {
		uint32_t stream = UINT32_MAX;
		int fd = nb_door_hear(door, i, job, &stream);

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
	struct nb_door door = { .socket = -1 };
	int speakers[8];
	size_t guests, piece;

	if (size < 2)
		return 0;
	guests = 1 + data[0] % 8;
	piece = 1 + data[1] % 40;
	memcpy(job.token, token, NB_TOKEN_BYTES);
	for (size_t i = 0; i < guests; i++)
		speakers[i] = invite(&door);
	for (size_t at = 2, turn = 0; at < size; at += piece, turn++) {
		size_t length = size - at < piece ? size - at : piece;
		int speaker = speakers[turn % guests];

		if (speaker >= 0 && send(speaker, data + at, length, MSG_NOSIGNAL) < 0) {
			close(speaker);
			speakers[turn % guests] = -1;
		}
		listen_to(&door, &job);
	}
	for (size_t i = 0; i < guests; i++)
		if (speakers[i] >= 0)
			close(speakers[i]);
	listen_to(&door, &job);
	nb_door_close(&door);
	return 0;
}
