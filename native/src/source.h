/* SPDX-License-Identifier: MIT */
/*
 * Where a stream's bytes come from: ranges of descriptors, read round and round. No two streams of
 * a run send the same range of a file: with as many files as streams or more, each stream has files
 * of its own, otherwise those that share a file have a part of it each.
 */
#ifndef NB_SOURCE_H
#define NB_SOURCE_H

#include "direct_io.h"
#include "fail.h"
#include "job.h"

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

#endif
