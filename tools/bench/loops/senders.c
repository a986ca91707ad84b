/* SPDX-License-Identifier: MIT */
/* Senders whose calls copy, or pass pages on by themselves. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include "loop.h"

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

		if (got <= 0 || write_all(fd, memory, (size_t)got, &again))
			return -1;
		sent += (size_t)got;
	}
	return count(work, chunks, sent, again);
}

int send_sendfile(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes;
	int fd = work->socket, file = work->file;
	uint64_t chunks = 0, again = 0;
	off_t offset = 0;

	for (; (size_t)offset < total; chunks++) {
		size_t length = next_length(total, (size_t)offset, chunk);
		ssize_t put = sendfile(fd, file, &offset, length);

		if (put <= 0)
			return -1;
		again += (size_t)put < length;
	}
	return count(work, chunks, (uint64_t)offset, again);
}

int send_splice(struct work *work)
{
	int fd = work->socket, file = work->file, ends[2];
	size_t chunk = work->chunk, total = work->bytes;
	uint64_t chunks = 0, again = 0;
	off_t offset = 0;

	if (pipe_for(work, ends))
		return -1;
	for (; (size_t)offset < total; chunks++) {
		size_t length = next_length(total, (size_t)offset, chunk);
		ssize_t got = splice(file, &offset, ends[1], NULL, length, SPLICE_F_MOVE);

		if (got <= 0 || splice_all(ends[0], fd, (size_t)got, &again))
			return -1;
	}
	return count(work, chunks, (uint64_t)offset, again);
}

int send_mmap(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	int fd = work->socket, file = work->file;
	uint64_t chunks = 0, again = 0;

	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);
		char *map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, (off_t)sent);

		if (map == MAP_FAILED || write_all(fd, map, length, &again) || munmap(map, length))
			return -1;
		sent += length;
	}
	return count(work, chunks, sent, again);
}

int send_mmap_whole(struct work *work)
{
	size_t chunk = work->chunk, total = work->bytes, sent = 0;
	const char *map = mmap(NULL, total, PROT_READ, MAP_SHARED, work->file, 0);
	uint64_t chunks = 0, again = 0;
	int fd = work->socket;

	if (map == MAP_FAILED)
		return -1;
	for (; sent < total; chunks++) {
		size_t length = next_length(total, sent, chunk);

		if (write_all(fd, map + sent, length, &again))
			return -1;
		sent += length;
	}
	return count(work, chunks, sent, again);
}
