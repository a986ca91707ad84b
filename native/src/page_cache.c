/* SPDX-License-Identifier: MIT */
/* The page cache of a source: mincore(2), posix_fadvise(2). */
#include "page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heartbeat.h"

enum { BLOCK = 64 * 1024 };

static uint64_t resident_bytes(int fd, uint64_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)((size + page - 1) / page),
	       found = 0;
	unsigned char *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char *core = malloc(pages);

	if (map == MAP_FAILED || !core || mincore(map, (size_t)size, core)) {
		found = SIZE_MAX;
	} else {
		for (size_t i = 0; i < pages; i++)
			found += core[i] & 1;
	}
	if (map != MAP_FAILED)
		munmap(map, (size_t)size);
	free(core);
	if (found == SIZE_MAX)
		return NB_MISSING;
	return found == pages ? size : (uint64_t)found * page;
}

static int read_through(int fd, uint64_t size)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = 0; offset < size;) {
		ssize_t got;

		nb_heartbeat();
		got = pread(fd, block, sizeof(block), (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -1 : 0;
		offset += (uint64_t)got;
	}
	return 0;
}

int nb_page_cache_prepare(const struct nb_source *source, const struct nb_job *job,
			  uint64_t *resident, uint64_t *size, struct nb_error *error)
{
	*resident = *size = 0;
	for (uint32_t i = 0; i < source->count; i++) {
		uint64_t here, length = source->sizes[i];

		if (length == NB_MISSING) {
			*resident = *size = NB_MISSING;
			return 0;
		}
		if (job->cache == NB_CACHE_COLD) {
			fdatasync(source->fds[i]);
			posix_fadvise(source->fds[i], 0, 0, POSIX_FADV_DONTNEED);
		}
		here = resident_bytes(source->fds[i], length);
		if (job->cache == NB_CACHE_WARM && here != length) {
			if (read_through(source->fds[i], length))
				return nb_fail_errno(error, "warm cache",
						     "check the disk that holds the source",
						     "reading the source");
			here = resident_bytes(source->fds[i], length);
		}
		if (here == NB_MISSING || *resident == NB_MISSING)
			*resident = NB_MISSING;
		else
			*resident += here;
		*size += length;
	}
	return 0;
}
