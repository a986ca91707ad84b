/* SPDX-License-Identifier: MIT */
/* The page cache of a source: mincore(2), posix_fadvise(2). */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire.h"

enum { BLOCK = 64 * 1024 };

/* cachestat(2), Linux 6.5: Debian 12's headers lack it. One number for all architectures. */
enum { NB_SYS_CACHESTAT = 451 };
struct nb_cachestat_range {
	uint64_t offset;
	uint64_t length; /* 0: to the end */
};
struct nb_cachestat {
	uint64_t cached; /* all in pages */
	uint64_t dirty;
	uint64_t writeback;
	uint64_t evicted;
	uint64_t recently_evicted;
};

/* Bytes of a range that are in the page cache, or NB_MISSING. */
static uint64_t resident_bytes(const struct nb_range *range)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = range->begin / page * page;
	size_t length = (size_t)(range->end - first), pages = (length + page - 1) / page;
	unsigned char *map = mmap(NULL, length, PROT_READ, MAP_SHARED, range->fd, (off_t)first);
	unsigned char *core = malloc(pages);
	uint64_t bytes = NB_MISSING;

	if (map != MAP_FAILED && core && !mincore(map, length, core)) {
		bytes = 0;
		for (uint64_t i = 0; i < pages; i++) {
			uint64_t begin = first + i * page, end = begin + page;

			if (core[i] & 1)
				bytes += (end < range->end ? end : range->end) -
					 (begin > range->begin ? begin : range->begin);
		}
	}
	if (map != MAP_FAILED)
		munmap(map, length);
	free(core);
	return bytes;
}

static int read_through(const struct nb_range *range)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = range->begin; offset < range->end;) {
		ssize_t got;

		nb_heartbeat();
		got = pread(range->fd, block, sizeof(block), (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -1 : 0;
		offset += (uint64_t)got;
	}
	return 0;
}

/* The first part of a file drops all of it: posix_fadvise(2) leaves pages that are in two parts. */
static void drop(const struct nb_range *range)
{
	if (range->begin)
		return;
	fdatasync(range->fd);
	posix_fadvise(range->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Bytes that are in memory need not be read; where cachestat(2) is missing, mincore(2) counts them,
 * and nothing says which of them are dirty. */
void nb_page_cache_look(int fd, struct nb_cached *cached)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct nb_cachestat_range all = { 0, 0 };
	struct nb_cachestat seen;
	struct stat status;

	*cached = (struct nb_cached){ NB_MISSING, NB_MISSING };
	if (!syscall(NB_SYS_CACHESTAT, fd, &all, &seen, 0)) {
		cached->resident = seen.cached * page;
		cached->dirty = (seen.dirty + seen.writeback) * page;
	} else if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
		const struct nb_range file = { fd, 0, (uint64_t)status.st_size };

		cached->resident = file.end ? resident_bytes(&file) : 0;
	}
}

void nb_page_cache_add(const struct nb_source *source, uint64_t *resident)
{
	for (uint32_t i = 0; i < source->count && *resident != NB_MISSING; i++) {
		uint64_t here = source->ranges[i].end == NB_MISSING
					? NB_MISSING
					: resident_bytes(&source->ranges[i]);

		*resident = here == NB_MISSING ? NB_MISSING : *resident + here;
	}
}

int nb_page_cache_prepare(const struct nb_source *source, const struct nb_job *job,
			  struct nb_residence *residence, struct nb_error *error)
{
	for (uint32_t i = 0; i < source->count; i++) {
		const struct nb_range *range = &source->ranges[i];
		uint64_t length = range->end - range->begin, here;

		if (range->end == NB_MISSING) {
			residence->resident = residence->size = NB_MISSING;
			return 0;
		}
		if (job->cache == NB_CACHE_COLD)
			drop(range);
		here = resident_bytes(range);
		if (job->cache == NB_CACHE_WARM && here != length && !source->block) {
			if (read_through(range))
				return nb_fail_errno(error, "warm cache",
						     "check the disk that holds the source",
						     "reading the source");
			here = resident_bytes(range);
		}
		residence->resident = here == NB_MISSING || residence->resident == NB_MISSING
					      ? NB_MISSING
					      : residence->resident + here;
		residence->size += length;
	}
	return 0;
}
