/* SPDX-License-Identifier: MIT */
#include "digest.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "heartbeat.h"

enum { BLOCK = 64 * 1024 };

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
