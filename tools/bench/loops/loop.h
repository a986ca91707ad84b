/* SPDX-License-Identifier: MIT */
/* The loops that one writes by hand, one a method of the engine: the same system calls, and nothing
 * to measure with but a count of chunks and bytes. */
#ifndef LOOP_H
#define LOOP_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

struct work {
	int socket;
	int file;     /* a sender's source, a receiver's sink */
	size_t begin; /* of the part of a source that a stream sends, again and again */
	size_t size;  /* of a source, or the end of its part */
	size_t bytes; /* to send */
	size_t chunk; /* in bytes */
	uint64_t chunks;
	uint64_t moved;
	uint64_t again;	    /* calls beyond those that each chunk needs: after short ones, waits */
	int port;	    /* of the other side */
	int listener;	    /* of a receiver */
	const int *sockets; /* of all streams, that of the first one's */
	int streams;
	_Atomic uint64_t told; /* chunks that went over other connections than its own */
};

/* Each returns 0, or -1 with errno. */
int send_write(struct work *work);
int send_readwrite(struct work *work);
int send_sendfile(struct work *work);
int send_splice(struct work *work);
int send_mmap(struct work *work);
int send_zerocopy(struct work *work);
int send_uring(struct work *work);
int send_request(struct work *work);
int receive_request(struct work *work);
int send_requests(struct work *work);
int receive_requests(struct work *work);
int send_connect(struct work *work);
int receive_connect(struct work *work);
int receive_read(struct work *work);
int receive_trunc(struct work *work);
int receive_mmap(struct work *work);
int receive_splice(struct work *work);
int receive_uring(struct work *work);

int pace(uint64_t rate, uint64_t ms);

/* So many chunks of memory, a page boundary each; a sender's hold the first of its file. NULL with
 * errno when there is none. */
char *chunks_of_memory(const struct work *work, size_t count);
size_t stride_of(const struct work *work);

/* A pipe that holds a chunk. 0, or -1. */
int pipe_for(const struct work *work, int ends[2]);

static inline size_t next_length(size_t total, size_t sent, size_t chunk)
{
	return total - sent < chunk ? total - sent : chunk;
}

static inline int count(struct work *work, uint64_t chunks, uint64_t moved, uint64_t again)
{
	work->chunks = chunks;
	work->moved = moved;
	work->again = again;
	return 0;
}

static inline int write_all(int fd, const char *from, size_t length, uint64_t *again)
{
	for (size_t done = 0;;) {
		ssize_t put = write(fd, from + done, length - done);

		if (put < 0)
			return -1;
		done += (size_t)put;
		if (done == length)
			return 0;
		++*again;
	}
}

static inline int splice_all(int pipe, int fd, size_t length, uint64_t *again)
{
	for (;;) {
		ssize_t put = splice(pipe, NULL, fd, NULL, length, SPLICE_F_MOVE);

		if (put <= 0)
			return -1;
		length -= (size_t)put;
		if (!length)
			return 0;
		++*again;
	}
}

#endif
