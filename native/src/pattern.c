/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "heartbeat.h"

enum { BLOCK = 64 * 1024 };

/* splitmix64 of a word's position; source: Steele, Lea, Flood, OOPSLA 2014 */
static uint64_t mix(uint64_t position)
{
	uint64_t mixed = (position + 1) * 0x9e3779b97f4a7c15ULL;

	return (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
}

/* Some bytes of one word, from the one at `at` on. Returns how many. */
static size_t put_part(unsigned char *bytes, size_t length, uint64_t at)
{
	size_t begin = at % 8, count = 8 - begin < length ? 8 - begin : length;
	uint64_t word = htole64(mix(at / 8));

	memcpy(bytes, (unsigned char *)&word + begin, count);
	return count;
}

void nb_pattern(unsigned char *bytes, size_t length, uint64_t offset)
{
	size_t done = offset % 8 && length ? put_part(bytes, length, offset) : 0;

	for (; length - done >= 8; done += 8) {
		uint64_t word = htole64(mix((offset + done) / 8));

		memcpy(bytes + done, &word, sizeof(word));
	}
	if (done < length)
		put_part(bytes + done, length - done, offset + done);
}

int nb_pattern_file(int fd, uint64_t size, uint64_t start)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = 0; offset < size;) {
		size_t length = size - offset < BLOCK ? (size_t)(size - offset) : BLOCK;
		ssize_t written;

		nb_heartbeat();
		nb_pattern(block, length, start + offset);
		written = pwrite(fd, block, length, (off_t)offset);
		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0)
			offset += (uint64_t)written;
	}
	return 0;
}
