/* SPDX-License-Identifier: MIT */
/* A worker: one controller on two descriptors, at most one run, and what undoes its operations. */
#ifndef NB_WORKER_H
#define NB_WORKER_H

#include "fail.h"
#include "ops/client.h"
#include "run.h"
#include "wire.h"

struct nb_worker {
	enum nb_duty duty;
	struct nb_client client;
	int in; /* from the controller */
	struct nb_reader reader;
	struct nb_heartbeat heartbeat; /* to the controller */
	struct nb_run *run;	       /* under way, or NULL */
	struct nb_undo_entry *undo;
	uint64_t heard_at; /* when the controller last sent something */
	int greeted;	   /* its hello has been checked */
	int leaving;
	const char *why; /* it leaves by itself; NULL: the controller said so, or is lost */
};

void nb_reply_error(struct nb_worker *worker, uint16_t tag, const struct nb_error *error);
/* Send a payload and free the writer; one that is too long or failed is sent as an error. */
void nb_reply(struct nb_worker *worker, enum nb_frame_type type, uint16_t tag,
	      struct nb_writer *writer);

/* Prepare the run of a NB_JOB frame's payload and answer NB_READY or NB_ERROR. */
void nb_worker_start_run(struct nb_worker *worker, uint16_t tag, const unsigned char *payload,
			 size_t length);
/* Carry out GO, MARK, STOP, PRINTED or ABORT. */
void nb_worker_order(struct nb_worker *worker, const struct nb_frame *frame,
		     const unsigned char *payload);
/* Handle the run's events and tell the controller. */
void nb_worker_dispatch(struct nb_worker *worker);
/* Leave as soon as the present frame is handled, for a reason that the controller is told. */
void nb_worker_leave(struct nb_worker *worker, const char *why);
/* Give up the run, if there is one; the worker leaves when that is not possible. */
void nb_worker_end_run(struct nb_worker *worker);

/* The payload of this worker's hello: struct nb_hello, then its rows. */
void nb_hello_write(struct nb_writer *writer);
/* Whether a controller's hello fits this worker: 0, or a negative code with the error filled. */
int nb_hello_check(const unsigned char *payload, size_t length, struct nb_error *error);

/* Become this user for good, with their groups, in their home, and with no way to more rights;
 * nothing of the environment, and no key of the session, comes along. "": stay who one is. Takes
 * root, unless one is that user. 0, or a negative code with the error filled. */
int nb_become(const char *user, struct nb_error *error);

#endif
