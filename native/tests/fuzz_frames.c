/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over everything that a worker decodes: the input is what a controller writes, taken in
 * pieces as a pipe gives them. Jobs and operations' values are walked whatever the frame's type
 * says, so that the fuzzer need not guess it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "ops/client.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const unsigned char *payload, size_t length)
{
	const unsigned char *at = payload, *end = payload + length;
	struct nb_value value;
	struct nb_error error;
	const char *text;
	volatile unsigned char seen = 0;

	while (nb_next_value(&at, end, &value, &text, &error) > 0)
		for (size_t i = 0; i < value.bytes; i++)
			seen = (unsigned char)(seen ^ (unsigned char)text[i]);
	(void)seen;
}

static void decode(const unsigned char *payload, size_t length)
{
	/* An exact copy: what reads past its end is caught. */
	unsigned char *exact = malloc(length ? length : 1);
	struct nb_op_request request = { 0 };
	struct nb_error error;
	struct nb_job job;

	if (!exact)
		return;
	if (length)
		memcpy(exact, payload, length);
	walk(exact, length);
	nb_job_decode(&job, exact, length, &error);
	nb_op_decode(&request, exact, length, &error);
	free(exact);
}

static void take_frames(struct nb_reader *reader)
{
	const unsigned char *payload;
	struct nb_frame frame;
	struct nb_error error;

	while (nb_reader_next(reader, &frame, &payload, &error) > 0)
		decode(payload, frame.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nb_reader reader = { 0 };
	size_t piece = size ? 1 + data[0] % 97 * 16 : 1;
	int ends[2];

	if (pipe(ends))
		return 0;
	for (size_t at = 0; at < size; at += piece) {
		size_t length = size - at < piece ? size - at : piece;

		if (write(ends[1], data + at, length) != (ssize_t)length ||
		    nb_reader_fill(&reader, ends[0]) < 0)
			break;
		take_frames(&reader);
	}
	nb_reader_free(&reader);
	close(ends[0]);
	close(ends[1]);
	decode(data, size);
	return 0;
}
