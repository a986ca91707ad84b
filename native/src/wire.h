/* SPDX-License-Identifier: MIT */
/* Frames: a bounded reader, and writers of values and vectors. Nothing here knows what a frame
 * means. */
#ifndef NB_WIRE_H
#define NB_WIRE_H

#include "fail.h"

struct nb_reader {
	unsigned char *data;
	size_t used;
	size_t room;
	size_t taken; /* bytes of the frame handed out last */
};

/* Read what is there from fd. Returns bytes read, 0 at the end of the stream, -1 with errno
 * (EAGAIN: nothing yet). */
ssize_t nb_reader_fill(struct nb_reader *reader, int fd);
/* The next whole frame: 1 and *frame, *payload (valid until the next call); 0: not here yet; <0:
 * malformed. */
int nb_reader_next(struct nb_reader *reader, struct nb_frame *frame, const unsigned char **payload,
		   struct nb_error *error);
void nb_reader_free(struct nb_reader *reader);

/* A payload that grows. A failed allocation sticks in `failed` and is reported when it is sent. */
struct nb_writer {
	unsigned char *data;
	size_t used;
	size_t room;
	int failed;
};

void nb_put(struct nb_writer *writer, const void *bytes, size_t length);
void nb_put_numbers(struct nb_writer *writer, uint32_t row, int edge, uint64_t ns,
		    const uint64_t *numbers, uint32_t count);
void nb_put_text(struct nb_writer *writer, uint32_t row, int edge, const char *text, size_t length);
void nb_writer_free(struct nb_writer *writer);

/* Send one frame whole. Returns 0 or -1 with errno. */
int nb_send_frame(int fd, enum nb_frame_type type, uint16_t tag, const void *payload,
		  size_t length);

/* Walk the values of a job or operation: 1 and *value, *text (with its end, in the payload); 0 at
 * the end; <0: malformed. */
int nb_next_value(const unsigned char **at, const unsigned char *end, struct nb_value *value,
		  const char **text, struct nb_error *error);

/* Heartbeats fill the pauses between the frames to the controller. */

struct nb_heartbeat {
	int out;      /* to the controller */
	uint64_t due; /* when the controller must get the next frame */
	int lost;     /* it reads no more frames, or is gone */
};

/* Start on the thread that serves the controller; stop before the struct is freed. */
void nb_heartbeat_start(struct nb_heartbeat *heartbeat, int out);
void nb_heartbeat_stop(void);
/* Send a frame; the next heartbeat is due a while later. A failure is kept in `lost`. 0 or -1. */
int nb_heartbeat_frame(struct nb_heartbeat *heartbeat, enum nb_frame_type type, uint16_t tag,
		       const void *payload, size_t length);
/* Send a heartbeat when it is due. Work of unknown length on the serving thread calls this now and
 * then (making and reading files, waiting for a program). On any other thread it does nothing. */
void nb_heartbeat(void);

#endif
