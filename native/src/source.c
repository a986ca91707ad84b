/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "pattern.h"
#include "scratch_files.h"

enum { MEMORY_CHUNK = 64 * 1024, MEMORY_FILE = 1024 * 1024 };

static int room_for(struct nb_source *source, uint64_t count, struct nb_error *error)
{
	source->fds = calloc(count, sizeof(*source->fds));
	source->sizes = calloc(count, sizeof(*source->sizes));
	if (source->fds && source->sizes)
		return 0;
	return nb_fail(error, NB_ERR_MEMORY, "open source", "use fewer files",
		       "no memory for %llu files", (unsigned long long)count);
}

static int open_files(struct nb_source *source, const struct nb_job *job, struct nb_error *error)
{
	const char *directory = job->source_path[0] ? job->source_path : "/tmp";
	int status;

	if (!job->source_files || !job->source_size)
		return nb_fail(error, NB_ERR_REQUEST, "open source",
			       "write {files: 60, size: 300K}", "no files or no size");
	status = nb_scratch_files_make(job, directory, error);
	if (!status)
		status = room_for(source, job->source_files, error);
	if (status)
		return status;
	source->rewinds = 1;
	for (; source->count < job->source_files; source->count++) {
		int fd = nb_scratch_file_open(source->count);

		if (fd < 0)
			return nb_fail_errno(error, "open source",
					     "raise the limit on open files (ulimit -n)",
					     "file %u of %llu", source->count,
					     (unsigned long long)job->source_files);
		source->fds[source->count] = fd;
		source->sizes[source->count] = job->source_size;
	}
	source->largest = job->source_size;
	return 0;
}

static int memory_file(const struct nb_job *job, uint64_t *size, struct nb_error *error)
{
	uint64_t chunk = job->chunk ? job->chunk : MEMORY_CHUNK;
	int fd = memfd_create("netbench", MFD_CLOEXEC);

	/* Whole chunks, so that no call is cut short where the file wraps. */
	*size = (MEMORY_FILE + chunk - 1) / chunk * chunk;
	if (fd < 0 || nb_pattern_file(fd, *size, 0)) {
		int status =
			nb_fail_errno(error, "open source", "use a smaller chunk",
				      "a file of %llu bytes in memory", (unsigned long long)*size);
		if (fd >= 0)
			close(fd);
		return status;
	}
	return fd;
}

static int named_file(const struct nb_job *job, uint64_t *size, struct nb_error *error)
{
	int fd = open(job->source_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	off_t end;

	if (fd < 0)
		return nb_fail_errno(error, "open source",
				     "name a file that exists and can be read on the sender", "%s",
				     job->source_path);
	end = fstat(fd, &status)	? -1
	      : S_ISBLK(status.st_mode) ? lseek(fd, 0, SEEK_END)
					: status.st_size;
	if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) {
		if (S_ISBLK(status.st_mode))
			lseek(fd, 0, SEEK_SET);
		*size = (uint64_t)end;
		if (end > 0)
			return fd;
		close(fd);
		return nb_fail(error, NB_ERR_REQUEST, "open source", "name a file that holds data",
			       "%s is empty", job->source_path);
	}
	close(fd);
	return nb_fail(error, NB_ERR_REQUEST, "open source", "name a file or a block device",
		       "%s is neither a file nor a block device", job->source_path);
}

static int open_one(struct nb_source *source, const struct nb_job *job, struct nb_error *error)
{
	uint64_t size = NB_MISSING;
	int fd, status = room_for(source, 1, error);

	if (status)
		return status;
	if (job->source == NB_SOURCE_MEMORY) {
		fd = memory_file(job, &size, error);
	} else if (job->source == NB_SOURCE_FILE) {
		fd = named_file(job, &size, error);
	} else {
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return nb_fail_errno(error, "open source",
					     "create it again (mknod -m 666 /dev/zero c 1 5)",
					     "/dev/zero");
	}
	if (fd < 0)
		return fd;
	source->fds[0] = fd;
	source->sizes[0] = size;
	source->count = 1;
	source->largest = size;
	source->rewinds = size != NB_MISSING;
	return 0;
}

int nb_source_open(struct nb_source *source, const struct nb_job *job, struct nb_error *error)
{
	return job->source == NB_SOURCE_FILES ? open_files(source, job, error)
					      : open_one(source, job, error);
}

void nb_source_close(struct nb_source *source)
{
	for (uint32_t i = 0; i < source->count; i++)
		close(source->fds[i]);
	free(source->fds);
	free(source->sizes);
	memset(source, 0, sizeof(*source));
}

int nb_source_digest(const struct nb_source *source, uint64_t length, uint64_t *digest,
		     struct nb_error *error)
{
	for (uint32_t at = 0; length; at = at + 1 == source->count ? 0 : at + 1) {
		uint64_t here = source->sizes[at] < length ? source->sizes[at] : length;

		if (nb_digest_file(source->fds[at], here, digest))
			return nb_fail_errno(error, "verify",
					     "keep the source as it is during a run",
					     "reading the source again");
		length -= here;
	}
	return 0;
}
