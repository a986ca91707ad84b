/* SPDX-License-Identifier: MIT */
/*
 * write(2) to the connection from a mapping of the source. `map: window` maps a section with
 * mmap(2) for each chunk and lets it go with munmap(2); `map: whole` maps all of it once, before
 * the run.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "../direct.h"
#include "../method.h"
#include "areas.h"
#include "socket_options.h"

enum { MAP = NB_SENDER_WAIT + 1 };
enum { WINDOW, WHOLE };
enum { MAPS, WRITES, SHORT };

static const struct nb_field options[] = {
	NB_SENDER_OPTIONS,
	[NB_SENDER_WAIT] = NB_WAIT_OPTION,
	[MAP] = { "map", "what is mapped: a window for each chunk, or the whole source once",
		  .words = "window whole", .flags = NB_USER, .type = NB_WORD },
};

static const struct nb_field proofs[] = {
	[MAPS] = NB_CALLS("mmap_calls", "mmap(2) calls, each with its munmap(2), in the run", 0),
	[WRITES] = NB_CALLS("write_calls", "write(2) calls from a mapping", NB_MUST_MOVE),
	[SHORT] = NB_CALLS("short_writes", "write(2) calls that took less than asked", 0),
};

static int open_areas(struct nb_flow *flow, struct nb_error *error)
{
	struct nb_areas *areas;

	if (flow->job->extra[MAP] != WHOLE)
		return 0;
	areas = nb_flow_state(flow, sizeof(*areas), error);
	return areas ? nb_areas_open(areas, flow, error) : -NB_ERR_MEMORY;
}

/* After a write(2) that took less than asked, or failed. Returns bytes in all, or <0. */
static __attribute__((noinline)) ssize_t write_rest(struct nb_flow *flow, const char *from,
						    size_t length, ssize_t written)
{
	size_t done = written > 0 ? (size_t)written : 0;
	ssize_t rest;

	if (written < 0 && nb_flow_later(flow))
		return NB_NOTHING;
	if (written < 0 && !nb_flow_again(flow))
		return nb_flow_fail_write(flow);
	if (written > 0)
		nb_count(flow, SHORT, 1);
	if (written > 0 && flow->wait == NB_WAIT_LATER)
		return written;
	rest = nb_flow_write(flow, from + done, length - done, WRITES, SHORT);
	return rest < 0 ? rest : (ssize_t)(done + (size_t)rest);
}

/* From a mapping: the usual case is one call. Returns bytes, or <0. */
static inline __attribute__((always_inline)) ssize_t write_mapped(struct nb_flow *flow,
								  const char *from, size_t length)
{
	ssize_t written = nb_write(flow->socket, from, length);

	nb_count(flow, WRITES, 1);
	return __builtin_expect(written == (ssize_t)length, 1)
		       ? written
		       : write_rest(flow, from, length, written);
}

static __attribute__((noinline)) ssize_t step_whole(struct nb_flow *flow, size_t most)
{
	const struct nb_areas *areas = flow->state;
	struct nb_source *source = &flow->source;
	const unsigned char *from = areas->each[source->at].start + source->offset;
	ssize_t written = write_mapped(flow, (const char *)from, nb_source_clamp(source, most));

	if (written > 0)
		nb_source_advance(source, (size_t)written);
	return written;
}

static __attribute__((noinline)) ssize_t step_window(struct nb_flow *flow, size_t most)
{
	struct nb_source *source = &flow->source;
	const struct nb_range *range = &source->ranges[source->at];
	size_t into = (size_t)source->offset & (flow->page - 1),
	       length = nb_source_clamp(source, most);
	char *map = nb_mmap(into + length, PROT_READ, MAP_PRIVATE, range->fd,
			    (off_t)(source->offset - into));
	ssize_t written;

	if (map == MAP_FAILED)
		return nb_flow_fail_source(flow, "mmap", "use a source that can be mapped");
	nb_count(flow, MAPS, 1);
	written = write_mapped(flow, map + into, length);
	if (nb_munmap(map, into + length))
		return nb_flow_fail(flow, "munmap", "report it as a defect of netbench",
				    "of the source");
	if (written > 0)
		nb_source_advance(source, (size_t)written);
	return written;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	return flow->state ? step_whole(flow, most) : step_window(flow, most);
}

static void close_areas(struct nb_flow *flow)
{
	if (flow->state)
		nb_areas_close(flow->state, flow);
}

const struct nb_method nb_send_mmap = {
	.name = "mmap",
	.about = "write(2) from a mapping: mmap(2) and munmap(2) for each chunk, or once",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE,
	NB_TABLE(options),
	NB_TABLE(proofs),
	.open = open_areas,
	.connected = nb_socket_options_set_wait,
	.step = step,
	.close = close_areas,
};
