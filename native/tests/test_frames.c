/* SPDX-License-Identifier: MIT */
/* Frames, values and vectors: everything that a broken or hostile other side can say must end in an
 * error, never past a buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_controller.h"

static int next(struct nb_reader *reader, struct nb_frame *frame, const unsigned char **payload)
{
	struct nb_error error;

	return nb_reader_next(reader, frame, payload, &error);
}

static void feed(struct nb_reader *reader, int *pipe_ends, const void *bytes, size_t length)
{
	assert_int_equal(length, write(pipe_ends[1], bytes, length));
	assert_int_equal(length, nb_reader_fill(reader, pipe_ends[0]));
}

static void reader_takes_frames_byte_by_byte(void **state)
{
	struct nb_frame sent[2] = { { .length = 3, .type = NB_GO, .tag = 7 },
				    { .length = 0, .type = NB_HEARTBEAT, .tag = 8 } },
			frame;
	unsigned char bytes[2 * sizeof(struct nb_frame) + 3];
	const unsigned char *payload;
	struct nb_reader reader = { 0 };
	int ends[2], frames = 0;

	(void)state;
	memcpy(bytes, &sent[0], sizeof(sent[0]));
	memcpy(bytes + sizeof(sent[0]), "abc", 3);
	memcpy(bytes + sizeof(sent[0]) + 3, &sent[1], sizeof(sent[1]));
	assert_int_equal(0, pipe(ends));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		feed(&reader, ends, bytes + i, 1);
		while (next(&reader, &frame, &payload) == 1) {
			assert_memory_equal(&sent[frames], &frame, sizeof(frame));
			assert_memory_equal("abc", payload, frame.length);
			frames++;
			/* A frame is whole with its last byte and not before. */
			assert_int_equal(frames == 1 ? sizeof(frame) + 2 : sizeof(bytes) - 1, i);
		}
	}
	assert_int_equal(2, frames);
	nb_reader_free(&reader);
	close(ends[0]);
	close(ends[1]);
}

static void reader_hands_out_frames_that_came_together(void **state)
{
	enum { FRAMES = 500 };
	struct nb_frame frame;
	const unsigned char *payload;
	struct nb_reader reader = { 0 };
	size_t whole = 0;
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe(ends));
	for (uint16_t tag = 0; tag < FRAMES; tag++)
		assert_int_equal(0,
				 nb_send_frame(ends[1], NB_SAMPLES, tag, "0123456789", tag % 11));
	for (uint16_t tag = 0; tag < FRAMES; tag++)
		whole += sizeof(frame) + tag % 11;
	while (reader.used < whole)
		assert_true(nb_reader_fill(&reader, ends[0]) > 0);
	for (uint16_t tag = 0; tag < FRAMES; tag++) {
		assert_int_equal(1, next(&reader, &frame, &payload));
		assert_int_equal(tag, frame.tag);
		assert_int_equal(tag % 11, frame.length);
		assert_memory_equal("0123456789", payload, frame.length);
	}
	assert_int_equal(0, next(&reader, &frame, &payload));
	nb_reader_free(&reader);
	close(ends[0]);
	close(ends[1]);
}

static void reader_tells_the_end_from_nothing_yet(void **state)
{
	struct nb_reader reader = { 0 };
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe2(ends, O_NONBLOCK));
	assert_int_equal(-1, nb_reader_fill(&reader, ends[0]));
	assert_int_equal(EAGAIN, errno);
	close(ends[1]);
	assert_int_equal(0, nb_reader_fill(&reader, ends[0]));
	nb_reader_free(&reader);
	close(ends[0]);
}

/* What the reader says of one header with nothing behind it. */
static int judge(uint32_t length, uint16_t type, struct nb_error *error)
{
	struct nb_frame header = { .length = length, .type = type }, frame;
	const unsigned char *payload;
	struct nb_reader reader = { 0 };
	int ends[2], status;

	assert_int_equal(0, pipe(ends));
	feed(&reader, ends, &header, sizeof(header));
	status = nb_reader_next(&reader, &frame, &payload, error);
	nb_reader_free(&reader);
	close(ends[0]);
	close(ends[1]);
	return status;
}

static void reader_refuses_what_is_no_frame(void **state)
{
	struct nb_error error;

	(void)state;
	assert_int_equal(0, judge(NB_FRAME_MAX, NB_HELLO, &error)); /* waits for the rest */
	assert_int_equal(-NB_ERR_PROTOCOL, judge(NB_FRAME_MAX + 1, NB_HELLO, &error));
	assert_non_null(strstr(error.message, "over the limit"));
	assert_int_equal(-NB_ERR_PROTOCOL, judge(UINT32_MAX, NB_HELLO, &error));
	assert_int_equal(0, judge(1, NB_FRAME_TYPES - 1, &error));
	assert_int_equal(-NB_ERR_PROTOCOL, judge(1, NB_FRAME_TYPES, &error));
	assert_non_null(strstr(error.message, "unknown frame type"));
	assert_int_equal(-NB_ERR_PROTOCOL, judge(1, 0, &error));
	assert_int_equal(-NB_ERR_PROTOCOL, judge(0, UINT16_MAX, &error));
	assert_true(error.remedy[0]);
}

struct hose {
	int fd;
	size_t got;
	int same;
};

/* Take everything, a little at a time, and compare it with what was sent. */
static void *drink(void *argument)
{
	struct hose *hose = argument;
	unsigned char block[777];
	ssize_t got;

	hose->same = 1;
	while ((got = read(hose->fd, block, sizeof(block))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			size_t at = hose->got + (size_t)i;

			if (at >= sizeof(struct nb_frame))
				hose->same &= block[i] ==
					      (unsigned char)((at - sizeof(struct nb_frame)) * 31);
		}
		hose->got += (size_t)got;
	}
	return NULL;
}

static void a_large_frame_gets_through_a_narrow_pipe(void **state)
{
	enum { LENGTH = 1 << 20 };
	unsigned char *payload = malloc(LENGTH);
	struct hose hose = { 0 };
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_non_null(payload);
	for (size_t i = 0; i < LENGTH; i++)
		payload[i] = (unsigned char)(i * 31);
	assert_int_equal(0, pipe(ends));
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	hose.fd = ends[0];
	assert_int_equal(0, pthread_create(&thread, NULL, drink, &hose));
	assert_int_equal(0, nb_send_frame(ends[1], NB_RESULT, 1, payload, LENGTH));
	close(ends[1]);
	pthread_join(thread, NULL);
	assert_int_equal(LENGTH + sizeof(struct nb_frame), hose.got);
	assert_true(hose.same);
	close(ends[0]);
	free(payload);
}

static void a_frame_over_the_limit_is_not_sent(void **state)
{
	struct pollfd pending;
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe(ends));
	assert_int_equal(-1, nb_send_frame(ends[1], NB_RESULT, 1, NULL, NB_FRAME_MAX + 1));
	assert_int_equal(EMSGSIZE, errno);
	pending = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(0, poll(&pending, 1, 0)); /* not even its header */
	close(ends[0]);
	close(ends[1]);
}

/* What the walk says of a value that claims `bytes` of text, with `there` bytes behind it. The copy
 * is exact: ASan guards its end. */
static int judge_value(uint32_t bytes, ssize_t there)
{
	struct nb_value value = { .row = 1, .bytes = bytes };
	size_t length = (size_t)((ssize_t)sizeof(value) + there);
	unsigned char *exact = calloc(1, length);
	const unsigned char *at = exact;
	const char *text;
	struct nb_error error;
	int status;

	assert_non_null(exact);
	memcpy(exact, &value, length < sizeof(value) ? length : sizeof(value));
	status = nb_next_value(&at, exact + length, &value, &text, &error);
	assert_true(at <= exact + length);
	free(exact);
	return status;
}

static void values_out_of_bounds_are_refused(void **state)
{
	(void)state;
	assert_int_equal(1, judge_value(0, 0));
	assert_int_equal(1, judge_value(7, 8));
	assert_int_equal(1, judge_value(8, 16));
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(8, 8)); /* it has no end */
	assert_int_equal(1, judge_value(1, 8));
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(1, 0));
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(1, 7)); /* its padding is cut off */
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(9, 8));
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(UINT32_MAX, 64));
	assert_int_equal(-NB_ERR_PROTOCOL, judge_value(UINT32_MAX - 6, 64));
	for (ssize_t there = 1 - (ssize_t)sizeof(struct nb_value); there < 0; there++)
		assert_int_equal(-NB_ERR_PROTOCOL,
				 judge_value(0, there)); /* it is cut short itself */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_takes_frames_byte_by_byte),
		cmocka_unit_test(reader_hands_out_frames_that_came_together),
		cmocka_unit_test(reader_tells_the_end_from_nothing_yet),
		cmocka_unit_test(reader_refuses_what_is_no_frame),
		cmocka_unit_test(a_large_frame_gets_through_a_narrow_pipe),
		cmocka_unit_test(a_frame_over_the_limit_is_not_sent),
		cmocka_unit_test(values_out_of_bounds_are_refused),
	};

	return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
