/* SPDX-License-Identifier: MIT */
/* Bytes to send: a pattern that differs at every offset and from page to page. */
#ifndef NB_PATTERN_H
#define NB_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Fill memory with the pattern from `offset` on. */
void nb_pattern(unsigned char *bytes, size_t length, uint64_t offset);
/* Fill a file with it. 0, or -1 with errno. */
int nb_pattern_file(int fd, uint64_t size, uint64_t offset);

#endif
