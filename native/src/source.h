/* SPDX-License-Identifier: MIT */
/* Where a sender's bytes come from: descriptors with sizes, read round and round. */
#ifndef NB_SOURCE_H
#define NB_SOURCE_H

#include "fail.h"
#include "job.h"

struct nb_source {
	int *fds;
	uint64_t *sizes; /* NB_MISSING: endless */
	uint32_t count;
	uint32_t at;	 /* file under way */
	uint64_t offset; /* in it */
	uint64_t largest;
	int rewinds; /* the descriptor's own offset must go back at the end */
};

/* Open what the job names. */
int nb_source_open(struct nb_source *source, const struct nb_job *job, struct nb_error *error);
void nb_source_close(struct nb_source *source);

static inline int nb_source_fd(const struct nb_source *source)
{
	return source->fds[source->at];
}

/* At most `most` bytes, and not past the end of the file under way. */
static inline size_t nb_source_clamp(const struct nb_source *source, size_t most)
{
	uint64_t left = source->sizes[source->at] - source->offset;

	return left < most ? (size_t)left : most;
}

/* Go on by `moved`; at a file's end to the next file, round and round. */
static inline void nb_source_advance(struct nb_source *source, size_t moved)
{
	if (source->sizes[source->at] == NB_MISSING)
		return;
	source->offset += moved;
	if (source->offset == source->sizes[source->at]) {
		source->offset = 0;
		source->at = source->at + 1 == source->count ? 0 : source->at + 1;
	}
}

/* Continue a digest over the first `length` bytes that a source sends, wrapping as a run does. */
int nb_source_digest(const struct nb_source *source, uint64_t length, uint64_t *digest,
		     struct nb_error *error);

#endif
