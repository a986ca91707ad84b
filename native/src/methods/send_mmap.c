/* SPDX-License-Identifier: MIT */
/* mmap(2) a section of the source, write(2) it to the connection, munmap(2) it. */
#include <sys/mman.h>

#include "../method.h"

enum { MAPS, WRITES, SHORT, MAPPED };

static const struct nb_field proofs[] = {
	NB_CALLS("mmap_calls", "mmap(2) calls, each with its munmap(2)", NB_MUST_MOVE),
	NB_CALLS("write_calls", "write(2) calls", NB_MUST_MOVE),
	NB_CALLS("short_writes", "write(2) calls that took less than asked", 0),
	{ .name = "mapped_bytes",
	  .about = "bytes mapped",
	  .unit = NB_UNIT_BYTES,
	  .flags = NB_MUST_MOVE },
};

static ssize_t step(struct nb_flow *flow, size_t most)
{
	size_t length = nb_source_clamp(&flow->source, most);
	size_t into = (size_t)flow->source.offset & (flow->page - 1);
	off_t offset = (off_t)(flow->source.offset - into);
	char *map = mmap(NULL, into + length, PROT_READ, MAP_PRIVATE, nb_source_fd(&flow->source),
			 offset);
	ssize_t written;

	if (map == MAP_FAILED)
		return nb_flow_fail_source(flow, "mmap", "use a source that can be mapped");
	nb_count(flow, MAPS, 1);
	nb_count(flow, MAPPED, length);
	written = nb_flow_write(flow, map + into, length, WRITES, SHORT);
	if (munmap(map, into + length))
		return nb_flow_fail(flow, "munmap", "report it as a defect of netbench",
				    "of the source");
	if (written > 0)
		nb_source_advance(&flow->source, (size_t)written);
	return written;
}

const struct nb_method nb_send_mmap = {
	.name = "mmap",
	.about = "mmap(2) a section, write(2) it, munmap(2)",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE,
	.proofs = proofs,
	.proofs_count = NB_LENGTH(proofs),
	.step = step,
};
