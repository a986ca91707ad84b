/* SPDX-License-Identifier: MIT */
/* Operations: what was read before is reported, held, and undone in reverse, whatever happens in
 * between. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "ops/around.h"
#include "ops/client.h"
#include "test_controller.h"

/* One operation; NULL and 0 leave an argument out. Lists are argv with their NULs. */
struct operation {
	const char *op;
	const char *target;
	size_t target_length; /* 0: to the end of the text */
	const char *value;
	int hold;
	const char *undo;
	size_t undo_length;
	uint64_t scope;
};

static void put_argument(struct nb_writer *writer, const char *name, const char *text,
			 size_t length)
{
	if (text)
		put_bytes(writer, row_named("file", name), text, length ? length : strlen(text));
}

/* Who may ask for anything. */
static struct nb_client anyone;

static int perform(const struct operation *operation, struct nb_undo_entry **held,
		   struct vectors *answer, struct nb_error *error)
{
	struct nb_value hold = { .row = row_named("file", "hold"), .number = 1 };
	struct nb_value scope = { .row = row_named("file", "scope"), .number = operation->scope };
	struct nb_writer request = { 0 }, written = { 0 };
	int status;

	memset(error, 0, sizeof(*error));
	put_argument(&request, "op", operation->op, 0);
	put_argument(&request, "target", operation->target, operation->target_length);
	put_argument(&request, "value", operation->value, 0);
	put_argument(&request, "undo", operation->undo, operation->undo_length);
	if (operation->hold)
		nb_put(&request, &hold, sizeof(hold));
	if (operation->scope)
		nb_put(&request, &scope, sizeof(scope));
	status = nb_op_execute(request.data, request.used, &anyone, held, &written, error);
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

static void must(const struct operation *operation, struct nb_undo_entry **held)
{
	struct vectors answer;
	struct nb_error error;

	if (perform(operation, held, &answer, &error))
		fail_msg("%s: %s", error.operation, error.message);
	vectors_free(&answer);
}

static void must_not(const struct operation *operation, const char *expected)
{
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;

	assert_true(perform(operation, &held, &answer, &error) < 0);
	if (!strstr(error.message, expected))
		fail_msg("'%s' does not say '%s'", error.message, expected);
	assert_null(held);
	vectors_free(&answer);
}

static void a_file_is_read_and_written(void **state)
{
	char *path = temporary_file("old\n", 4);
	struct operation operation = { .op = "file", .target = path };
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_int_equal(0, perform(&operation, &held, &answer, &error));
	expect_answer(&answer, 0, "old\n");
	vectors_free(&answer);
	operation.value = "newer\n";
	assert_int_equal(0, perform(&operation, &held, &answer, &error));
	expect_answer(&answer, 0, "old\n");
	expect_answer(&answer, 1, "newer\n");
	vectors_free(&answer);
	assert_null(held); /* not asked for */
	assert_true(file_holds(path, "newer\n", 6));
	forget_file(path);
}

static void what_is_held_is_put_back_in_reverse(void **state)
{
	char *one = temporary_file("one", 3), *two = temporary_file("two", 3),
	     *log = temporary_file("", 0), *undo;
	struct nb_undo_entry *held = NULL;
	struct nb_error error;
	int length = asprintf(&undo, "sh%c-c%ccat %s %s >> %s", 0, 0, one, two, log);

	(void)state;
	must(&(struct operation){ .op = "file", .target = one, .value = "1", .hold = 1 }, &held);
	must(&(struct operation){ .op = "file", .target = one, .value = "11", .hold = 1 }, &held);
	must(&(struct operation){ .op = "exec",
				  .target = "true",
				  .undo = undo,
				  .undo_length = (size_t)length },
	     &held);
	must(&(struct operation){ .op = "file", .target = two, .value = "2", .hold = 1 }, &held);
	assert_true(file_holds(one, "11", 2) && file_holds(two, "2", 1) && file_holds(log, "", 0));
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	assert_null(held);
	assert_true(file_holds(one, "one", 3) && file_holds(two, "two", 3));
	/* When the exec was undone, later changes had been restored and earlier changes had not. */
	assert_true(file_holds(log, "11two", 5));
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	free(undo);
	forget_file(one);
	forget_file(two);
	forget_file(log);
}

static void a_change_that_fails_is_held_all_the_same(void **state)
{
	struct operation operation = {
		.op = "file", .target = "/proc/self/comm", .value = "x", .hold = 1
	};
	struct operation refused = {
		.op = "file", .target = "/proc/self/oom_score_adj", .value = "no number", .hold = 1
	};
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_true(perform(&refused, &held, &answer, &error) < 0);
	assert_non_null(held);
	vectors_free(&answer);
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	must(&operation, &held);
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
}

static void scopes_are_undone_from_the_top(void **state)
{
	char *one = temporary_file("one", 3), *two = temporary_file("two", 3);
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	must(&(struct operation){ .op = "file", .target = one, .value = "0", .hold = 1 }, &held);
	must(
		&(struct operation){
			.op = "file", .target = one, .value = "1", .hold = 1, .scope = 1 },
		&held);
	must(
		&(struct operation){
			.op = "file", .target = two, .value = "2", .hold = 1, .scope = 2 },
		&held);
	must(
		&(struct operation){
			.op = "file", .target = one, .value = "22", .hold = 1, .scope = 2 },
		&held);
	assert_int_equal(0, nb_undo(&held, 3, NULL, &error));
	assert_true(file_holds(one, "22", 2) && file_holds(two, "2", 1));
	assert_int_equal(0, nb_undo(&held, 2, NULL, &error));
	assert_true(file_holds(one, "1", 1) && file_holds(two, "two", 3));
	/* A scope below the one that is held cannot be undone first: nothing is done. */
	assert_int_equal(-NB_ERR_REQUEST, perform(&(struct operation){ .op = "file",
								       .target = two,
								       .value = "no",
								       .hold = 1 },
						  &held, &answer, &error));
	assert_non_null(strstr(error.message, "operations nest"));
	vectors_free(&answer);
	assert_int_equal(
		-NB_ERR_REQUEST,
		perform(&(struct operation){ .op = "exec", .target = "false", .undo = "true" },
			&held, &answer, &error));
	vectors_free(&answer);
	assert_true(file_holds(two, "two", 3));
	must(&(struct operation){ .op = "file", .target = two, .value = "unheld" }, &held);
	assert_int_equal(0, nb_undo(&held, 1, NULL, &error));
	assert_true(file_holds(one, "0", 1));
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	assert_true(file_holds(one, "one", 3));
	assert_null(held);
	forget_file(one);
	forget_file(two);
}

/* Of files, one that is gone, and a program. */
static void what_could_not_be_put_back_is_counted_and_the_rest_is(void **state)
{
	static const char choice[] = "[yes] no";
	char *paths[4], *gone = temporary_file("gone", 4);
	struct nb_undo_entry *held = NULL;
	struct nb_error error;

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(paths); i++) {
		paths[i] = temporary_file(i ? choice : "plain", i ? strlen(choice) : 5);
		must(
			&(struct operation){
				.op = "file", .target = paths[i], .value = "no", .hold = 1 },
			&held);
	}
	must(&(struct operation){ .op = "file", .target = gone, .value = "2", .hold = 1 }, &held);
	must(
		&(struct operation){
			.op = "exec", .target = "true", .undo = "false", .undo_length = 5 },
		&held);
	unlink(gone);
	assert_int_equal(-NB_ERR_SYSTEM, nb_undo(&held, 0, NULL, &error));
	assert_non_null(strstr(error.message, paths[1])); /* the last in reverse */
	assert_non_null(strstr(error.message, "; 4 more could not be restored"));
	assert_null(held);
	assert_true(file_holds(paths[0], "plain", 5));
	for (size_t i = 0; i < NB_LENGTH(paths); i++)
		forget_file(paths[i]);
	free(gone);
}

/* A file that is set twice, with a program between; what is undone last is in its way. */
static void what_failed_is_not_written_over_what_was_undone_below_it(void **state)
{
	char *path = temporary_file("found", 5), *undo;
	struct nb_undo_entry *held = NULL;
	struct nb_error error;
	int length = asprintf(&undo, "sh%c-c%crmdir %s; printf 1 > %s", 0, 0, path, path);

	(void)state;
	must(&(struct operation){ .op = "file", .target = path, .value = "1", .hold = 1 }, &held);
	must(&(struct operation){ .op = "exec",
				  .target = "true",
				  .undo = undo,
				  .undo_length = (size_t)length },
	     &held);
	must(&(struct operation){ .op = "file", .target = path, .value = "2", .hold = 1 }, &held);
	unlink(path);
	assert_int_equal(0, mkdir(path, 0700));
	assert_int_equal(-NB_ERR_SYSTEM, nb_undo(&held, 0, NULL, &error));
	assert_non_null(strstr(error.message, path));
	assert_true(file_holds(path, "found", 5));
	forget_file(path);
	free(undo);
}

/* If it were, a word would take the place of this choice. */
static void what_reads_as_it_did_is_not_written(void **state)
{
	char *path = temporary_file("[yes] no", 8);
	struct nb_undo_entry *held = NULL;
	struct nb_error error;

	(void)state;
	must(&(struct operation){ .op = "file", .target = path, .value = "[yes] no", .hold = 1 },
	     &held);
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	assert_true(file_holds(path, "[yes] no", 8));
	forget_file(path);
}

/* Whoever may start a helper could fill the host's memory. */
static void no_more_is_held_than_there_is_room_for(void **state)
{
	static char longest[1 << 17];
	struct operation set = { .op = "file", .value = "1", .hold = 1 };
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;
	char *few = temporary_file("0", 1), *big;

	(void)state;
	set.target = few;
	for (size_t i = 0; i < NB_UNDO_ENTRIES; i++)
		must(&set, &held);
	set.value = "2";
	assert_int_equal(-NB_ERR_REQUEST, perform(&set, &held, &answer, &error));
	assert_non_null(strstr(error.message, "would hold 4097 changes"));
	vectors_free(&answer);
	assert_true(file_holds(few, "1", 1)); /* what cannot be undone is not done */
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	assert_true(file_holds(few, "0", 1));

	memset(longest, 'x', sizeof(longest) - 1);
	big = temporary_file(longest, strlen(longest));
	set.target = big;
	for (size_t i = 1; i < NB_UNDO_BYTES / sizeof(longest); i++) {
		must(&set, &held);
		must(&(struct operation){ .op = "file", .target = big, .value = longest }, &held);
	}
	assert_int_equal(-NB_ERR_REQUEST, perform(&set, &held, &answer, &error));
	assert_non_null(strstr(error.message, "bytes) for undo, and keeps"));
	vectors_free(&answer);
	assert_int_equal(0, nb_undo(&held, 0, NULL, &error));
	assert_true(file_holds(big, longest, strlen(longest)));
	forget_file(few);
	forget_file(big);
}

static void what_would_be_put_back_in_part_is_refused(void **state)
{
	char *large = calloc(1, NB_OP_TEXT), *path, *binary = temporary_file("a\0b", 3);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', NB_OP_TEXT);
	path = temporary_file(large, NB_OP_TEXT);
	must_not(&(struct operation){ .op = "file", .target = path, .value = "y", .hold = 1 },
		 "is not a text");
	must_not(&(struct operation){ .op = "file", .target = binary, .value = "y", .hold = 1 },
		 "is not a text");
	assert_true(file_holds(path, large, NB_OP_TEXT) && file_holds(binary, "a\0b", 3));
	forget_file(path);
	forget_file(binary);
	free(large);
}

static void wrong_requests_are_refused(void **state)
{
	struct nb_value stray = { .row = row_named("", "streams") };
	struct nb_undo_entry *held = NULL;
	struct nb_writer answer = { 0 };
	struct nb_error error;
	char words[2 * 256];

	(void)state;
	must_not(&(struct operation){ .op = "files", .target = "/proc/self/comm" },
		 "no operation 'files'");
	must_not(&(struct operation){ .op = "file" }, "needs a kind and a target");
	must_not(&(struct operation){ .target = "/proc/self/comm" }, "needs a kind and a target");
	must_not(&(struct operation){ .op = "exec", .target = "true", .value = "x" },
		 "cannot write");
	must_not(
		&(struct operation){
			.op = "file", .target = "/no/such/file", .value = "x", .hold = 1 },
		"No such file");
	must_not(&(struct operation){ .op = "exec", .target = "" }, "the command is empty");
	for (size_t i = 0; i < sizeof(words); i++)
		words[i] = i % 2 ? 0 : 'a';
	must_not(&(struct operation){ .op = "exec",
				      .target = words,
				      .target_length = sizeof(words) - 1 },
		 "more than 255 words");
	must_not(&(struct operation){ .op = "link", .target = "lo" },
		 "the target of link is 2 words, not 1");
	must_not(&(struct operation){ .op = "file",
				      .target = "/proc/self\0comm",
				      .target_length = 15 },
		 "is 1 words, not 2");
	must_not(&(struct operation){ .op = "file", .target = "/proc/self/comm", .undo = "true" },
		 "not by a program");
	must_not(&(struct operation){ .op = "file",
				      .target = "/proc/self/comm",
				      .scope = (uint64_t)UINT32_MAX + 1 },
		 "scope 4294967296, at most 4294967295");
	assert_int_equal(-NB_ERR_REQUEST, nb_op_execute((unsigned char *)&stray, sizeof(stray),
							&anyone, &held, &answer, &error));
	assert_non_null(strstr(error.message, "not an argument of an operation"));
}

static void a_program_answers_with_its_output(void **state)
{
	struct operation operation = { .op = "exec",
				       .target = "printf\0%s-%s\0a b\0c",
				       .target_length = 18 };
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;

	(void)state;
	assert_int_equal(0, perform(&operation, &held, &answer, &error));
	expect_answer(&answer, 0, "a b-c\n"); /* no shell between: the blank stays */
	vectors_free(&answer);
}

static void a_program_that_fails_has_nothing_to_undo(void **state)
{
	char *log = temporary_file("", 0), *undo;
	struct nb_undo_entry *held = NULL;
	struct vectors answer;
	struct nb_error error;
	int length = asprintf(&undo, "sh%c-c%cecho undone >> %s", 0, 0, log);
	struct operation operation = { .op = "exec",
				       .target = "sh\0-c\0echo out; echo why >&2; exit 3",
				       .target_length = 36,
				       .undo = undo,
				       .undo_length = (size_t)length };

	(void)state;
	assert_true(perform(&operation, &held, &answer, &error) < 0);
	assert_non_null(strstr(error.message, "exit status 3"));
	assert_non_null(strstr(error.message, "exit status 3: why"));
	assert_null(held);
	vectors_free(&answer);
	operation.target = "/no/such/program";
	operation.target_length = 0;
	assert_true(perform(&operation, &held, &answer, &error) < 0);
	assert_int_equal(ENOENT, error.error);
	assert_null(held);
	vectors_free(&answer);
	assert_true(file_holds(log, "", 0));
	free(undo);
	forget_file(log);
}

/* Nothing is written here: what is looked at is what comes before. */
static void what_stays_until_the_next_boot_is_refused(void **state)
{
	static const char path[] = "/proc/sys/kernel/yama/ptrace_scope";
	struct nb_error error;

	(void)state;
	assert_int_equal(-NB_ERR_UNSUPPORTED, nb_lasting_check_file(path, "3", &error));
	assert_int_equal(0, nb_lasting_check_file(path, "2", &error));
	assert_int_equal(-NB_ERR_UNSUPPORTED,
			 nb_lasting_check_file("/proc/sys/kernel/tainted", "0x200", &error));
	assert_int_equal(
		-NB_ERR_UNSUPPORTED,
		nb_lasting_check_file("/proc/sys/kernel/kexec_load_limit_panic", "0", &error));
}

static void a_program_that_hangs_is_stopped(void **state)
{
	char output[5]; /* what does not fit is cut */
	struct nb_error error;

	(void)state;
	assert_true(nb_exec("sh\0-c\0echo begun; sleep 1000", 29, 1000000000, output,
			    sizeof(output), &error) < 0);
	assert_int_equal(ETIMEDOUT, error.error);
	assert_string_equal("begu", output);
	assert_int_equal(-1, waitpid(-1, NULL, WNOHANG)); /* nothing is left behind */
	assert_int_equal(ECHILD, errno);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_and_written),
		cmocka_unit_test(what_is_held_is_put_back_in_reverse),
		cmocka_unit_test(a_change_that_fails_is_held_all_the_same),
		cmocka_unit_test(scopes_are_undone_from_the_top),
		cmocka_unit_test(what_could_not_be_put_back_is_counted_and_the_rest_is),
		cmocka_unit_test(what_failed_is_not_written_over_what_was_undone_below_it),
		cmocka_unit_test(what_reads_as_it_did_is_not_written),
		cmocka_unit_test(no_more_is_held_than_there_is_room_for),
		cmocka_unit_test(what_would_be_put_back_in_part_is_refused),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(a_program_answers_with_its_output),
		cmocka_unit_test(a_program_that_fails_has_nothing_to_undo),
		cmocka_unit_test(what_stays_until_the_next_boot_is_refused),
		cmocka_unit_test(a_program_that_hangs_is_stopped),
	};

	return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
