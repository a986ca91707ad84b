/* SPDX-License-Identifier: MIT */
/* FNV-1a, 64 bits. Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/ */
#ifndef NB_DIGEST_H
#define NB_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define NB_DIGEST_START 0xcbf29ce484222325ULL

/* Continue a digest over more bytes. */
uint64_t nb_digest(uint64_t digest, const void *bytes, size_t length);
/* Continue it over `length` bytes of a file from `begin` on. 0, or -1 with errno; ENODATA: it is
 * shorter. */
int nb_digest_file(int fd, uint64_t begin, uint64_t length, uint64_t *digest);

#endif
