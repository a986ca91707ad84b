/* SPDX-License-Identifier: MIT */
/* Receivers that read, throw away or splice until the end. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "loop.h"

int receive_read(struct work *work)
{
	char *memory = chunks_of_memory(work, 1);
	uint64_t chunks = 0, moved = 0;
	size_t chunk = work->chunk;
	int fd = work->socket;
	ssize_t got;

	if (!memory)
		return -1;
	for (; (got = read(fd, memory, chunk)) > 0; chunks++)
		moved += (uint64_t)got;
	return got < 0 ? -1 : count(work, chunks, moved, 0);
}

int receive_trunc(struct work *work)
{
	uint64_t chunks = 0, moved = 0;
	size_t chunk = work->chunk;
	int fd = work->socket;
	ssize_t got;

	for (; (got = recv(fd, NULL, chunk, MSG_TRUNC)) > 0; chunks++)
		moved += (uint64_t)got;
	return got < 0 ? -1 : count(work, chunks, moved, 0);
}

int receive_mmap(struct work *work)
{
	int fd = work->socket, file = work->file;
	size_t chunk = work->chunk;
	uint64_t chunks = 0, again = 0;
	off_t begin = 0;

	for (;; chunks++) {
		size_t filled = 0;
		ssize_t got;
		char *map;

		if (ftruncate(file, begin + (off_t)chunk))
			return -1;
		map = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_SHARED, file, begin);
		if (map == MAP_FAILED)
			return -1;
		while ((got = read(fd, map + filled, chunk - filled)) > 0) {
			filled += (size_t)got;
			if (filled == chunk)
				break;
			again++;
		}
		if (got < 0 || munmap(map, chunk))
			return -1;
		begin += (off_t)filled;
		if (!got)
			break;
	}
	if (ftruncate(file, begin))
		return -1;
	return count(work, chunks, (uint64_t)begin, again);
}

int receive_splice(struct work *work)
{
	int fd = work->socket, sink = open("/dev/null", O_WRONLY), ends[2];
	uint64_t chunks = 0, moved = 0, again = 0;
	size_t chunk = work->chunk;
	ssize_t got;

	if (sink < 0 || pipe_for(work, ends))
		return -1;
	for (; (got = splice(fd, NULL, ends[1], NULL, chunk, SPLICE_F_MOVE)) > 0; chunks++) {
		if (splice_all(ends[0], sink, (size_t)got, &again))
			return -1;
		moved += (uint64_t)got;
	}
	return got < 0 ? -1 : count(work, chunks, moved, again);
}
