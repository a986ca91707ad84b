/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>
#include <unistd.h>

#include "method.h"
#include "pattern.h"
#include "wire.h"

/* Bytes of a file that both sides digest where neither sends them. */
enum { FETCHED_BYTES = 8 * 1024 * 1024 };

int nb_flow_digest(const struct nb_flow *flow, uint64_t *digest, struct nb_error *error)
{
	uint64_t left = atomic_load_explicit(&flow->bytes, memory_order_relaxed),
		 preamble = flow->job->preamble;
	static const unsigned char zeros[4096];

	*digest = NB_DIGEST_START;
	if (flow->method->flags & NB_FETCHES)
		return nb_source_digest(&flow->source,
					flow->source.largest < FETCHED_BYTES ? flow->source.largest
									     : FETCHED_BYTES,
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

/* `chunk: file` needs a source of files with an end. */
static int check_chunk(const struct nb_flow *flow, struct nb_error *error)
{
	if (flow->job->role != NB_ROLE_SEND || flow->job->chunk ||
	    (flow->source.count && flow->source.largest != NB_MISSING))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "prepare run", "give a size as chunk",
		       "chunk: file sends a whole file a call, and this source has no end");
}

int nb_flow_open(struct nb_flow *flow, struct nb_error *error)
{
	int status = 0;

	flow->page = (size_t)sysconf(_SC_PAGESIZE);
	flow->sink.fd = -1;
	if (takes_from_source(flow))
		status = nb_source_open(&flow->source, flow->job, flow->index, error);
	else if (flow->job->role == NB_ROLE_RECEIVE)
		status = nb_sink_open(&flow->sink, flow->job, flow->index, error);
	if (status)
		return status;
	status = check_chunk(flow, error);
	return status || !flow->method->open ? status : flow->method->open(flow, error);
}

int nb_flow_ask(const struct nb_flow *flow, struct nb_error *error)
{
	const struct nb_job *job = flow->job;

	if (job->role == NB_ROLE_RECEIVE)
		return nb_sink_ask(job, error);
	return job->source == NB_SOURCE_FILE && takes_from_source(flow) ? nb_source_ask(job, error)
									: 0;
}

void nb_flow_close(struct nb_flow *flow)
{
	if (flow->method && flow->method->close)
		flow->method->close(flow);
	free(flow->state);
	flow->state = NULL;
	nb_source_close(&flow->source);
	nb_sink_close(&flow->sink);
	free(flow->allocated);
	flow->allocated = NULL;
	if (flow->socket >= 0)
		close(flow->socket);
	flow->socket = -1;
}
