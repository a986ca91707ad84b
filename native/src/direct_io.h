/* SPDX-License-Identifier: MIT */
/*
 * Direct I/O: files that are read and written past the page cache (O_DIRECT of open(2)). Offsets
 * and lengths are whole blocks then, and the buffer in memory is aligned.
 */
#ifndef NB_DIRECT_IO_H
#define NB_DIRECT_IO_H

#include <stdint.h>

#include "fail.h"
#include "job.h"

/* Make an open file direct; *block: what offsets and lengths are multiples of. Where the file
 * system has no direct I/O, or the job's chunk and align do not fit it: a negative code. */
int nb_direct_io_begin(int fd, const char *path, const struct nb_job *job, uint64_t *block,
		       struct nb_error *error);
/* Back to the page cache. 0, or -1 with errno. */
int nb_direct_io_end(int fd);

static inline size_t nb_whole_blocks(size_t length, uint64_t block)
{
	return (length + (size_t)block - 1) / (size_t)block * (size_t)block;
}

#endif
