/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <errno.h>
#include <unistd.h>

#include "heartbeat.h"

enum { BLOCK = 64 * 1024 };

void nb_pattern(unsigned char *bytes, size_t length, uint64_t offset)
{
	/* splitmix64 of the word's position; source: Steele, Lea, Flood, OOPSLA 2014 */
	for (size_t i = 0; i < length; i++) {
		uint64_t mixed = ((offset + i) / 8 + 1) * 0x9e3779b97f4a7c15ULL;

		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
		bytes[i] = (unsigned char)(mixed >> (8 * ((offset + i) % 8)));
	}
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
