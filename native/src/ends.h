/* SPDX-License-Identifier: MIT */
/* The ends of a stream: where its bytes come from and go to, past the page cache or through it.
 *
 * A source is ranges of descriptors, read round and round. No two streams of a run send the same
 * range of a file: with as many files as streams or more, each stream has files of its own,
 * otherwise those that share a file have a part of it each. */
#ifndef NB_ENDS_H
#define NB_ENDS_H

#include "fail.h"
#include "job.h"

/* Direct I/O: files that are read and written past the page cache (O_DIRECT of open(2)). Offsets
 * and lengths are whole blocks then, and the buffer in memory is aligned. */

/* Make an open file direct; *block: what offsets and lengths are multiples of. Where the file
 * system has no direct I/O, or the job's chunk and align do not fit it: a negative code. */
int nb_direct_io_begin(int fd, const char *path, const struct nb_job *job, uint64_t *block,
		       struct nb_error *error);
/* Back to the page cache. 0, or -1 with errno. */
int nb_direct_io_end(int fd);

static inline size_t nb_whole_blocks(size_t length, uint64_t block)
{
	return (length + (size_t)block - 1) / (size_t)block * (size_t)block;
}

/* What a stream sends of one file. */
struct nb_range {
	int fd;
	uint64_t begin;
	uint64_t end; /* NB_MISSING: endless */
};

struct nb_source {
	struct nb_range *ranges;
	uint32_t count;
	uint32_t at;	  /* range under way */
	uint64_t offset;  /* in its file */
	uint64_t largest; /* range, in bytes; NB_MISSING: endless */
	uint64_t block;	  /* of direct I/O; 0: through the page cache */
};

/* Open what the job names for one of its streams. */
int nb_source_open(struct nb_source *source, const struct nb_job *job, uint32_t stream,
		   struct nb_error *error);
/* Why the file of the source would not open. */
int nb_source_ask(const struct nb_job *job, struct nb_error *error);
void nb_source_close(struct nb_source *source);
/* Close the nameless files that the last NB_SOURCE_FILES job of this worker made and that later
 * ones share: they are gone with it. */
void nb_scratch_files_close(void);

static inline int nb_source_fd(const struct nb_source *source)
{
	return source->ranges[source->at].fd;
}

/* Whether there are ranges of files or memory, which begin again at their end. */
static inline int nb_source_wraps(const struct nb_source *source)
{
	return source->ranges[source->at].end != NB_MISSING;
}

/* At most `most` bytes, and not past the end of the range under way. */
static inline size_t nb_source_clamp(const struct nb_source *source, size_t most)
{
	uint64_t left = source->ranges[source->at].end - source->offset;

	return left < most ? (size_t)left : most;
}

/* What to ask read(2) for, where so much is wanted: with direct I/O, whole blocks. */
static inline size_t nb_source_blocks(const struct nb_source *source, size_t wanted)
{
	return __builtin_expect(source->block != 0, 0) ? nb_whole_blocks(wanted, source->block)
						       : wanted;
}

/* Go on by `moved`; at a range's end to the next one, round and round. Returns whether a
 * range has ended. */
static inline int nb_source_advance(struct nb_source *source, size_t moved)
{
	if (!nb_source_wraps(source))
		return 0;
	source->offset += moved;
	if (source->offset != source->ranges[source->at].end)
		return 0;
	source->at = source->at + 1 == source->count ? 0 : source->at + 1;
	source->offset = source->ranges[source->at].begin;
	return 1;
}

/* Continue a digest over the first `length` bytes that a source sends, wrapping as a run does. */
int nb_source_digest(const struct nb_source *source, uint64_t length, uint64_t *digest,
		     struct nb_error *error);

/* What the page cache holds of a file, in bytes; NB_MISSING: not known. */
struct nb_cached {
	uint64_t resident;
	uint64_t dirty; /* still to be written to its disk, or on the way there */
};

/* Look at a whole file: cachestat(2), Linux 6.5. */
void nb_page_cache_look(int fd, struct nb_cached *cached);

/* How many bytes of a run's sources are in the page cache, and how many there are; NB_MISSING where
 * that is not known. */
struct nb_residence {
	uint64_t resident;
	uint64_t size;
};

/* Bring a stream's source into the page cache or drop it from it, as the job asks, and add what is
 * there afterwards. */
int nb_page_cache_prepare(const struct nb_source *source, const struct nb_job *job,
			  struct nb_residence *residence, struct nb_error *error);
/* Add what is there of a stream's source. */
void nb_page_cache_add(const struct nb_source *source, uint64_t *resident);

struct nb_sink {
	int fd;			/* of the file; -1: discard */
	uint64_t device, inode; /* which file it is; NB_MISSING of a character device */
	uint64_t block;		/* of direct I/O; 0: through the page cache */
	size_t held;		/* bytes that arrived and wait for the rest of their chunk */
	uint64_t sync_ns[2];	/* when fsync(2) began and ended */
	struct nb_cached before, after; /* in the page cache, around the run */
	char path[4200];
};

/* The stream's file: the job's path for stream 0, then with .1 .2 ... added. With job->verify,
 * memory instead of nothing. */
int nb_sink_open(struct nb_sink *sink, const struct nb_job *job, uint32_t stream,
		 struct nb_error *error);
/* Why the files of all streams would not open; nothing is made. */
int nb_sink_ask(const struct nb_job *job, struct nb_error *error);
void nb_sink_close(struct nb_sink *sink);
/* Force it to its disk. 0, or -1 with errno. */
int nb_sink_sync(struct nb_sink *sink);
int nb_sink_digest(const struct nb_sink *sink, uint64_t length, uint64_t *digest,
		   struct nb_error *error);

#endif
