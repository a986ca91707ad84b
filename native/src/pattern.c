/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

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

/* Eight bytes are read at once: ThreadSanitizer looks at each access. */
uint64_t nb_digest(uint64_t digest, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	while (length) {
		uint64_t word = 0;
		size_t count = length < sizeof(word) ? length : sizeof(word);

		memcpy(&word, at, count);
		word = le64toh(word);
		for (size_t i = 0; i < count; i++, word >>= 8)
			digest = (digest ^ (word & 0xff)) * 0x100000001b3ULL;
		at += count;
		length -= count;
	}
	return digest;
}

int nb_digest_file(int fd, uint64_t begin, uint64_t length, uint64_t *digest)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = 0; offset < length;) {
		size_t want = length - offset < BLOCK ? (size_t)(length - offset) : BLOCK;
		ssize_t got;

		nb_heartbeat();
		got = pread(fd, block, want, (off_t)(begin + offset));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : ENODATA;
			return -1;
		}
		*digest = nb_digest(*digest, block, (size_t)got);
		offset += (uint64_t)got;
	}
	return 0;
}
