/* SPDX-License-Identifier: MIT */
#include "test_controller.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rows.h"

static void *serve(void *argument)
{
	struct test_controller *controller = argument;

	controller->code =
		nb_serve(controller->theirs_in, controller->theirs_out, controller->duty, "");
	close(controller->theirs_in);
	if (controller->theirs_out != controller->theirs_in)
		close(controller->theirs_out);
	return NULL;
}

static void start_on(struct test_controller *controller, enum nb_duty duty, const int *to,
		     const int *from)
{
	memset(controller, 0, sizeof(*controller));
	controller->duty = duty;
	controller->theirs_in = to[0];
	controller->out = to[1];
	controller->in = from[0];
	controller->theirs_out = from[1];
	assert_int_equal(0, pthread_create(&controller->thread, NULL, serve, controller));
}

static void start_over_pipes(struct test_controller *controller, enum nb_duty duty)
{
	int to[2], from[2];

	assert_int_equal(0, pipe2(to, O_CLOEXEC));
	assert_int_equal(0, pipe2(from, O_CLOEXEC));
	start_on(controller, duty, to, from);
}

void controller_start(struct test_controller *controller)
{
	start_over_pipes(controller, NB_MOVER);
}

static void exchange_hellos(struct test_controller *controller)
{
	const unsigned char *payload;
	struct nb_hello hello;
	struct nb_frame frame = controller_next(controller, &payload);

	assert_int_equal(NB_HELLO, frame.type);
	nb_fill_hello(&hello);
	controller_send(controller, NB_HELLO, &hello, sizeof(hello));
}

void controller_open(struct test_controller *controller)
{
	controller_start(controller);
	exchange_hellos(controller);
}

void controller_open_helper(struct test_controller *controller)
{
	start_over_pipes(controller, NB_HELPER);
	exchange_hellos(controller);
}

void controller_open_socket(struct test_controller *controller)
{
	int ends[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	start_on(controller, NB_MOVER, (int[]){ ends[0], ends[1] }, (int[]){ ends[1], ends[0] });
	exchange_hellos(controller);
}

int controller_vanish(struct test_controller *controller)
{
	close(controller->out);
	if (controller->in != controller->out)
		close(controller->in);
	assert_int_equal(0, pthread_join(controller->thread, NULL));
	nb_reader_free(&controller->reader);
	return controller->code;
}

int controller_close(struct test_controller *controller)
{
	nb_send_frame(controller->out, NB_BYE, 0, NULL, 0);
	return controller_vanish(controller);
}

void controller_send(struct test_controller *controller, enum nb_frame_type type,
		     const void *payload, size_t length)
{
	assert_int_equal(0, nb_send_frame(controller->out, type, controller->tag, payload, length));
}

void controller_request(struct test_controller *controller, enum nb_frame_type type,
			struct nb_writer *writer)
{
	assert_false(writer->failed);
	controller->tag++;
	controller_send(controller, type, writer->data, writer->used);
	nb_writer_free(writer);
}

struct nb_frame controller_next(struct test_controller *controller, const unsigned char **payload)
{
	struct pollfd pending = { .fd = controller->in, .events = POLLIN };
	struct nb_frame frame;
	struct nb_error error;

	for (;;) {
		int status = nb_reader_next(&controller->reader, &frame, payload, &error);

		if (status < 0)
			fail_msg("%s", error.message);
		if (status && frame.type != NB_HEARTBEAT)
			return frame;
		if (status)
			continue;
		if (poll(&pending, 1, PATIENCE_MS) != 1)
			fail_msg("the worker says nothing");
		if (nb_reader_fill(&controller->reader, controller->in) <= 0)
			fail_msg("the worker hung up");
	}
}

static struct vectors copy_payload(const struct nb_frame *frame, const unsigned char *payload)
{
	struct vectors vectors = { malloc(frame->length + 1), frame->length };

	assert_non_null(vectors.data);
	memcpy(vectors.data, payload, frame->length);
	return vectors;
}

static void refuse(const struct nb_frame *frame, const unsigned char *payload, const char *wanted)
{
	struct nb_error error = { 0 };

	if (frame->type == NB_ERROR && frame->length == sizeof(error))
		memcpy(&error, payload, sizeof(error));
	fail_msg("frame type %u where %s was expected; %s: %s", frame->type, wanted,
		 error.operation, error.message);
}

struct vectors controller_await(struct test_controller *controller, enum nb_frame_type type)
{
	const unsigned char *payload;
	struct nb_frame frame;

	do
		frame = controller_next(controller, &payload);
	while (frame.type != type && (frame.type == NB_EDGE || frame.type == NB_SAMPLES));
	if (frame.type != type)
		refuse(&frame, payload, "another");
	assert_int_equal(controller->tag, frame.tag);
	return copy_payload(&frame, payload);
}

struct vectors controller_edge(struct test_controller *controller, enum nb_edge edge)
{
	const unsigned char *payload;
	struct nb_frame frame = controller_next(controller, &payload);
	uint32_t head[2];

	if (frame.type != NB_EDGE)
		refuse(&frame, payload, "an edge");
	assert_true(frame.length >= sizeof(head));
	memcpy(head, payload, sizeof(head));
	assert_int_equal(edge, head[0]);
	frame.length -= sizeof(head);
	return copy_payload(&frame, payload + sizeof(head));
}

struct nb_error controller_error(struct test_controller *controller)
{
	const unsigned char *payload;
	struct nb_frame frame;
	struct nb_error error;

	do
		frame = controller_next(controller, &payload);
	while (frame.type == NB_EDGE || frame.type == NB_SAMPLES);
	if (frame.type != NB_ERROR)
		refuse(&frame, payload, "an error");
	assert_int_equal(sizeof(error), frame.length);
	memcpy(&error, payload, sizeof(error));
	return error;
}

uint16_t row_named(const char *owner, const char *name)
{
	const struct nb_row *row;

	for (uint32_t id = 0; (row = nb_row(id)) != NULL; id++) {
		const struct nb_row *theirs = nb_row(row->owner);

		if (!strcmp(row->name, name) && !strcmp(theirs ? theirs->name : "", owner))
			return row->id;
	}
	fail_msg("no row %s of '%s'", name, owner);
	return NB_NO_ROW;
}

void put_number(struct nb_writer *writer, const char *name, uint64_t number)
{
	struct nb_value value = { .row = row_named("", name), .number = number };

	nb_put(writer, &value, sizeof(value));
}

void put_bytes(struct nb_writer *writer, uint16_t row, const void *bytes, size_t length)
{
	static const char zeros[8];
	struct nb_value value = { .row = row, .bytes = (uint32_t)length };

	nb_put(writer, &value, sizeof(value));
	nb_put(writer, bytes, length);
	nb_put(writer, zeros, length ? 8 - length % 8 : 0);
}

void put_text(struct nb_writer *writer, const char *name, const char *text)
{
	put_bytes(writer, row_named("", name), text, strlen(text));
}

/* Rows of that name; where a send and a receive method share theirs, the owner's name alone does
 * not tell them apart. */
static int is_row(uint32_t id, const char *owner, const char *name)
{
	const struct nb_row *row = nb_row(id), *theirs = row ? nb_row(row->owner) : NULL;

	return row && !strcmp(row->name, name) && !strcmp(theirs ? theirs->name : "", owner);
}

static const unsigned char *find(const struct vectors *vectors, const char *owner, const char *name,
				 int edge, struct nb_vector *head)
{
	for (size_t at = 0; at < vectors->length;) {
		const unsigned char *body = vectors->data + at + sizeof(*head);

		assert_true(vectors->length - at >= sizeof(*head));
		memcpy(head, vectors->data + at, sizeof(*head));
		at += sizeof(*head) +
		      (head->text ? (head->bytes + 7) / 8 * 8 : head->count * sizeof(uint64_t));
		assert_true(at <= vectors->length);
		if (is_row(head->row, owner, name) && head->edge == edge)
			return body;
	}
	return NULL;
}

int vector_is(const struct vectors *vectors, const char *owner, const char *name, int edge)
{
	struct nb_vector head;

	return find(vectors, owner, name, edge, &head) != NULL;
}

static const unsigned char *must_find(const struct vectors *vectors, const char *owner,
				      const char *name, int edge, struct nb_vector *head)
{
	const unsigned char *body = find(vectors, owner, name, edge, head);

	if (!body)
		fail_msg("no vector %s of '%s' at edge %d", name, owner, edge);
	return body;
}

uint64_t vector_number(const struct vectors *vectors, const char *owner, const char *name, int edge,
		       size_t item)
{
	struct nb_vector head;
	const unsigned char *body = must_find(vectors, owner, name, edge, &head);
	uint64_t number;

	assert_true(!head.text && item < head.count);
	memcpy(&number, body + item * sizeof(number), sizeof(number));
	return number;
}

uint64_t vector_ns(const struct vectors *vectors, const char *owner, const char *name, int edge)
{
	struct nb_vector head;

	must_find(vectors, owner, name, edge, &head);
	return head.ns;
}

void vectors_free(struct vectors *vectors)
{
	free(vectors->data);
	memset(vectors, 0, sizeof(*vectors));
}

char *temporary_file(const void *bytes, size_t length)
{
	const char *folder = getenv("TMPDIR");
	char *path;
	int fd;

	assert_true(asprintf(&path, "%s/netbench-test-XXXXXX", folder ? folder : "/tmp") > 0);
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(length, write(fd, bytes, length));
	close(fd);
	return path;
}

void forget_file(char *path)
{
	unlink(path);
	free(path);
}

int file_holds(const char *path, const void *bytes, size_t length)
{
	char *text = malloc(length + 2);
	FILE *file = fopen(path, "re");
	size_t got;
	int same;

	assert_true(text && file);
	got = fread(text, 1, length + 1, file);
	same = got == length && !memcmp(text, bytes, length);
	fclose(file);
	free(text);
	return same;
}
