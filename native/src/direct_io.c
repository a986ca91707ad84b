/* SPDX-License-Identifier: MIT */
#include "ends.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { SECTOR = 512 };

struct alignment {
	uint64_t block;	 /* of offsets and lengths */
	uint64_t memory; /* of the buffer */
};

/* What the file asks for (statx(2), STATX_DIOALIGN); where nothing says so, a disk's sector. Blocks
 * of 0: it has no direct I/O. */
static struct alignment alignment_of(int fd)
{
	struct alignment sector = { SECTOR, SECTOR };
	struct stat status;
	int bytes;

	struct statx file;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &file) && file.stx_mask & STATX_DIOALIGN)
		return (struct alignment){ file.stx_dio_offset_align, file.stx_dio_mem_align };
	if (!fstat(fd, &status) && S_ISBLK(status.st_mode) && !ioctl(fd, BLKSSZGET, &bytes))
		sector.block = sector.memory = (uint64_t)bytes;
	return sector;
}

static int check_job(const struct alignment *need, const char *path, const struct nb_job *job,
		     struct nb_error *error)
{
	if (job->chunk % need->block)
		return nb_fail(error, NB_ERR_REQUEST, "open file",
			       "write a chunk (of the receiver: receive_chunk) of whole blocks",
			       "direct I/O on %.120s is in blocks of %llu bytes, got calls of %llu",
			       path, (unsigned long long)need->block,
			       (unsigned long long)job->chunk);
	if (need->memory && job->align % need->memory)
		return nb_fail(error, NB_ERR_REQUEST, "open file", "write align: 0",
			       "direct I/O on %.120s needs a buffer at a multiple of %llu bytes, "
			       "got align %llu",
			       path, (unsigned long long)need->memory,
			       (unsigned long long)job->align);
	return 0;
}

int nb_direct_io_begin(int fd, const char *path, const struct nb_job *job, uint64_t *block,
		       struct nb_error *error)
{
	int flags = fcntl(fd, F_GETFL);
	struct alignment need = alignment_of(fd);

	if (!need.block || flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT))
		return nb_fail(
			error, NB_ERR_UNSUPPORTED, "open file",
			"use a file on a disk's file system, or direct: off",
			"%.150s has no direct I/O (O_DIRECT): its file system or device does "
			"not offer it",
			path);
	*block = need.block;
	return check_job(&need, path, job, error);
}

int nb_direct_io_end(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || !(flags & O_DIRECT) ? 0 : fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}
