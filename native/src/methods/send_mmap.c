/* SPDX-License-Identifier: MIT */
/* write(2) to the connection from a mapping of the source: mmap(2) maps a section for each chunk,
 * and munmap(2) lets it go. */
#include <sys/mman.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { MAPS, WRITES, SHORT };

static const struct nb_field proofs[] = {
	[MAPS] = NB_CALLS("mmap_calls", "mmap(2) calls, each with its munmap(2), in the run", 0),
	[WRITES] = NB_CALLS("write_calls", "write(2) calls from a mapping", NB_MUST_MOVE),
	[SHORT] = NB_CALLS("short_writes", "write(2) calls that took less than asked", 0),
};

/* After a write(2) that took less than asked, or failed. Returns bytes in all, or <0. */
static __attribute__((noinline)) ssize_t write_rest(struct nb_flow *flow, const char *from,
						    size_t length, ssize_t written)
{
	size_t done = written > 0 ? (size_t)written : 0;
	ssize_t rest;

	if (written < 0 && nb_flow_later(flow))
		return NB_NOTHING;
	if (written < 0 && errno != EINTR)
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

static ssize_t step(struct nb_flow *flow, size_t most)
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

const struct nb_method nb_send_mmap = {
	.name = "mmap",
	.about = "write(2) from a mapping: mmap(2) and munmap(2) for each chunk",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE,
	NB_TABLE_OF(options, nb_sender_options),
	NB_TABLE(proofs),
	.connected = nb_socket_options_share,
	.step = step,
};
