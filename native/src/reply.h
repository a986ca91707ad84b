/* SPDX-License-Identifier: MIT */
/* Frames that answer the controller. */
#ifndef NB_REPLY_H
#define NB_REPLY_H

#include "fail.h"
#include "worker.h"

void nb_reply_error(struct nb_worker *worker, uint16_t tag, const struct nb_error *error);
/* Send a payload and free the writer; one that is too long or failed is sent as an error. */
void nb_reply(struct nb_worker *worker, enum nb_frame_type type, uint16_t tag,
	      struct nb_writer *writer);

#endif
