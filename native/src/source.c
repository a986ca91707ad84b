/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "heartbeat.h"
#include "method.h"

enum { BLOCK = 64 * 1024, MEMORY_FILE = 1024 * 1024 };

/*
 * The nameless files of NB_SOURCE_FILES: made once, shared by all runs of a worker, gone with it
 * whatever happens to it. A worker is a thread (nb_serve), so that two of them in one process do
 * not take each other's files away.
 */
static _Thread_local struct {
	int *fds;
	uint64_t count;
	uint64_t size;
	char directory[4096];
} made;

uint64_t nb_digest(uint64_t digest, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < length; i++)
		digest = (digest ^ at[i]) * 0x100000001b3ULL;
	return digest;
}

void nb_pattern(unsigned char *bytes, size_t length, uint64_t offset)
{
	/* splitmix64 of the word's position; source: Steele, Lea, Flood, OOPSLA 2014 */
	for (size_t i = 0; i < length; i++) {
		uint64_t mixed = ((offset + i) / 8 + 1) * 0x9e3779b97f4a7c15ULL;

		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
		bytes[i] = (unsigned char)(mixed >> (8 * ((offset + i) % 8)));
	}
}

static int fill_file(int fd, uint64_t size, uint64_t salt)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = 0; offset < size;) {
		size_t length = size - offset < BLOCK ? (size_t)(size - offset) : BLOCK;
		ssize_t written;

		nb_heartbeat();
		nb_pattern(block, length, salt + offset);
		written = pwrite(fd, block, length, (off_t)offset);
		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0)
			offset += (uint64_t)written;
	}
	return 0;
}

static int nameless_file(const char *directory)
{
	char path[4200];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	snprintf(path, sizeof(path), "%s/netbench-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

void nb_source_forget(void)
{
	for (uint64_t i = 0; i < made.count; i++)
		close(made.fds[i]);
	free(made.fds);
	memset(&made, 0, sizeof(made));
}

static void allow_files(uint64_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted
				 ? wanted
				 : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Filling a disk takes long, and harms who else uses it. */
static int find_room(const struct nb_job *job, const char *directory, struct nb_error *error)
{
	struct statvfs disk;
	uint64_t room;

	if (statvfs(directory, &disk))
		return 0; /* making the first file will say why */
	room = (uint64_t)disk.f_bavail * disk.f_frsize;
	if (job->source_size <= room / job->source_files)
		return 0;
	return nb_fail(error, NB_ERR_SYSTEM, "make files",
		       "free some space, or use fewer or smaller files",
		       "%llu files of %llu bytes do not fit in %s: %llu bytes are free",
		       (unsigned long long)job->source_files, (unsigned long long)job->source_size,
		       directory, (unsigned long long)room);
}

static int make_files(const struct nb_job *job, const char *directory, struct nb_error *error)
{
	int status;

	if (made.fds && made.count == job->source_files && made.size == job->source_size &&
	    !strcmp(made.directory, directory))
		return 0;
	nb_source_forget();
	status = find_room(job, directory, error);
	if (status)
		return status;
	allow_files(job->source_files * (job->streams + 1) + 256);
	made.fds = calloc(job->source_files, sizeof(*made.fds));
	if (!made.fds)
		return nb_fail(error, NB_ERR_MEMORY, "make files", "use fewer files",
			       "no memory for %llu descriptors",
			       (unsigned long long)job->source_files);
	for (; made.count < job->source_files; made.count++) {
		int fd = nameless_file(directory);

		if (fd >= 0 && fill_file(fd, job->source_size, made.count * job->source_size)) {
			status = nb_fail_errno(
				error, "make files", "free some space or use smaller files",
				"file %llu of %llu bytes in %s", (unsigned long long)made.count,
				(unsigned long long)job->source_size, directory);

			close(fd);
			nb_source_forget();
			return status;
		}
		if (fd < 0) {
			status = nb_fail_errno(error, "make files",
					       "use fewer files, raise the limit on open files "
					       "(ulimit -n), or make the directory writable",
					       "file %llu in %s", (unsigned long long)made.count,
					       directory);

			nb_source_forget();
			return status;
		}
		made.fds[made.count] = fd;
	}
	made.size = job->source_size;
	snprintf(made.directory, sizeof(made.directory), "%s", directory);
	return 0;
}

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
	status = make_files(job, directory, error);
	if (!status)
		status = room_for(source, job->source_files, error);
	if (status)
		return status;
	source->rewinds = 1;
	for (; source->count < job->source_files; source->count++) {
		char again[64];
		int fd;

		/* A description of its own, so that streams do not share an offset. */
		snprintf(again, sizeof(again), "/proc/self/fd/%d", made.fds[source->count]);
		fd = open(again, O_RDONLY | O_CLOEXEC);
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
	uint64_t chunk = job->chunk ? job->chunk : BLOCK;
	int fd = memfd_create("netbench", MFD_CLOEXEC);

	/* Whole chunks, so that no call is cut short where the file wraps. */
	*size = (MEMORY_FILE + chunk - 1) / chunk * chunk;
	if (fd < 0 || fill_file(fd, *size, 0)) {
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
					     "make it anew (mknod -m 666 /dev/zero c 1 5)",
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

int nb_source_cache(const struct nb_source *source, const struct nb_job *job, uint64_t *resident,
		    uint64_t *size, struct nb_error *error)
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

static int digest_file(int fd, uint64_t length, uint64_t *digest)
{
	unsigned char block[BLOCK];

	for (uint64_t offset = 0; offset < length;) {
		size_t want = length - offset < BLOCK ? (size_t)(length - offset) : BLOCK;
		ssize_t got;

		nb_heartbeat();
		got = pread(fd, block, want, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : ENODATA;
			return -1;
		}
		*digest = nb_digest(*digest, block, (size_t)got);
		offset += (uint64_t)got;
	}
	return 0;
}

int nb_source_digest(const struct nb_source *source, uint64_t length, uint64_t *digest,
		     struct nb_error *error)
{
	for (uint32_t at = 0; length; at = at + 1 == source->count ? 0 : at + 1) {
		uint64_t here = source->sizes[at] < length ? source->sizes[at] : length;

		if (digest_file(source->fds[at], here, digest))
			return nb_fail_errno(error, "verify",
					     "keep the source as it is during a run",
					     "reading the source again");
		length -= here;
	}
	return 0;
}
