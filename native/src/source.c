/* SPDX-License-Identifier: MIT */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern.h"

/* A stream's file in memory, unless all streams together would have more than the second: each page
 * has to be written before the window. */
enum { MEMORY_CHUNK = 64 * 1024, MEMORY_FILE = 1024 * 1024, MEMORY_FILES = 64 * 1024 * 1024 };

/* The nameless files of NB_SOURCE_FILES: made once, shared by all runs of a worker, gone with it
 * whatever happens to it. A worker is a thread (nb_serve), so that two of them in one process do
 * not take each other's files away. */
static _Thread_local struct {
	int *fds;
	uint64_t count;
	uint64_t size;
	char directory[4096];
} made;

/* In a folder of its own: of what is made in one that others may read they may watch each read
 * (inotify(7)), in the reader's time. */
static int nameless_file(const char *directory)
{
	char folder[4200], path[4300];
	int fd, number;

	snprintf(folder, sizeof(folder), "%s/netbench-XXXXXX", directory);
	if (!mkdtemp(folder))
		return -1;
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		snprintf(path, sizeof(path), "%s/file", folder);
		fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		if (fd >= 0)
			unlink(path);
	}
	number = errno;
	rmdir(folder);
	errno = number;
	return fd;
}

void nb_scratch_files_close(void)
{
	for (uint64_t i = 0; i < made.count; i++)
		close(made.fds[i]);
	free(made.fds);
	memset(&made, 0, sizeof(made));
}

/* Make the files that the job asks for, unless they are there already. */
static int make_scratch_files(const struct nb_job *job, const char *directory,
			      struct nb_error *error)
{
	int status = 0;

	if (made.fds && made.count == job->source_files && made.size == job->source_size &&
	    !strcmp(made.directory, directory))
		return 0;
	nb_scratch_files_close();
	made.fds = calloc(job->source_files, sizeof(*made.fds));
	if (!made.fds)
		return nb_fail_memory(error, "descriptors");
	for (; made.count < job->source_files; made.count++) {
		int fd = nameless_file(directory);

		if (fd < 0)
			status = nb_fail_errno(error, "make files",
					       "use fewer files, raise the limit on open files "
					       "(ulimit -n), or make the directory writable",
					       "file %llu in %s", (unsigned long long)made.count,
					       directory);
		else if (nb_pattern_file(fd, job->source_size, made.count * job->source_size))
			status = nb_fail_errno(
				error, "make files", "free some space or use smaller files",
				"file %llu of %llu bytes in %s", (unsigned long long)made.count,
				(unsigned long long)job->source_size, directory);
		if (status) {
			if (fd >= 0)
				close(fd);
			nb_scratch_files_close();
			return status;
		}
		made.fds[made.count] = fd;
	}
	made.size = job->source_size;
	snprintf(made.directory, sizeof(made.directory), "%s", directory);
	return 0;
}

/* Open one of them with an offset of its own. Returns a descriptor, or -1 with errno. */
static int open_scratch_file(uint64_t index)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", made.fds[index]);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void add_range(struct nb_source *source, int fd, uint64_t begin, uint64_t end)
{
	uint64_t length = end == NB_MISSING ? NB_MISSING : end - begin;

	if (begin)
		lseek(fd, (off_t)begin, SEEK_SET); /* read(2) starts there */
	source->ranges[source->count++] = (struct nb_range){ fd, begin, end };
	if (source->largest < length)
		source->largest = length;
}

static int memory_file(const struct nb_job *job, uint64_t *size, struct nb_error *error)
{
	uint64_t chunk = job->chunk ? job->chunk : MEMORY_CHUNK;
	uint64_t share = MEMORY_FILES / job->streams;
	uint64_t least = share < MEMORY_FILE ? share : MEMORY_FILE;
	int fd = memfd_create("netbench", MFD_CLOEXEC);

	/* Whole chunks, so that no call is cut short where the file wraps. */
	*size = least < chunk ? chunk : (least + chunk - 1) / chunk * chunk;
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

/* Files that are sent one after the other: one that was named, or scratch files of equal size. */
struct files {
	uint64_t count;
	uint64_t size;
	const char *path; /* NULL: scratch files */
};

/* Where the part of a stream begins in all bytes of the files. Parts are equal but for the page
 * that they begin with; where that is more than a part, but for a byte. */
static uint64_t part_begin(const struct files *files, uint64_t stream, uint64_t streams)
{
	uint64_t total = files->count * files->size, page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t begin = total / streams * stream + total % streams * stream / streams;

	return stream == streams || total / streams < page ? begin
							   : begin - begin % files->size % page;
}

static int begin_direct(struct nb_source *source, const struct nb_range *range,
			const struct nb_job *job, struct nb_error *error)
{
	const char *path = job->source_path[0] ? job->source_path : "/tmp";
	int status = nb_direct_io_begin(range->fd, path, job, &source->block, error);

	if (!status && range->begin % source->block)
		return nb_fail(error, NB_ERR_REQUEST, "open source",
			       "use fewer streams or a larger file",
			       "a stream's part of %.120s begins within a block of %llu bytes, "
			       "which direct I/O cannot read",
			       path, (unsigned long long)source->block);
	return status;
}

/* A stream's part of the files: a range of each of them that it touches. */
static int open_part(struct nb_source *source, const struct files *files, const struct nb_job *job,
		     uint32_t stream, struct nb_error *error)
{
	uint64_t at = part_begin(files, stream, job->streams),
		 end = part_begin(files, stream + 1, job->streams);
	int status = 0;

	source->ranges = calloc(end / files->size - at / files->size + 1, sizeof(*source->ranges));
	if (!source->ranges)
		return nb_fail_memory(error, "files");
	if (at == end)
		return nb_fail(error, NB_ERR_REQUEST, "open source",
			       "use fewer streams or a larger file",
			       "%llu streams cannot divide a source of %llu bytes",
			       (unsigned long long)job->streams,
			       (unsigned long long)(files->count * files->size));
	while (!status && at < end) {
		uint64_t index = at / files->size, begin = index * files->size;
		uint64_t next = begin + files->size < end ? begin + files->size : end;
		int fd = files->path ? open(files->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
				     : open_scratch_file(index);

		if (fd < 0)
			return nb_fail_errno(error, "open source",
					     "raise the limit on open files (ulimit -n)",
					     "file %llu of %llu", (unsigned long long)index,
					     (unsigned long long)files->count);
		add_range(source, fd, at - begin, next - begin);
		if (job->direct)
			status = begin_direct(source, &source->ranges[source->count - 1], job,
					      error);
		at = next;
	}
	return status;
}

static int open_scratch_files(struct nb_source *source, const struct nb_job *job, uint32_t stream,
			      struct nb_error *error)
{
	const char *directory = job->source_path[0] ? job->source_path : "/tmp";
	struct files files = { .count = job->source_files, .size = job->source_size };
	int status;

	if (!files.count || !files.size)
		return nb_fail(error, NB_ERR_REQUEST, "open source",
			       "write {files: 60, size: 300K}", "no files or no size");
	status = make_scratch_files(job, directory, error);
	return status ? status : open_part(source, &files, job, stream, error);
}

static int open_named_file(struct nb_source *source, const struct nb_job *job, uint32_t stream,
			   struct nb_error *error)
{
	struct files files = { .count = 1, .path = job->source_path };
	int fd = named_file(job, &files.size, error);

	if (fd < 0)
		return fd;
	close(fd);
	return open_part(source, &files, job, stream, error);
}

/* Memory and zeros: each stream has all of its own. */
static int open_endless(struct nb_source *source, const struct nb_job *job, struct nb_error *error)
{
	uint64_t size = NB_MISSING;
	int fd;

	source->ranges = calloc(1, sizeof(*source->ranges));
	if (!source->ranges)
		return nb_fail_memory(error, "files");
	if (job->source == NB_SOURCE_MEMORY) {
		fd = memory_file(job, &size, error);
	} else {
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return nb_fail_errno(error, "open source",
					     "create it again (mknod -m 666 /dev/zero c 1 5)",
					     "/dev/zero");
	}
	if (fd < 0)
		return fd;
	add_range(source, fd, 0, size);
	return 0;
}

int nb_source_open(struct nb_source *source, const struct nb_job *job, uint32_t stream,
		   struct nb_error *error)
{
	int status;

	if (job->source == NB_SOURCE_FILES)
		status = open_scratch_files(source, job, stream, error);
	else if (job->source == NB_SOURCE_FILE)
		status = open_named_file(source, job, stream, error);
	else
		status = open_endless(source, job, error);
	if (!status)
		source->offset = source->ranges[0].begin;
	return status;
}

int nb_source_ask(const struct nb_job *job, struct nb_error *error)
{
	uint64_t size;
	int fd = named_file(job, &size, error);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

void nb_source_close(struct nb_source *source)
{
	for (uint32_t i = 0; i < source->count; i++)
		close(source->ranges[i].fd);
	free(source->ranges);
	memset(source, 0, sizeof(*source));
}

int nb_source_digest(const struct nb_source *source, uint64_t length, uint64_t *digest,
		     struct nb_error *error)
{
	for (uint32_t at = 0; length; at = at + 1 == source->count ? 0 : at + 1) {
		const struct nb_range *range = &source->ranges[at];
		uint64_t whole = range->end - range->begin, here = whole < length ? whole : length;

		if (nb_direct_io_end(range->fd) ||
		    nb_digest_file(range->fd, range->begin, here, digest))
			return nb_fail_errno(error, "verify",
					     "keep the source as it is during a run",
					     "reading the source again");
		length -= here;
	}
	return 0;
}
