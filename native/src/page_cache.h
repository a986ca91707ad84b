/* SPDX-License-Identifier: MIT */
#ifndef NB_PAGE_CACHE_H
#define NB_PAGE_CACHE_H

#include "fail.h"
#include "source.h"

/* Bring a source into the page cache or drop it from it, as the job asks. *resident and *size in
 * bytes afterwards; NB_MISSING where the source has no size. */
int nb_page_cache_prepare(const struct nb_source *source, const struct nb_job *job,
			  uint64_t *resident, uint64_t *size, struct nb_error *error);

#endif
