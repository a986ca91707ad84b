/* SPDX-License-Identifier: MIT */
/* ftruncate(2) extends the sink by a chunk, mmap(2) maps what is new, read(2) fills it from the
 * connection, munmap(2) lets it go. Without a file a chunk of anonymous memory stands for it.
 *
 * Only the kernel touches the mapping, within read(2): a page that the sink cannot give is EFAULT
 * there, never SIGBUS. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { EXTENDS, MAPS, READS, MAPPED };

static const struct nb_field proofs[] = {
	[EXTENDS] = NB_CALLS("ftruncate_calls", "ftruncate(2) calls that extended the sink", 0),
	[MAPS] = NB_CALLS("mmap_calls", "mmap(2) calls, each with its munmap(2)", NB_MUST_MOVE),
	[READS] = NB_CALLS("read_calls", "read(2) calls into the mapping", NB_MUST_MOVE),
	[MAPPED] = { "mapped_bytes", "bytes read into mappings", .unit = NB_UNIT_BYTES,
		     .flags = NB_MUST_MOVE },
};

/* What is mapped now, and how far it is filled. */
struct extent {
	unsigned char *map; /* NULL: nothing */
	size_t into;	    /* from the page that it starts in to its first byte */
	size_t length;
	size_t filled;
	off_t begin; /* in the sink */
};

static int open_extent(struct nb_flow *flow, struct nb_error *error)
{
	return nb_flow_state(flow, sizeof(struct extent), error) ? 0 : -NB_ERR_MEMORY;
}

/* The next `length` bytes of the sink. 0, or negative. */
static inline ssize_t map_sink(struct nb_flow *flow, struct extent *extent, size_t length)
{
	int fd = flow->sink.fd, flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	size_t into = fd >= 0 ? (size_t)extent->begin & (flow->page - 1) : 0;
	unsigned char *map;

	if (fd >= 0) {
		nb_count(flow, EXTENDS, 1);
		if (nb_ftruncate(fd, extent->begin + (off_t)length))
			return nb_flow_fail_sink(flow, "ftruncate");
	}
	map = nb_mmap(into + length, PROT_READ | PROT_WRITE, flags, fd,
		      fd >= 0 ? extent->begin - (off_t)into : 0);
	if (map == MAP_FAILED)
		return nb_flow_fail_sink(flow, "mmap");
	nb_count(flow, MAPS, 1);
	extent->map = map;
	extent->into = into;
	extent->length = length;
	extent->filled = 0;
	return 0;
}

/* Let go what is mapped. 0, or negative. */
static inline ssize_t unmap(struct nb_flow *flow, struct extent *extent)
{
	if (nb_munmap(extent->map, extent->into + extent->length))
		return nb_flow_fail_sink(flow, "munmap");
	extent->map = NULL;
	extent->begin += (off_t)extent->filled;
	return 0;
}

/* The same at the end of the stream: a sink that ends within the mapping is cut at its bytes. */
static ssize_t end_mapping(struct nb_flow *flow, struct extent *extent)
{
	ssize_t status = unmap(flow, extent);

	if (!status && flow->sink.fd >= 0 && extent->filled < extent->length &&
	    ftruncate(flow->sink.fd, extent->begin))
		status = nb_flow_fail_sink(flow, "ftruncate");
	return status;
}

/* read(2) found no page to write to: the sink was cut short, or has no room, which a write(2) of
 * one byte tells. */
static __attribute__((noinline)) ssize_t fail_fault(struct nb_flow *flow)
{
	const struct extent *extent = flow->state;
	off_t at = extent->begin + (off_t)extent->filled;
	struct stat status;

	if (flow->sink.fd >= 0 && !fstat(flow->sink.fd, &status) && status.st_size <= at) {
		errno = EFAULT;
		return nb_flow_fail(flow, "read",
				    "it was cut short: keep the sink as it is during a run",
				    flow->sink.path[0] ? flow->sink.path : "to the sink");
	}
	if (flow->sink.fd < 0 || pwrite(flow->sink.fd, "", 1, at) == 1)
		errno = EFAULT;
	return nb_flow_fail_sink(flow, "read");
}

static inline ssize_t read_some(struct nb_flow *flow, struct extent *extent)
{
	ssize_t got = nb_read(flow->socket, extent->map + extent->into + extent->filled,
			      extent->length - extent->filled);

	nb_count(flow, READS, 1);
	return got;
}

/* Bytes have come into the mapping; the last that it has room for end it. */
static inline ssize_t take(struct nb_flow *flow, struct extent *extent, ssize_t got)
{
	ssize_t status;

	nb_count(flow, MAPPED, (uint64_t)got);
	extent->filled += (size_t)got;
	if (extent->filled < extent->length)
		return got;
	status = unmap(flow, extent);
	return status ? status : got;
}

static __attribute__((noinline)) ssize_t read_again(struct nb_flow *flow, struct extent *extent,
						    ssize_t got)
{
	while (got < 0 && errno == EINTR)
		got = read_some(flow, extent);
	if (got > 0)
		return take(flow, extent, got);
	if (!got)
		return end_mapping(flow, extent);
	return errno == EFAULT ? fail_fault(flow) : nb_flow_fail_receive(flow, "read");
}

/* The usual case is one call of each kind, and is what a chunk costs. */
static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct extent *extent = flow->state;
	ssize_t got = extent->map ? 0 : map_sink(flow, extent, most);

	if (got)
		return got;
	got = read_some(flow, extent);
	return __builtin_expect(got > 0, 1) ? take(flow, extent, got)
					    : read_again(flow, extent, got);
}

static void close_extent(struct nb_flow *flow)
{
	struct extent *extent = flow->state;

	if (extent && extent->map)
		end_mapping(flow, extent);
}

const struct nb_method nb_receive_mmap = {
	.name = "mmap",
	.about = "ftruncate(2) and mmap(2) what the sink grows by, read(2) into it, munmap(2)",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE,
	NB_TABLE_OF(options, nb_receiver_options),
	NB_TABLE(proofs),
	.open = open_extent,
	.connected = nb_socket_options_share,
	.step = step,
	.close = close_extent,
};
