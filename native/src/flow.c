/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "clock.h"
#include "ends.h"
#include "pattern.h"

ssize_t nb_flow_fail(struct nb_flow *flow, const char *operation, const char *remedy,
		     const char *what)
{
	if (errno == EPIPE || errno == ECONNRESET || errno == ECONNABORTED)
		remedy = "look at the other side's error";
	return nb_fail_errno(&flow->error, operation, remedy, "%s", what);
}

ssize_t nb_flow_fail_sink(struct nb_flow *flow, const char *operation)
{
	return nb_flow_fail(flow, operation,
			    errno == EINVAL || errno == ENODEV || errno == ESPIPE
				    ? "use a regular file as sink, or another receive method"
				    : "free some space or raise the limit on file sizes (ulimit "
				      "-f), or write bytes: instead of duration:",
			    flow->sink.path[0] ? flow->sink.path : "to the sink");
}

int nb_flow_fill_blocks(struct nb_flow *flow, size_t got, unsigned int calls)
{
	struct nb_sink *sink = &flow->sink;
	size_t whole;

	sink->held += got;
	if (got && sink->held < flow->job->chunk)
		return 0;
	whole = sink->held / sink->block * sink->block;
	if (nb_flow_write_sink(flow, flow->buffer, whole, calls))
		return -1;
	if (whole < sink->held) {
		if (nb_direct_io_end(sink->fd))
			return (int)nb_flow_fail_sink(flow, "write sink");
		if (nb_flow_write_sink(flow, flow->buffer + whole, sink->held - whole, calls))
			return -1;
	}
	sink->held = 0;
	return 0;
}

ssize_t nb_flow_fail_source(struct nb_flow *flow, const char *operation, const char *remedy)
{
	return nb_flow_fail(flow, operation, remedy,
			    flow->job->source_path[0] ? flow->job->source_path : "the source");
}

int nb_flow_unacknowledged(const struct nb_flow *flow)
{
	int queued;

	return !ioctl(flow->socket, SIOCOUTQ, &queued) && queued;
}

ssize_t nb_flow_fail_receive(struct nb_flow *flow, const char *operation)
{
	return nb_flow_later(flow) ? NB_NOTHING
				   : nb_flow_fail(flow, operation, "look at the sender's error",
						  "from the connection");
}

ssize_t nb_flow_fail_write(struct nb_flow *flow)
{
	if (errno == EFAULT) /* a mapped page is beyond the source's end */
		return nb_flow_fail_source(
			flow, "write", "it was cut short: keep the source as it is during a run");
	return nb_flow_fail(flow, "write", "check the path between the data addresses",
			    "to the connection");
}

void nb_flow_poll(const struct nb_flow *flow, short events)
{
	struct pollfd look = { .fd = flow->socket, .events = events };

	poll(&look, 1, -1);
}

int nb_flow_pause(struct nb_flow *flow, uint64_t ns, const char *operation)
{
	const struct timespec time = nb_timespec(ns);
	struct pollfd look = { .fd = flow->socket };
	int ready = ppoll(&look, 1, &time, NULL), reason = 0;
	socklen_t length = sizeof(reason);

	if (ready <= 0 || !(look.revents & POLLHUP)) /* else its error queue holds something */
		return 0;
	if (getsockopt(flow->socket, SOL_SOCKET, SO_ERROR, &reason, &length) || !reason)
		reason = EPIPE;
	errno = reason;
	return (int)nb_flow_fail(flow, operation, "look at the other side's error",
				 "on the connection");
}

int nb_flow_open_buffer(struct nb_flow *flow, struct nb_error *error)
{
	return nb_flow_buffer(flow, flow->job->chunk, error);
}

void *nb_flow_state(struct nb_flow *flow, size_t size, struct nb_error *error)
{
	flow->state = calloc(1, size);
	if (!flow->state)
		nb_fail_memory(error, "the state of a stream");
	return flow->state;
}

int nb_flow_buffer(struct nb_flow *flow, size_t size, struct nb_error *error)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size_t)flow->job->align + size;

	whole = (whole + page - 1) / page * page;
	if (posix_memalign(&flow->allocated, page, whole)) {
		flow->allocated = NULL;
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use a smaller chunk",
			       "no memory for a buffer of %zu bytes", whole);
	}
	flow->buffer = (unsigned char *)flow->allocated + flow->job->align;
	if (flow->job->source == NB_SOURCE_ZERO)
		memset(flow->allocated, 0, whole);
	else
		nb_pattern(flow->allocated, whole, 0);
	return 0;
}
