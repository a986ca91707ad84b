/* SPDX-License-Identifier: MIT */
#include "areas.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../pattern.h"

static int map_buffer(struct nb_flow *flow, struct nb_area *area, struct nb_error *error)
{
	size_t length = (size_t)(flow->job->align + flow->job->chunk);

	area->start =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area->start == MAP_FAILED)
		return nb_fail_errno(error, "prepare run", "use a smaller chunk",
				     "a buffer of %zu bytes", length);
	area->length = length;
	if (flow->job->source == NB_SOURCE_ZERO)
		memset(area->start, 0, length); /* pages of its own, not the one that stands for
						   every page of zeros */
	else
		nb_pattern(area->start, length, 0);
	flow->buffer = area->start + flow->job->align;
	return 0;
}

/* Of a source without an end (/dev/zero) a chunk. */
static int map_range(struct nb_flow *flow, const struct nb_range *range, struct nb_area *area,
		     struct nb_error *error)
{
	int endless = range->end == NB_MISSING;
	size_t length = (size_t)(endless ? flow->job->chunk : range->end);

	area->start =
		mmap(NULL, length, PROT_READ, endless ? MAP_PRIVATE : MAP_SHARED, range->fd, 0);
	if (area->start == MAP_FAILED)
		return nb_fail_errno(error, "prepare run",
				     "use a source that can be mapped, or fewer files",
				     "mmap of %zu bytes", length);
	area->length = length;
	return 0;
}

int nb_areas_open(struct nb_areas *areas, struct nb_flow *flow, struct nb_error *error)
{
	size_t wanted = flow->source.count ? flow->source.count : 1;
	int status = 0;

	areas->each = calloc(wanted, sizeof(*areas->each));
	if (!areas->each)
		return nb_fail_memory(error, "mappings");
	for (; !status && areas->count < wanted; areas->count += !status) {
		struct nb_area *area = &areas->each[areas->count];

		status = flow->source.count
				 ? map_range(flow, &flow->source.ranges[areas->count], area, error)
				 : map_buffer(flow, area, error);
	}
	return status;
}

void nb_areas_close(struct nb_areas *areas, struct nb_flow *flow)
{
	for (size_t i = 0; i < areas->count; i++)
		munmap(areas->each[i].start, areas->each[i].length);
	free(areas->each);
	flow->buffer = NULL;
	*areas = (struct nb_areas){ 0 };
}
