/* SPDX-License-Identifier: MIT */
/* Frames that answer the controller. */
#include "worker.h"

void nb_reply_error(struct nb_worker *worker, uint16_t tag, const struct nb_error *error)
{
	nb_heartbeat_frame(&worker->heartbeat, NB_ERROR, tag, error, sizeof(*error));
}

void nb_reply(struct nb_worker *worker, enum nb_frame_type type, uint16_t tag,
	      struct nb_writer *writer)
{
	struct nb_error error;

	if (!writer->failed && writer->used <= NB_FRAME_MAX) {
		nb_heartbeat_frame(&worker->heartbeat, type, tag, writer->data, writer->used);
	} else {
		nb_fail(&error, NB_ERR_MEMORY, "send frame", "use fewer streams",
			"an answer of %zu bytes, at most %d fit", writer->used, NB_FRAME_MAX);
		nb_reply_error(worker, tag, &error);
	}
	nb_writer_free(writer);
}
