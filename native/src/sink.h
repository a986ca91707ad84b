/* SPDX-License-Identifier: MIT */
/* Where a receiver's bytes go. */
#ifndef NB_SINK_H
#define NB_SINK_H

#include "fail.h"
#include "job.h"
#include "page_cache.h"

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
