/* SPDX-License-Identifier: MIT */
/* The bytes of a transfer: a pattern that differs at every offset and from page to page, and a
 * digest of what was sent or arrived. */
#ifndef NB_PATTERN_H
#define NB_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits. Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/ */
#define NB_DIGEST_START 0xcbf29ce484222325ULL

/* Continue a digest over more bytes. */
uint64_t nb_digest(uint64_t digest, const void *bytes, size_t length);
/* Continue it over `length` bytes of a file from `begin` on. 0, or -1 with errno; ENODATA: it is
 * shorter. */
int nb_digest_file(int fd, uint64_t begin, uint64_t length, uint64_t *digest);

/* Fill memory with the pattern from `offset` on. */
void nb_pattern(unsigned char *bytes, size_t length, uint64_t offset);
/* Fill a file with it. 0, or -1 with errno. */
int nb_pattern_file(int fd, uint64_t size, uint64_t offset);

#endif
