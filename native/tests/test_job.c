/* SPDX-License-Identifier: MIT */
/* Jobs: every option is checked against its own row, and what makes no sense as a whole is refused
 * before anything is opened. */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "method.h"
#include "rows.h"
#include "test_controller.h"

static int decode(struct nb_writer *writer, struct nb_job *job, struct nb_error *error)
{
	/* An exact copy, so that ASan sees a read past the end. */
	unsigned char *exact = malloc(writer->used ? writer->used : 1);
	int status;

	assert_non_null(exact);
	memset(error, 0, sizeof(*error));
	if (writer->used)
		memcpy(exact, writer->data, writer->used);
	status = nb_job_decode(job, exact, writer->used, error);
	free(exact);
	nb_writer_free(writer);
	return status;
}

/* A job that is right, to which a test adds what is wrong. A later value of an option replaces an
 * earlier one. */
static struct nb_writer sound(const char *role, const char *method)
{
	struct nb_writer writer = { 0 };

	put_text(&writer, "role", role);
	put_text(&writer, "method", method);
	put_number(&writer, "streams", 2);
	put_number(&writer, strcmp(role, "send") ? "receive_chunk" : "chunk", 65536);
	put_number(&writer, "duration", 1000);
	put_text(&writer, "address", "127.0.0.1");
	return writer;
}

static void refuse(struct nb_writer *writer, const char *expected)
{
	struct nb_job job;
	struct nb_error error;

	assert_true(decode(writer, &job, &error) < 0);
	if (!strstr(error.message, expected))
		fail_msg("'%s' does not say '%s'", error.message, expected);
	assert_true(error.remedy[0]);
}

static void a_sound_job_is_taken(void **state)
{
	struct nb_writer writer = sound("send", "sendfile");
	struct nb_job job;
	struct nb_error error;

	(void)state;
	put_text(&writer, "source", "files");
	put_text(&writer, "cache", "cold");
	assert_int_equal(0, decode(&writer, &job, &error));
	assert_int_equal(NB_ROLE_SEND, job.role);
	assert_string_equal("sendfile", job.method->name);
	assert_int_equal(2, job.streams);
	assert_int_equal(65536, job.chunk);
	assert_int_equal(NB_SOURCE_FILES, job.source);
	assert_int_equal(NB_CACHE_COLD, job.cache);
	assert_string_equal("127.0.0.1", job.address);
	assert_int_equal(0, job.cpus.count);
}

static void a_list_of_numbers_is_given_one_by_one(void **state)
{
	struct nb_writer writer = sound("send", "write");
	struct nb_job job;
	struct nb_error error;

	(void)state;
	put_number(&writer, "cpu", 4);
	put_number(&writer, "cpu", 2);
	put_number(&writer, "peer_cpu", 9);
	assert_int_equal(0, decode(&writer, &job, &error));
	assert_int_equal(2, job.cpus.count);
	assert_int_equal(4, job.cpus.each[0]);
	assert_int_equal(2, job.cpus.each[1]);
	assert_true(nb_cpus_have(&job.peer_cpus, 9) && !nb_cpus_have(&job.cpus, 9));
	writer = sound("send", "write");
	for (int i = 0; i <= NB_CPUS_MAX; i++)
		put_number(&writer, "cpu", (uint64_t)i);
	refuse(&writer, "more than 1024 numbers");
}

static void numbers_must_lie_in_their_bounds(void **state)
{
	size_t bounded = 0;
	struct nb_job job;
	struct nb_error error;

	(void)state;
	for (size_t i = 0; i < nb_job_options_count; i++) {
		const struct nb_row *row = nb_row(nb_row_of(&nb_job_options[i]));

		if (row->type == NB_TEXT || row->type == NB_WORD)
			continue;
		if (row->maximum < UINT64_MAX) { /* the role of an observer has no other rules */
			struct nb_writer writer = sound("observe", "");

			put_number(&writer, row->name, row->maximum);
			assert_int_equal(0, decode(&writer, &job, &error));
			writer = sound("observe", "");
			put_number(&writer, row->name, row->maximum + 1);
			refuse(&writer, row->name);
			bounded++;
		}
		if (row->minimum) {
			struct nb_writer writer = sound("receive", "read");

			put_number(&writer, row->name, row->minimum - 1);
			refuse(&writer, "must be between");
			bounded++;
		}
	}
	assert_true(bounded > 10);
}

static void words_are_those_of_the_row(void **state)
{
	static const char *const wrong[] = { "",     "s",     "sen",  "sends", "send receive",
					     "SEND", " send", "send " };

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(wrong); i++) {
		struct nb_writer writer = sound("send", "write");

		put_text(&writer, "role", wrong[i]);
		refuse(&writer, "expected one of: send receive tool observe");
	}
}

/* One that is longer than its field, or holds a NUL that is not between two of a list, is refused.
 */
static void text_must_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < nb_job_options_count; i++) {
		const struct nb_field *field = &nb_job_options[i];
		int is_token = !strcmp(field->name, "token");
		size_t longest = field->room - !is_token;
		char *text = malloc(field->room + 1);
		struct nb_writer writer = sound("observe", "");
		struct nb_job job;
		struct nb_error error;

		assert_non_null(text);
		memset(text, 'x', field->room + 1);
		if (field->type == NB_TEXT) {
			put_bytes(&writer, nb_row_of(&nb_job_options[i]), text, longest);
			assert_int_equal(0, decode(&writer, &job, &error));
			assert_memory_equal(text, (char *)&job + field->offset, longest);
			writer = sound("observe", "");
			put_bytes(&writer, nb_row_of(&nb_job_options[i]), text, longest + 1);
			refuse(&writer, field->name);
			writer = sound("observe", "");
			put_bytes(&writer, nb_row_of(&nb_job_options[i]), "a\0b", 3);
			if (field->flags & NB_LIST || is_token)
				assert_int_equal(0, decode(&writer, &job, &error));
			else
				refuse(&writer, "NUL");
		}
		nb_writer_free(&writer);
		free(text);
	}
}

static void a_shorter_text_leaves_nothing_of_a_longer_one(void **state)
{
	struct nb_writer writer = sound("observe", "");
	struct nb_job job;
	struct nb_error error;

	(void)state;
	put_bytes(&writer, row_named("", "meters"), "rusage\0procstat", 15);
	put_bytes(&writer, row_named("", "meters"), "tcp", 3);
	assert_int_equal(0, decode(&writer, &job, &error));
	assert_memory_equal("tcp\0\0\0\0\0", job.meters, 8);
}

static void only_options_belong_in_a_job(void **state)
{
	const uint32_t rows[] = { (uint32_t)nb_describe(NULL, 0), UINT32_MAX,
				  row_named("flow", "bytes"), row_named("file", "hold") };

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(rows); i++) {
		struct nb_writer writer = sound("send", "write");
		struct nb_value value = { .row = rows[i] };

		nb_put(&writer, &value, sizeof(value));
		refuse(&writer, "no option of a job");
	}
}

static void a_job_cut_anywhere_is_refused_or_smaller(void **state)
{
	struct nb_writer writer = sound("send", "write");

	(void)state;
	for (size_t length = 0; length < writer.used; length++) {
		struct nb_writer part = { 0 };
		struct nb_job job;
		struct nb_error error;

		nb_put(&part, writer.data, length);
		if (length % sizeof(uint64_t))
			assert_int_equal(-NB_ERR_PROTOCOL, decode(&part, &job, &error));
		else
			decode(&part, &job, &error);
	}
	nb_writer_free(&writer);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct nb_writer writer = { 0 };

	(void)state;
	refuse(&writer, "no send method ''");
	writer = sound("receive", "sendfile");
	refuse(&writer, "no receive method 'sendfile'");
	writer = sound("send", "write");
	put_number(&writer, "streams", 0);
	refuse(&writer, "at least one stream");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_job_is_taken),
		cmocka_unit_test(a_list_of_numbers_is_given_one_by_one),
		cmocka_unit_test(numbers_must_lie_in_their_bounds),
		cmocka_unit_test(words_are_those_of_the_row),
		cmocka_unit_test(text_must_fit),
		cmocka_unit_test(a_shorter_text_leaves_nothing_of_a_longer_one),
		cmocka_unit_test(only_options_belong_in_a_job),
		cmocka_unit_test(a_job_cut_anywhere_is_refused_or_smaller),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
