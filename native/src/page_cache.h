/* SPDX-License-Identifier: MIT */
#ifndef NB_PAGE_CACHE_H
#define NB_PAGE_CACHE_H

#include "fail.h"
#include "source.h"

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

#endif
