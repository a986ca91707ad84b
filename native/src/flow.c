/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <stdlib.h>

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
