/* SPDX-License-Identifier: MIT */
/*
 * ftruncate(2) extends the sink by a chunk, mmap(2) maps what is new, read(2) fills it from the
 * connection, munmap(2) lets it go. Without a file a chunk of anonymous memory stands for it.
 *
 * Only the kernel touches the mapping, within read(2): a page that the sink cannot give is EFAULT
 * there, never SIGBUS.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { EXTENDS, MAPS, READS, MAPPED };

static const struct nb_field options[] = {
	NB_RECEIVER_OPTIONS,
	[NB_RECEIVER_WAIT] = NB_WAIT_OPTION,
};

static const struct nb_field proofs[] = {
	[EXTENDS] = NB_CALLS("ftruncate_calls", "ftruncate(2) calls that extended the sink", 0),
	[MAPS] = NB_CALLS("mmap_calls", "mmap(2) calls, each with its munmap(2)", NB_MUST_MOVE),
	[READS] = NB_CALLS("read_calls", "read(2) calls into the mapping", NB_MUST_MOVE),
	[MAPPED] = { .name = "mapped_bytes",
		     .about = "bytes read into mappings",
		     .unit = NB_UNIT_BYTES,
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
	flow->state = calloc(1, sizeof(struct extent));
	return flow->state ? 0
			   : nb_fail(error, NB_ERR_MEMORY, "prepare run", "free some memory",
				     "no memory for a mapping's state");
}

static int map_sink(struct nb_flow *flow, struct extent *extent, size_t length)
{
	int fd = flow->sink.fd, flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *map;

	extent->into = fd >= 0 ? (size_t)extent->begin & (flow->page - 1) : 0;
	if (fd >= 0) {
		nb_count(flow, EXTENDS, 1);
		if (ftruncate(fd, extent->begin + (off_t)length))
			return (int)nb_flow_fail_sink(flow, "ftruncate");
	}
	map = mmap(NULL, extent->into + length, PROT_READ | PROT_WRITE, flags, fd,
		   fd >= 0 ? extent->begin - (off_t)extent->into : 0);
	if (map == MAP_FAILED)
		return (int)nb_flow_fail_sink(flow, "mmap");
	nb_count(flow, MAPS, 1);
	extent->map = map;
	extent->length = length;
	extent->filled = 0;
	return 0;
}

/* Let go what is mapped. A sink that ends within it is cut where the bytes end. */
static int unmap(struct nb_flow *flow)
{
	struct extent *extent = flow->state;
	int status = munmap(extent->map, extent->into + extent->length);

	extent->map = NULL;
	extent->begin += (off_t)extent->filled;
	if (!status && flow->sink.fd >= 0 && extent->filled < extent->length)
		status = ftruncate(flow->sink.fd, extent->begin);
	return status ? (int)nb_flow_fail_sink(flow, "end mapping") : 0;
}

/* read(2) found no page to write to: the sink was cut short, or has no room, which a write(2) of
 * one byte tells. */
static ssize_t fail_fault(struct nb_flow *flow)
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

static ssize_t step(struct nb_flow *flow, size_t most)
{
	struct extent *extent = flow->state;
	ssize_t got;

	if (!extent->map && map_sink(flow, extent, most))
		return -1;
	do {
		nb_flow_await(flow, POLLIN);
		got = nb_read(flow->socket, extent->map + extent->into + extent->filled,
			      extent->length - extent->filled);
		nb_count(flow, READS, 1);
	} while (got < 0 && nb_flow_again(flow));
	if (got < 0)
		return errno == EFAULT ? fail_fault(flow)
				       : nb_flow_fail(flow, "read", "look at the sender's error",
						      "from the connection");
	nb_count(flow, MAPPED, (uint64_t)got);
	extent->filled += (size_t)got;
	if ((!got || extent->filled == extent->length) && unmap(flow))
		return -1;
	return got;
}

static void close_extent(struct nb_flow *flow)
{
	struct extent *extent = flow->state;

	if (extent && extent->map)
		unmap(flow);
	free(extent);
	flow->state = NULL;
}

const struct nb_method nb_receive_mmap = {
	.name = "mmap",
	.about = "ftruncate(2) and mmap(2) what the sink grows by, read(2) into it, munmap(2)",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE,
	.options = options,
	.options_count = NB_LENGTH(options),
	.proofs = proofs,
	.proofs_count = NB_LENGTH(proofs),
	.open = open_extent,
	.connected = nb_socket_options_set_wait,
	.step = step,
	.close = close_extent,
};
