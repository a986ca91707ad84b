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

#include "clock.h"
#include "pattern.h"

enum { ROOM = sizeof(((struct nb_sink *)NULL)->path) };

/* The file of a stream. All streams share a character device: beside /dev/null no file is made. */
static void name(const struct nb_job *job, uint32_t stream, char *path, size_t room)
{
	struct stat status;

	if (stream && (lstat(job->sink_path, &status) || !S_ISCHR(status.st_mode)))
		snprintf(path, room, "%s.%u", job->sink_path, stream);
	else
		snprintf(path, room, "%s", job->sink_path);
}

/* Find the file that an earlier run made or took for this stream; 0: there is none. */
static int find_earlier(const struct nb_job *job, uint32_t stream, uint64_t *device,
			uint64_t *inode)
{
	const char *word = job->sink_files, *end = word + sizeof(job->sink_files);
	char *colon;

	for (uint32_t each = 0; each < stream && word < end; each++)
		word += strnlen(word, (size_t)(end - word)) + 1;
	if (word >= end || !*word)
		return 0;
	*device = strtoull(word, &colon, 10);
	*inode = *colon ? strtoull(colon + 1, NULL, 10) : 0;
	return 1;
}

/* Whether this, which is there already, may be written over. */
static int may_write(const struct nb_job *job, uint32_t stream, const char *path,
		     const struct stat *status, struct nb_error *error)
{
	uint64_t device, inode;

	if (S_ISLNK(status->st_mode) || S_ISDIR(status->st_mode))
		return nb_fail(error, NB_ERR_REQUEST, "open sink", "name a file", "%s is a %s",
			       path, S_ISLNK(status->st_mode) ? "symbolic link" : "directory");
	if (S_ISCHR(status->st_mode))
		return 0;
	if (find_earlier(job, stream, &device, &inode))
		return (!device || device == status->st_dev) && inode == status->st_ino
			       ? 0
			       : nb_fail(error, NB_ERR_REQUEST, "open sink",
					 "look who replaced it, then choose another path",
					 "%s is another file than the one of earlier runs", path);
	if (!S_ISBLK(status->st_mode) && status->st_uid && status->st_uid != geteuid())
		return nb_fail(error, NB_ERR_REQUEST, "open sink", "choose another path",
			       "%s is a file of another account", path);
	if (job->overwrite)
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "open sink",
		       "choose another path, or write {file: ..., overwrite: true}",
		       "%s exists and is a %s", path,
		       S_ISBLK(status->st_mode) ? "block device" : "file");
}

static int cannot_open(const char *path, struct nb_error *error)
{
	return nb_fail_errno(error, "open sink", "name a file that can be written on the receiver",
			     "%s", path);
}

static int prepare_file(struct nb_sink *sink, const struct nb_job *job, const struct stat *status,
			struct nb_error *error)
{
	if (job->fsync && !S_ISREG(status->st_mode))
		return nb_fail(error, NB_ERR_UNSUPPORTED, "open sink", "use a file, or fsync: none",
			       "fsync: %.150s is no regular file", sink->path);
	nb_page_cache_look(sink->fd, &sink->before);
	return job->direct ? nb_direct_io_begin(sink->fd, sink->path, job, &sink->block, error) : 0;
}

/* Open what is there, if it may be written over, or make a file. What is opened is compared again:
 * it may be another than a moment ago. Nothing is truncated before. */
static int open_file(struct nb_sink *sink, const struct nb_job *job, uint32_t stream,
		     struct nb_error *error)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	struct stat status;
	int made = 0, code;

	sink->fd = open(sink->path, flags);
	if (sink->fd < 0 && errno == ENOENT) {
		sink->fd = open(sink->path, flags | O_CREAT | O_EXCL, 0644);
		made = 1;
	}
	if (sink->fd < 0 || fstat(sink->fd, &status))
		return cannot_open(sink->path, error);
	code = made ? 0 : may_write(job, stream, sink->path, &status, error);
	if (code)
		return code;
	sink->device = S_ISCHR(status.st_mode) ? NB_MISSING : status.st_dev;
	sink->inode = S_ISCHR(status.st_mode) ? NB_MISSING : status.st_ino;
	if (ftruncate(sink->fd, 0) && errno != EINVAL)
		return cannot_open(sink->path, error);
	code = prepare_file(sink, job, &status, error);
	if (code && made) /* nobody knows of it yet */
		unlink(sink->path);
	return code;
}

/* The folder that a file is in, or will be. */
static const char *folder_of(const char *path, char folder[ROOM])
{
	char *slash;

	snprintf(folder, ROOM, "%s", path);
	slash = strrchr(folder, '/');
	if (!slash)
		return ".";
	slash[slash == folder] = 0;
	return folder;
}

/* All files or none: what one stream made would stay when another's is refused. */
static int look_at_files(struct nb_sink *sink, const struct nb_job *job, struct nb_error *error)
{
	for (uint32_t each = 0; each < job->streams; each++) {
		struct stat status;
		int code;

		name(job, each, sink->path, sizeof(sink->path));
		if (lstat(sink->path, &status))
			continue;
		code = may_write(job, each, sink->path, &status, error);
		if (code)
			return code;
	}
	return 0;
}

int nb_sink_open(struct nb_sink *sink, const struct nb_job *job, uint32_t stream,
		 struct nb_error *error)
{
	sink->fd = -1;
	if (job->sink == NB_SINK_DISCARD) {
		if (!job->verify)
			return 0;
		sink->fd = memfd_create("netbench", MFD_CLOEXEC);
		return sink->fd >= 0 ? 0
				     : nb_fail_errno(error, "open sink", "free some memory",
						     "a file in memory");
	}
	if (!stream) {
		int code = look_at_files(sink, job, error);

		if (code)
			return code;
	}
	name(job, stream, sink->path, sizeof(sink->path));
	return open_file(sink, job, stream, error);
}

int nb_sink_ask(const struct nb_job *job, struct nb_error *error)
{
	struct nb_sink sink = { .fd = -1 };
	char folder[ROOM];
	int status = job->sink == NB_SINK_FILE ? look_at_files(&sink, job, error) : 0;

	for (uint32_t each = 0; !status && job->sink == NB_SINK_FILE && each < job->streams;
	     each++) {
		name(job, each, sink.path, sizeof(sink.path));
		if (faccessat(AT_FDCWD, sink.path, W_OK, AT_EACCESS) &&
		    (errno != ENOENT ||
		     faccessat(AT_FDCWD, folder_of(sink.path, folder), W_OK | X_OK, AT_EACCESS)))
			status = cannot_open(sink.path, error);
	}
	return status;
}

int nb_sink_sync(struct nb_sink *sink)
{
	int status;

	sink->sync_ns[0] = nb_now();
	do
		status = fsync(sink->fd);
	while (status && errno == EINTR);
	sink->sync_ns[1] = nb_now();
	return status;
}

void nb_sink_close(struct nb_sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	sink->fd = -1;
}

int nb_sink_digest(const struct nb_sink *sink, uint64_t length, uint64_t *digest,
		   struct nb_error *error)
{
	if (nb_direct_io_end(sink->fd) || nb_digest_file(sink->fd, 0, length, digest))
		return nb_fail_errno(error, "verify", "check the disk that holds the sink",
				     "reading the sink again");
	return 0;
}
