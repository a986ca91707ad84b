/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "heartbeat.h"
#include "method.h"

enum {
	FETCHED = 8 * 1024 * 1024
}; /* bytes of a file that both sides digest where nobody sends them */

int nb_run_control_open(struct nb_run_control *control, struct nb_error *error)
{
	memset(control, 0, sizeof(*control));
	pthread_mutex_init(&control->lock, NULL);
	pthread_cond_init(&control->moved, NULL);
	control->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return control->notify >= 0
		       ? 0
		       : nb_fail_errno(error, "prepare run",
				       "raise the limit on open files (ulimit -n)", "eventfd");
}

void nb_run_control_move(struct nb_run_control *control, enum nb_gate gate)
{
	pthread_mutex_lock(&control->lock);
	control->gate = gate;
	pthread_cond_broadcast(&control->moved);
	pthread_mutex_unlock(&control->lock);
}

void nb_run_control_close(struct nb_run_control *control)
{
	close(control->notify);
	pthread_cond_destroy(&control->moved);
	pthread_mutex_destroy(&control->lock);
}

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
			    "free some space, or write bytes: instead of duration:",
			    flow->sink.path[0] ? flow->sink.path : "to the sink");
}

ssize_t nb_flow_fail_source(struct nb_flow *flow, const char *operation, const char *remedy)
{
	return nb_flow_fail(flow, operation, remedy,
			    flow->job->source_path[0] ? flow->job->source_path : "the source");
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
	nb_pattern(flow->allocated, whole, 0);
	return 0;
}

int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error)
{
	uint64_t left = atomic_load_explicit(&flow->bytes, memory_order_relaxed),
		 preamble = flow->job->preamble;
	static const unsigned char zeros[4096];

	*digest = NB_DIGEST_START;
	if (flow->method->flags & NB_FETCHES)
		return nb_source_digest(&flow->source,
					flow->source.largest < FETCHED ? flow->source.largest
								       : FETCHED,
					digest, error);
	if (flow->job->role == NB_ROLE_RECEIVE)
		return nb_sink_digest(&flow->sink, left, digest, error);
	for (uint64_t done = 0; done < preamble && left; done += sizeof(zeros)) {
		size_t length =
			preamble - done < sizeof(zeros) ? (size_t)(preamble - done) : sizeof(zeros);

		*digest = nb_digest(*digest, zeros, length);
		left -= length;
	}
	if (flow->source.count)
		return nb_source_digest(&flow->source, left, digest, error);
	while (left) {
		size_t length = left < flow->job->chunk ? (size_t)left : (size_t)flow->job->chunk;

		nb_heartbeat();
		*digest = nb_digest(*digest, flow->buffer, length);
		left -= length;
	}
	return 0;
}

/* Whether the flow takes bytes from descriptors, memory and zero among them, or from the user's
 * buffer or the connection. */
static int takes_from_source(const struct nb_flow *flow)
{
	const struct nb_job *job = flow->job;
	int named = job->source == NB_SOURCE_FILE || job->source == NB_SOURCE_FILES;

	if (flow->method->flags & NB_FETCHES)
		return 1;
	return job->role == NB_ROLE_SEND && flow->method->flags & NB_FROM_FILE &&
	       (named || !(flow->method->flags & NB_FROM_BUFFER));
}

int nb_flow_open(struct nb_flow *flow, struct nb_error *error)
{
	int status = 0;

	flow->page = (size_t)sysconf(_SC_PAGESIZE);
	flow->sink.fd = -1;
	if (takes_from_source(flow))
		status = nb_source_open(&flow->source, flow->job, error);
	else if (flow->job->role == NB_ROLE_RECEIVE)
		status = nb_sink_open(&flow->sink, flow->job, flow->index, error);
	if (!status && flow->job->role == NB_ROLE_SEND && !flow->job->chunk &&
	    (!flow->source.count || flow->source.largest == NB_MISSING))
		status = nb_fail(
			error, NB_ERR_REQUEST, "prepare run", "give a size as chunk",
			"chunk: file sends a whole file a call, and this source has no end");
	if (!status && flow->method->open)
		status = flow->method->open(flow, error);
	return status;
}

void nb_flow_close(struct nb_flow *flow)
{
	if (flow->method && flow->method->close)
		flow->method->close(flow);
	nb_source_close(&flow->source);
	nb_sink_close(&flow->sink);
	free(flow->allocated);
	flow->allocated = NULL;
	if (flow->socket >= 0)
		close(flow->socket);
	flow->socket = -1;
}
