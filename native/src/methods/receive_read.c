/* SPDX-License-Identifier: MIT */
/* read(2) from the connection into a buffer; with a file as sink, write(2) from there. */
#include <errno.h>

#include "../direct.h"
#include "../method.h"

enum { READS, WRITES };

static const struct nb_field proofs[] = {
	NB_CALLS("read_calls", "read(2) calls", NB_MUST_MOVE),
	NB_CALLS("sink_write_calls", "write(2) calls to the sink", 0),
};

static int open_buffer(struct nb_flow *flow, struct nb_error *error)
{
	return nb_flow_buffer(flow, flow->job->chunk, error);
}

static int write_sink(struct nb_flow *flow, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t written = nb_write(flow->sink.fd, flow->buffer + done, length - done);

		nb_count(flow, WRITES, 1);
		if (written < 0 && errno != EINTR)
			return (int)nb_flow_fail_sink(flow, "write sink");
		if (written > 0)
			done += (size_t)written;
	}
	return 0;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	ssize_t got;

	do {
		got = nb_read(flow->socket, flow->buffer, most);
		nb_count(flow, READS, 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return nb_flow_fail(flow, "read", "look at the sender's error",
				    "from the connection");
	if (got > 0 && flow->sink.fd >= 0 && write_sink(flow, (size_t)got))
		return -1;
	return got;
}

const struct nb_method nb_receive_read = {
	.name = "read",
	.about = "read(2) into a buffer; write(2) to a file sink",
	.flags = NB_DELIVERS | NB_TO_DISCARD | NB_TO_FILE | NB_BUFFERS,
	.proofs = proofs,
	.proofs_count = NB_LENGTH(proofs),
	.open = open_buffer,
	.step = step,
};
