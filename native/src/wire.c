/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

enum { FIRST_ROOM = 16 * 1024 };

static size_t padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

static int grow(unsigned char **data, size_t *room, size_t wanted)
{
	size_t bigger = *room ? *room : FIRST_ROOM;
	unsigned char *moved;

	while (bigger < wanted)
		bigger *= 2;
	if (bigger == *room)
		return 0;
	moved = realloc(*data, bigger);
	if (!moved)
		return -1;
	*data = moved;
	*room = bigger;
	return 0;
}

static void discard_taken(struct nb_reader *reader)
{
	if (!reader->taken)
		return;
	memmove(reader->data, reader->data + reader->taken, reader->used - reader->taken);
	reader->used -= reader->taken;
	reader->taken = 0;
}

ssize_t nb_reader_fill(struct nb_reader *reader, int fd)
{
	ssize_t got;

	discard_taken(reader);
	if (grow(&reader->data, &reader->room, reader->used + FIRST_ROOM)) {
		errno = ENOMEM;
		return -1;
	}
	do
		got = read(fd, reader->data + reader->used, reader->room - reader->used);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		reader->used += (size_t)got;
	return got;
}

int nb_reader_next(struct nb_reader *reader, struct nb_frame *frame, const unsigned char **payload,
		   struct nb_error *error)
{
	discard_taken(reader);
	if (reader->used < sizeof(*frame))
		return 0;
	memcpy(frame, reader->data, sizeof(*frame));
	if (frame->length > NB_FRAME_MAX)
		return nb_fail(error, NB_ERR_PROTOCOL, "read frame", NB_SAME_VERSION,
			       "a frame of %u bytes is over the limit of %u", frame->length,
			       (unsigned int)NB_FRAME_MAX);
	if (!frame->type || frame->type >= NB_FRAME_TYPES)
		return nb_fail(error, NB_ERR_PROTOCOL, "read frame", NB_SAME_VERSION,
			       "unknown frame type %u", frame->type);
	if (reader->used - sizeof(*frame) < frame->length)
		return 0;
	*payload = reader->data + sizeof(*frame);
	reader->taken = sizeof(*frame) + frame->length;
	return 1;
}

void nb_reader_free(struct nb_reader *reader)
{
	free(reader->data);
	memset(reader, 0, sizeof(*reader));
}

void nb_put(struct nb_writer *writer, const void *bytes, size_t length)
{
	if (!length)
		return;
	if (writer->failed || grow(&writer->data, &writer->room, writer->used + length)) {
		writer->failed = 1;
		return;
	}
	memcpy(writer->data + writer->used, bytes, length);
	writer->used += length;
}

void nb_put_numbers(struct nb_writer *writer, uint32_t row, int edge, uint64_t ns,
		    const uint64_t *numbers, uint32_t count)
{
	struct nb_vector vector = { .row = row, .edge = (uint16_t)edge, .count = count, .ns = ns };

	nb_put(writer, &vector, sizeof(vector));
	nb_put(writer, numbers, count * sizeof(*numbers));
}

void nb_put_text(struct nb_writer *writer, uint32_t row, int edge, const char *text, size_t length)
{
	static const unsigned char zeros[8];
	struct nb_vector vector = {
		.row = row, .edge = (uint16_t)edge, .text = 1, .bytes = (uint32_t)length
	};

	nb_put(writer, &vector, sizeof(vector));
	nb_put(writer, text, length);
	nb_put(writer, zeros, padded(length) - length);
}

void nb_writer_free(struct nb_writer *writer)
{
	free(writer->data);
	memset(writer, 0, sizeof(*writer));
}

static int wait_writable(int fd)
{
	struct pollfd pending = { .fd = fd, .events = POLLOUT };
	int ready = poll(&pending, 1, NB_SILENCE_SECONDS * 1000);

	if (ready == 0)
		errno = ETIMEDOUT;
	return ready > 0 || (ready < 0 && errno == EINTR) ? 0 : -1;
}

int nb_send_frame(int fd, enum nb_frame_type type, uint16_t tag, const void *payload, size_t length)
{
	struct nb_frame frame = { .length = (uint32_t)length, .type = (uint16_t)type, .tag = tag };
	size_t done = 0, whole = sizeof(frame) + length;

	if (length > NB_FRAME_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	while (done < whole) {
		size_t body = done > sizeof(frame) ? done - sizeof(frame) : 0;
		size_t head = done < sizeof(frame) ? done : sizeof(frame);
		struct iovec parts[2] = {
			{ (char *)&frame + head, sizeof(frame) - head },
			{ length ? (char *)(uintptr_t)payload + body : NULL, length - body },
		};
		ssize_t sent = writev(fd, parts, 2);

		if (sent > 0)
			done += (size_t)sent;
		else if (sent < 0 && errno == EAGAIN && wait_writable(fd))
			return -1;
		else if (sent < 0 && errno != EINTR && errno != EAGAIN)
			return -1;
	}
	return 0;
}

int nb_next_value(const unsigned char **at, const unsigned char *end, struct nb_value *value,
		  const char **text, struct nb_error *error)
{
	size_t left = (size_t)(end - *at), text_bytes;

	if (!left)
		return 0;
	if (left < sizeof(*value))
		return nb_fail(error, NB_ERR_PROTOCOL, "read values", NB_SAME_VERSION,
			       "%zu bytes follow the last value", left);
	memcpy(value, *at, sizeof(*value));
	left -= sizeof(*value);
	text_bytes = value->bytes ? padded((size_t)value->bytes + 1) : 0;
	*text = value->bytes ? (const char *)*at + sizeof(*value) : "";
	if (text_bytes > left || (*text)[value->bytes])
		return nb_fail(error, NB_ERR_PROTOCOL, "read values", NB_SAME_VERSION,
			       "a text of %u bytes has no end in the %zu that remain", value->bytes,
			       left);
	*at += sizeof(*value) + text_bytes;
	return 1;
}

static const uint64_t INTERVAL_NS = NB_HEARTBEAT_SECONDS * 1000000000ULL;

static _Thread_local struct nb_heartbeat *current;

void nb_heartbeat_start(struct nb_heartbeat *heartbeat, int out)
{
	*heartbeat = (struct nb_heartbeat){ .out = out, .due = nb_now() + INTERVAL_NS };
	current = heartbeat;
}

void nb_heartbeat_stop(void)
{
	current = NULL;
}

int nb_heartbeat_frame(struct nb_heartbeat *heartbeat, enum nb_frame_type type, uint16_t tag,
		       const void *payload, size_t length)
{
	heartbeat->due = nb_now() + INTERVAL_NS;
	if (!nb_send_frame(heartbeat->out, type, tag, payload, length))
		return 0;
	heartbeat->lost = 1;
	return -1;
}

void nb_heartbeat(void)
{
	if (current && !current->lost && nb_now() >= current->due)
		nb_heartbeat_frame(current, NB_HEARTBEAT, 0, NULL, 0);
}
