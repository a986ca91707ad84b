/* SPDX-License-Identifier: MIT */
/* Operations: what was there before is told, held, and put back in reverse, whatever happens in between. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "desk.h"
#include "ops.h"
#include "tool.h"

/* One operation; NULL and 0 leave an argument out. Lists are argv with their NULs. */
struct wish {
	const char *op;
	const char *target;
	size_t target_length; /* 0: to the end of the text */
	const char *value;
	int hold;
	const char *undo;
	size_t undo_length;
};

static void put_argument(struct nb_writer *writer, const char *name, const char *text, size_t length)
{
	if (text)
		put_bytes(writer, row_named("file", name), text, length ? length : strlen(text));
}

static int perform(const struct wish *wish, struct nb_held **held, struct vectors *answer, struct nb_error *error)
{
	struct nb_value hold = { .row = row_named("file", "hold"), .number = 1 };
	struct nb_writer request = { 0 }, written = { 0 };
	int status;

	memset(error, 0, sizeof(*error));
	put_argument(&request, "op", wish->op, 0);
	put_argument(&request, "target", wish->target, wish->target_length);
	put_argument(&request, "value", wish->value, 0);
	put_argument(&request, "undo", wish->undo, wish->undo_length);
	if (wish->hold)
		nb_put(&request, &hold, sizeof(hold));
	status = nb_op_execute(request.data, request.used, held, &written, error);
	*answer = (struct vectors){ written.data, written.used };
	nb_writer_free(&request);
	return status;
}

/* `name` of an answer's text is its row's: the value, before (0) and after (1). */
static char *answered(const struct vectors *answer, int edge)
{
	struct nb_vector head;

	for (size_t at = 0; at < answer->length;) {
		memcpy(&head, answer->data + at, sizeof(head));
		if (head.edge == edge)
			return strndup((char *)answer->data + at + sizeof(head), head.bytes);
		at += sizeof(head) + (head.bytes + 7) / 8 * 8;
	}
	fail_msg("nothing was answered for edge %d", edge);
	return NULL;
}

static void expect_answer(const struct vectors *answer, int edge, const char *expected)
{
	char *text = answered(answer, edge);

	assert_string_equal(expected, text);
	free(text);
}

static void must(const struct wish *wish, struct nb_held **held)
{
	struct vectors answer;
	struct nb_error error;

	if (perform(wish, held, &answer, &error))
		fail_msg("%s: %s", error.operation, error.message);
	vectors_free(&answer);
}

static void must_not(const struct wish *wish, const char *expected)
{
	struct nb_held *held = NULL;
	struct vectors answer;
	struct nb_error error;

	assert_true(perform(wish, &held, &answer, &error) < 0);
	if (!strstr(error.message, expected))
		fail_msg("'%s' does not say '%s'", error.message, expected);
	assert_null(held);
	vectors_free(&answer);
}

static void a_file_is_read_and_written(void **state)
{
	char *path = temporary_file("old\n", 4);
	struct wish wish = { .op = "file", .target = path };
	struct nb_held *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_int_equal(0, perform(&wish, &held, &answer, &error));
	expect_answer(&answer, 0, "old\n");
	vectors_free(&answer);
	wish.value = "newer\n";
	assert_int_equal(0, perform(&wish, &held, &answer, &error));
	expect_answer(&answer, 0, "old\n");
	expect_answer(&answer, 1, "newer\n");
	vectors_free(&answer);
	assert_null(held); /* not asked for */
	assert_true(file_holds(path, "newer\n", 6));
	forget_file(path);
}

static void what_is_held_is_put_back_in_reverse(void **state)
{
	char *one = temporary_file("one", 3), *two = temporary_file("two", 3), *log = temporary_file("", 0), *undo;
	struct nb_held *held = NULL;
	struct nb_error error;
	int length = asprintf(&undo, "sh%c-c%ccat %s %s >> %s", 0, 0, one, two, log);

	(void)state;
	must(&(struct wish){ .op = "file", .target = one, .value = "1", .hold = 1 }, &held);
	must(&(struct wish){ .op = "file", .target = one, .value = "11", .hold = 1 }, &held);
	must(&(struct wish){ .op = "exec", .target = "true", .undo = undo, .undo_length = (size_t)length }, &held);
	must(&(struct wish){ .op = "file", .target = two, .value = "2", .hold = 1 }, &held);
	assert_true(file_holds(one, "11", 2) && file_holds(two, "2", 1) && file_holds(log, "", 0));
	assert_int_equal(0, nb_op_undo(&held, &error));
	assert_null(held);
	assert_true(file_holds(one, "one", 3) && file_holds(two, "two", 3));
	/* When the exec was undone, what came after it had been put back and what came before it had not. */
	assert_true(file_holds(log, "11two", 5));
	assert_int_equal(0, nb_op_undo(&held, &error));
	free(undo);
	forget_file(one);
	forget_file(two);
	forget_file(log);
}

static void one_failed_undo_does_not_stop_the_others(void **state)
{
	char *one = temporary_file("one", 3), *gone = temporary_file("gone", 4);
	struct nb_held *held = NULL;
	struct nb_error error;

	(void)state;
	must(&(struct wish){ .op = "file", .target = one, .value = "1", .hold = 1 }, &held);
	must(&(struct wish){ .op = "file", .target = gone, .value = "2", .hold = 1 }, &held);
	must(&(struct wish){ .op = "exec", .target = "true", .undo = "false", .undo_length = 5 }, &held);
	unlink(gone);
	assert_int_equal(-NB_ERR_SYSTEM, nb_op_undo(&held, &error));
	assert_string_equal("exec", error.operation); /* the first that failed */
	assert_null(held);
	assert_true(file_holds(one, "one", 3));
	forget_file(one);
	free(gone);
}

static void a_change_that_fails_is_held_all_the_same(void **state)
{
	struct wish wish = { .op = "file", .target = "/proc/self/comm", .value = "x", .hold = 1 };
	struct wish refused = { .op = "file", .target = "/proc/self/oom_score_adj", .value = "no number", .hold = 1 };
	struct nb_held *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_true(perform(&refused, &held, &answer, &error) < 0);
	assert_non_null(held);
	vectors_free(&answer);
	assert_int_equal(0, nb_op_undo(&held, &error));
	must(&wish, &held);
	assert_int_equal(0, nb_op_undo(&held, &error));
}

static void what_would_be_put_back_in_part_is_refused(void **state)
{
	char *large = calloc(1, NB_OP_TEXT), *path, *binary = temporary_file("a\0b", 3);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', NB_OP_TEXT);
	path = temporary_file(large, NB_OP_TEXT);
	must_not(&(struct wish){ .op = "file", .target = path, .value = "y", .hold = 1 }, "is no text");
	must_not(&(struct wish){ .op = "file", .target = binary, .value = "y", .hold = 1 }, "is no text");
	assert_true(file_holds(path, large, NB_OP_TEXT) && file_holds(binary, "a\0b", 3));
	forget_file(path);
	forget_file(binary);
	free(large);
}

static void wrong_requests_are_refused(void **state)
{
	struct nb_value stray = { .row = row_named("", "streams") };
	struct nb_held *held = NULL;
	struct nb_writer answer = { 0 };
	struct nb_error error;

	(void)state;
	must_not(&(struct wish){ .op = "files", .target = "/proc/self/comm" }, "no operation 'files'");
	must_not(&(struct wish){ .op = "file" }, "needs a kind and a target");
	must_not(&(struct wish){ .target = "/proc/self/comm" }, "needs a kind and a target");
	must_not(&(struct wish){ .op = "exec", .target = "true", .value = "x" }, "cannot write");
	must_not(&(struct wish){ .op = "file", .target = "/no/such/file", .value = "x", .hold = 1 }, "No such file");
	must_not(&(struct wish){ .op = "exec", .target = "" }, "no program is named");
	assert_int_equal(-NB_ERR_REQUEST, nb_op_execute((unsigned char *)&stray, sizeof(stray), &held, &answer, &error));
	assert_non_null(strstr(error.message, "no argument of an operation"));
}

static void a_program_answers_with_its_output(void **state)
{
	struct wish wish = { .op = "exec", .target = "printf\0%s-%s\0a b\0c", .target_length = 18 };
	struct nb_held *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_int_equal(0, perform(&wish, &held, &answer, &error));
	expect_answer(&answer, 0, "a b-c"); /* no shell between: the blank stays */
	vectors_free(&answer);
}

static void a_program_that_fails_has_nothing_to_undo(void **state)
{
	char *log = temporary_file("", 0), *undo;
	struct nb_held *held = NULL;
	struct vectors answer;
	struct nb_error error;
	int length = asprintf(&undo, "sh%c-c%cecho undone >> %s", 0, 0, log);
	struct wish wish = { .op = "exec",
			     .target = "sh\0-c\0echo out; echo why >&2; exit 3",
			     .target_length = 36,
			     .undo = undo,
			     .undo_length = (size_t)length };

	(void)state;
	assert_true(perform(&wish, &held, &answer, &error) < 0);
	assert_non_null(strstr(error.message, "exit status 3"));
	assert_non_null(strstr(error.message, "why"));
	assert_null(held);
	vectors_free(&answer);
	wish.target = "/no/such/program";
	wish.target_length = 0;
	assert_true(perform(&wish, &held, &answer, &error) < 0);
	assert_int_equal(ENOENT, error.error);
	assert_null(held);
	vectors_free(&answer);
	assert_true(file_holds(log, "", 0));
	free(undo);
	forget_file(log);
}

static void a_program_that_hangs_is_stopped(void **state)
{
	char output[64];
	struct nb_error error;

	(void)state;
	assert_true(nb_exec("sh\0-c\0echo begun; sleep 1000", 29, 100000000, output, sizeof(output), &error) < 0);
	assert_int_equal(ETIMEDOUT, error.error);
	assert_string_equal("begun\n", output);
	assert_int_equal(-1, waitpid(-1, NULL, WNOHANG)); /* nothing is left behind */
	assert_int_equal(ECHILD, errno);
}

static void output_over_the_room_is_cut(void **state)
{
	char output[8];
	struct nb_error error;

	(void)state;
	assert_int_equal(0, nb_exec("echo\0"
				    "123456789abcdef",
				    20, 5000000000ULL, output, sizeof(output), &error));
	assert_string_equal("1234567", output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_and_written),
		cmocka_unit_test(what_is_held_is_put_back_in_reverse),
		cmocka_unit_test(one_failed_undo_does_not_stop_the_others),
		cmocka_unit_test(a_change_that_fails_is_held_all_the_same),
		cmocka_unit_test(what_would_be_put_back_in_part_is_refused),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(a_program_answers_with_its_output),
		cmocka_unit_test(a_program_that_fails_has_nothing_to_undo),
		cmocka_unit_test(a_program_that_hangs_is_stopped),
		cmocka_unit_test(output_over_the_room_is_cut),
	};

	return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
