/* SPDX-License-Identifier: MIT */
/* read(2) from the source into the user's buffer, write(2) from there to the connection. */
#include <errno.h>
#include <unistd.h>

#include "../direct.h"
#include "../method.h"
#include "socket_options.h"

enum { READS, WRITES, SHORT };

static const struct nb_field proofs[] = {
	NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	NB_CALLS("write_calls", "write(2) calls", NB_MUST_MOVE),
	NB_CALLS("short_writes", "write(2) calls that took less than asked", 0),
};

static int open_buffer(struct nb_flow *flow, struct nb_error *error)
{
	uint64_t size = flow->job->chunk ? flow->job->chunk : flow->source.largest;

	if (size > 1ULL << 30)
		return nb_fail(error, NB_ERR_REQUEST, "prepare run", "give a size as chunk",
			       "a file of %llu bytes does not fit in one buffer of at most 1 GiB",
			       (unsigned long long)size);
	return nb_flow_buffer(flow, nb_source_blocks(&flow->source, (size_t)size), error);
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	size_t length = nb_source_clamp(&flow->source, most);
	size_t asked = nb_source_blocks(&flow->source, length);
	const struct nb_range *range = &flow->source.ranges[flow->source.at];
	ssize_t got;

	do {
		got = nb_read(range->fd, flow->buffer, asked);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail_source(flow, "read", "check the disk that holds the source");
	if (got == 0)
		return 0;
	if (got > (ssize_t)length) /* the rest of a block is not the stream's, or not of this run */
		got = (ssize_t)length;
	if (nb_source_advance(&flow->source, (size_t)got) &&
	    lseek(range->fd, (off_t)range->begin, SEEK_SET) < 0)
		return nb_flow_fail_source(flow, "lseek", "use a source that can be read again");
	return nb_flow_write(flow, flow->buffer, (size_t)got, WRITES, SHORT);
}

static ssize_t resume(struct nb_flow *flow, const unsigned char *from, size_t length)
{
	return nb_flow_write(flow, from, length, WRITES, SHORT);
}

const struct nb_method nb_send_readwrite = {
	.name = "readwrite",
	.about = "read(2) into a buffer, then write(2)",
	.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE | NB_WHOLE_FILE |
		 NB_BUFFERS | NB_DIRECT,
	NB_TABLE_OF(options, nb_sender_options),
	NB_TABLE(proofs),
	.open = open_buffer,
	.connected = nb_socket_options_share,
	.step = step,
	.resume = resume,
};
