/* SPDX-License-Identifier: MIT */
#include "scratch_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "pattern.h"

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

void nb_scratch_files_close(void)
{
	for (uint64_t i = 0; i < made.count; i++)
		close(made.fds[i]);
	free(made.fds);
	memset(&made, 0, sizeof(made));
}

/* Filling a disk takes long and harms other processes that use it. */
static int find_room(const struct nb_job *job, const char *directory, struct nb_error *error)
{
	struct statvfs disk;
	uint64_t room;

	if (statvfs(directory, &disk))
		return 0; /* the error of the first file says why */
	room = (uint64_t)disk.f_bavail * disk.f_frsize;
	if (job->source_size <= room / job->source_files)
		return 0;
	return nb_fail(error, NB_ERR_SYSTEM, "make files",
		       "free some space, or use fewer or smaller files",
		       "%llu files of %llu bytes do not fit in %s: %llu bytes are free",
		       (unsigned long long)job->source_files, (unsigned long long)job->source_size,
		       directory, (unsigned long long)room);
}

int nb_scratch_files_make(const struct nb_job *job, const char *directory, struct nb_error *error)
{
	int status;

	if (made.fds && made.count == job->source_files && made.size == job->source_size &&
	    !strcmp(made.directory, directory))
		return 0;
	nb_scratch_files_close();
	status = find_room(job, directory, error);
	if (status)
		return status;
	made.fds = calloc(job->source_files, sizeof(*made.fds));
	if (!made.fds)
		return nb_fail(error, NB_ERR_MEMORY, "make files", "use fewer files",
			       "no memory for %llu descriptors",
			       (unsigned long long)job->source_files);
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

int nb_scratch_file_open(uint64_t index)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", made.fds[index]);
	return open(path, O_RDONLY | O_CLOEXEC);
}
