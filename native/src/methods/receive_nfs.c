/* SPDX-License-Identifier: MIT */
/* read(2) of a file on an NFS mount, from its begin to its end, over and over. Before each pass
 * what the page cache holds of it is dropped, so that the server has to send it again. Streams have
 * a part of the file each. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "../method.h"
#include "../proc_text.h"

enum { READS, PASSES, SERVED, CACHED };
enum { NFS_MAGIC = 0x6969, LEAST = 4 * 1024 * 1024 };

static const struct nb_field proofs[] = {
	[READS] = NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	[PASSES] = { "passes", "ends of the file, or of the stream's part of it" },
	[SERVED] = { "served_bytes",
		     "bytes that the server sent for all streams, by "
		     "/proc/self/mountstats at the end of passes and of "
		     "the run",
		     .unit = NB_UNIT_BYTES, .flags = NB_MUST_MOVE },
	[CACHED] = { "cached_bytes",
		     "bytes that all streams read and the server did not send: from the "
		     "page cache",
		     .unit = NB_UNIT_BYTES, .flags = NB_MUST_NOT_MOVE },
};

/* A stream's part of the file, and for the first stream what counts for all. */
struct part {
	off_t begin;
	off_t end;
	off_t at;
	uint64_t served; /* by the server since the mount was made, when it was last read */
	uint64_t first;	 /* the same before the run */
	uint64_t cached;
	char mount[4096]; /* where it is mounted */
	struct nb_proc_text stats;
};

static int probe(char *why, size_t room)
{
	if (nb_kernel_has("nfs4", "nfs"))
		return 0;
	snprintf(why, room,
		 "this kernel has no NFS client (CONFIG_NFS_FS, CONFIG_NFS_V4): the module nfsv4 "
		 "is not there");
	return -1;
}

/* Whether a line of mountstats begins the part of our mount: "device SOURCE mounted on PLACE with
 * fstype nfs4 statvers=1.1". */
static int begins(const char *line, const char *mount)
{
	static const char on[] = " mounted on ", with[] = " with fstype nfs";
	const char *place = strncmp(line, "device ", 7) ? NULL : strstr(line, on);
	size_t length = strlen(mount);

	return place && !strncmp(place + strlen(on), mount, length) &&
	       !strncmp(place + strlen(on) + length, with, strlen(with));
}

/* The fifth number of "bytes:" is what READs of the server brought (fs/nfs/iostat.h:
 * SERVERREADBYTES). 1: here it is. */
static int take_line(const char *line, const char *mount, int *ours, uint64_t *served)
{
	unsigned long long numbers[5];

	if (!strncmp(line, "device ", 7))
		*ours = begins(line, mount);
	if (!*ours || sscanf(line, " bytes: %llu %llu %llu %llu %llu", &numbers[0], &numbers[1],
			     &numbers[2], &numbers[3], &numbers[4]) != 5)
		return 0;
	*served = numbers[4];
	return 1;
}

/* Bytes that the server has sent through this mount. Allocates nothing. Returns 0, or -1. */
static int read_served(struct part *part, uint64_t *served)
{
	char *line = nb_proc_read(&part->stats);
	int ours = 0, found = 0;

	for (; line && !found; line = nb_proc_next_line(line))
		found = take_line(line, part->mount, &ours, served);
	return found ? 0 : -1;
}

/* Compare what was read since the run began with what the server sent. The bytes first: what was
 * read was sent before. */
static int account(struct nb_flow *flow)
{
	struct part *part = flow->state;
	uint64_t bytes = 0, served;

	for (uint64_t i = 0; i < flow->job->streams; i++)
		bytes += atomic_load_explicit(&flow[i].bytes, memory_order_relaxed);
	if (read_served(part, &served))
		return nb_fail(&flow->error, NB_ERR_SYSTEM, "read /proc/self/mountstats",
			       "leave the mount alone during a run", "%.150s is gone", part->mount);
	nb_count(flow, SERVED, served - part->served);
	part->served = served;
	if (bytes > served - part->first && bytes - (served - part->first) > part->cached) {
		nb_count(flow, CACHED, bytes - (served - part->first) - part->cached);
		part->cached = bytes - (served - part->first);
	}
	return 0;
}

static int begin_pass(struct nb_flow *flow)
{
	struct part *part = flow->state;
	int fd = nb_source_fd(&flow->source);

	errno = posix_fadvise(fd, part->begin, part->end - part->begin, POSIX_FADV_DONTNEED);
	part->at = part->begin;
	return errno || lseek(fd, part->begin, SEEK_SET) < 0 ? -1 : 0;
}

static int open_part(struct nb_flow *flow, struct nb_error *error)
{
	const struct nb_range *range = flow->source.ranges;
	struct part *part = flow->state;

	if (range->end - range->begin < LEAST && flow->job->streams > 1)
		return nb_fail(
			error, NB_ERR_REQUEST, "open source", "use fewer streams or a larger file",
			"%.150s has less than %d bytes for each of %llu streams",
			flow->job->source_path, LEAST, (unsigned long long)flow->job->streams);
	part->begin = (off_t)range->begin;
	part->end = (off_t)range->end;
	if (begin_pass(flow))
		return nb_fail_errno(error, "open source", "look at `dmesg` on both hosts", "%s",
				     flow->job->source_path);
	snprintf(part->mount, sizeof(part->mount), "%s", flow->job->source_path);
	dirname(part->mount); /* the setting mounts a file's folder */
	if (nb_proc_open(&part->stats, "/proc/self/mountstats") || read_served(part, &part->first))
		return nb_fail(error, NB_ERR_UNSUPPORTED, "open source", "mount /proc on this host",
			       "/proc/self/mountstats does not list the mount of %.150s",
			       flow->job->source_path);
	part->served = part->first;
	return 0;
}

static int open_source(struct nb_flow *flow, struct nb_error *error)
{
	struct statfs system;
	struct part *part;

	if (flow->job->source != NB_SOURCE_FILE || fstatfs(nb_source_fd(&flow->source), &system) ||
	    system.f_type != NFS_MAGIC)
		return nb_fail(error, NB_ERR_REQUEST, "open source",
			       "write {nfs: on} or {nfs: rsize=32K} under settings or sweep",
			       "%.150s is not on an NFS mount", flow->job->source_path);
	part = nb_flow_state(flow, sizeof(*part), error);
	if (!part)
		return -NB_ERR_MEMORY;
	part->stats.fd = -1;
	return open_part(flow, error) ? -NB_ERR_REQUEST
				      : nb_flow_buffer(flow, flow->job->chunk, error);
}

static int end_pass(struct nb_flow *flow)
{
	nb_count(flow, PASSES, 1);
	if (begin_pass(flow))
		return (int)nb_flow_fail_source(flow, "drop from the page cache",
						"look at `dmesg` on both hosts");
	return flow->index ? 0 : account(flow);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct part *part = flow->state;
	size_t left = (size_t)(part->end - part->at);
	ssize_t got;

	do {
		got = nb_read(nb_source_fd(&flow->source), flow->buffer, most < left ? most : left);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_source(
			flow, "read",
			"check that the NFS server answers, and look at `dmesg` on both hosts");
	if (!got)
		return nb_fail(&flow->error, NB_ERR_SYSTEM, "read source",
			       "keep the source as it is during a run",
			       "%.150s was cut short during the run", flow->job->source_path);
	part->at += got;
	return part->at == part->end && end_pass(flow) ? -1 : got;
}

static int drain(struct nb_flow *flow)
{
	return flow->index ? 0 : account(flow);
}

/* Forced, unmounting makes all requests fail that wait for the server; the mount itself stays,
 * since our file is open on it. */
static void give_up(struct nb_flow *flow)
{
	const struct part *part = flow->state;

	if (part && nb_source_fd(&flow->source) >= 0)
		umount2(part->mount, MNT_FORCE);
}

static void close_part(struct nb_flow *flow)
{
	struct part *part = flow->state;

	if (part)
		nb_proc_close(&part->stats);
}

const struct nb_method nb_receive_nfs = {
	.name = "nfs",
	.about = "read(2) of the sender's file on an NFS mount (setting nfs), to nothing, dropped "
		 "from the page cache before "
		 "each pass",
	.flags = NB_FETCHES | NB_TO_DISCARD | NB_BUFFERS,
	NB_TABLE(proofs),
	.probe = probe,
	.open = open_source,
	.step = step,
	.drain = drain,
	.give_up = give_up,
	.close = close_part,
};
