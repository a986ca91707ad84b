/* SPDX-License-Identifier: MIT */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"

static void name(const struct nb_job *job, uint32_t stream, char *path, size_t room)
{
	if (stream)
		snprintf(path, room, "%s.%u", job->sink_path, stream);
	else
		snprintf(path, room, "%s", job->sink_path);
}

static int may_write(const struct nb_job *job, uint32_t stream, struct nb_error *error)
{
	char path[sizeof(((struct nb_sink *)NULL)->path)];
	struct stat status;

	name(job, stream, path, sizeof(path));
	if (stream < job->overwrite || stat(path, &status) || S_ISCHR(status.st_mode))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "open sink",
		       "choose another path, or write {file: ..., overwrite: true}",
		       "%s exists and is a %s", path,
		       S_ISBLK(status.st_mode)	 ? "block device"
		       : S_ISDIR(status.st_mode) ? "directory"
						 : "file");
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
	name(job, stream, sink->path, sizeof(sink->path));
	/* All files or none: what one stream made would stay when another's is refused. */
	for (uint32_t each = 0; !stream && each < job->streams; each++) {
		int status = may_write(job, each, error);

		if (status)
			return status;
	}
	sink->fd = open(sink->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (sink->fd < 0)
		return nb_fail_errno(error, "open sink",
				     "name a file that can be written on the receiver", "%s",
				     sink->path);
	if (ftruncate(sink->fd, 0) && errno != EINVAL)
		return nb_fail_errno(error, "open sink",
				     "name a file that can be written on the receiver", "%s",
				     sink->path);
	return 0;
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
	if (nb_digest_file(sink->fd, length, digest))
		return nb_fail_errno(error, "verify", "check the disk that holds the sink",
				     "reading the sink again");
	return 0;
}
