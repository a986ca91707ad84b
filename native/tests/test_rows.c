/* SPDX-License-Identifier: MIT */
/* The table of rows: what every method, meter and operation declares must be usable by a controller
 * that knows none of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "meter.h"
#include "method.h"
#include "ops/op.h"
#include "rows.h"
#include "test_controller.h"

enum { ROWS_MAX = 1024 }; /* as in rows.c */

static struct nb_row rows[ROWS_MAX];
static size_t count;

static int describe(void **state)
{
	(void)state;
	count = nb_describe(rows, ROWS_MAX);
	return 0;
}

static void the_table_is_large_enough(void **state)
{
	(void)state;
	/* A full table hands its last row out again and again. */
	assert_in_range(count, 1, ROWS_MAX - 1);
	assert_int_equal(count, nb_describe(NULL, 0));
	assert_null(nb_row((uint32_t)count));
	assert_null(nb_row(NB_NO_ROW));
}

static void a_short_buffer_is_not_overrun(void **state)
{
	struct nb_row few[4];

	(void)state;
	memset(few, 0xee, sizeof(few));
	assert_int_equal(count, nb_describe(few, 3));
	assert_memory_equal(rows, few, 3 * sizeof(few[0]));
	assert_int_equal(0xee, ((unsigned char *)&few[3])[0]);
}

/* Whether it ends before its last byte: a declaration that fills it was cut, and a word or a reason
 * with it. */
static int ends(const char *text, size_t room)
{
	return strnlen(text, room) + 1 < room;
}

static void every_row_is_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct nb_row *row = &rows[i];

		assert_int_equal(i, row->id);
		assert_true(row->owner == NB_NO_ROW ||
			    row->owner < i); /* an owner comes before what it owns */
		assert_in_range(row->kind, NB_ROW_SEND, NB_ROW_READBACK);
		assert_in_range(row->type, NB_COUNT, NB_TEXT);
		assert_in_range(row->unit, NB_UNIT_NONE, NB_UNIT_BITS_PER_SECOND);
		assert_in_range(row->per, NB_PER_RUN, NB_PER_BUCKET);
		assert_true(row->minimum <= row->maximum);
		assert_true(ends(row->name, sizeof(row->name)) &&
			    ends(row->about, sizeof(row->about)));
		assert_true(ends(row->words, sizeof(row->words)));
		assert_true(strnlen(row->why, sizeof(row->why)) < sizeof(row->why));
		assert_true(row->name[0] && row->about[0]);
		assert_int_equal(row->type == NB_WORD, row->words[0] != 0);
		assert_int_equal(strlen(row->name),
				 strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_"));
	}
}

static int may_own(int owner, int kind)
{
	return kind == NB_ROW_COUNTER ? owner == NB_ROW_METER
				      : owner == NB_ROW_SEND || owner == NB_ROW_RECEIVE;
}

static void rows_are_told_apart_in_the_right_owner(void **state)
{
	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++)
			if (rows[i].owner == rows[k].owner && rows[i].kind == rows[k].kind &&
			    !strcmp(rows[i].name, rows[k].name))
				fail_msg("two rows are called %s", rows[i].name);
		if (rows[i].kind == NB_ROW_COUNTER || rows[i].kind == NB_ROW_PROOF)
			assert_true(rows[i].owner < count &&
				    may_own(rows[rows[i].owner].kind, rows[i].kind));
	}
}

static void check_method(const struct nb_method *method, int sends)
{
	uint32_t from = NB_FROM_MEMORY | NB_FROM_ZERO | NB_FROM_FILE,
		 to = NB_TO_DISCARD | NB_TO_FILE;
	uint16_t id = nb_row_of(method);
	int must_move = 0;

	if (!method->step) { /* one that is only looked for */
		assert_true(method->probe && rows[id].why[0]);
		return;
	}
	assert_int_equal(sends ? NB_ROW_SEND : NB_ROW_RECEIVE, rows[id].kind);
	assert_true(method->proofs_count <= NB_PROOFS_MAX &&
		    method->options_count <= NB_METHOD_OPTIONS);
	assert_true(method->flags & (sends ? from : to));
	assert_false(method->flags & (sends ? to : from));
	/* A sender of data sends real data. */
	assert_true(!sends || method->flags & (NB_DELIVERS | NB_NO_DATA | NB_REQUESTS));
	for (size_t i = 0; i < method->proofs_count; i++) {
		size_t proof = id + 1 + method->options_count + i; /* as result.c finds it */

		assert_string_equal(method->proofs[i].name, rows[proof].name);
		assert_int_equal(id, rows[proof].owner);
		assert_int_equal(NB_PER_STREAM, rows[proof].per);
		must_move += (method->proofs[i].flags & NB_MUST_MOVE) != 0;
	}
	assert_true(must_move || method->flags & NB_NO_DATA);
	for (size_t i = 0; i < method->options_count; i++)
		assert_int_not_equal(NB_TEXT,
				     method->options[i].type); /* nb_job.extra holds numbers */
}

static void every_method_can_step_and_prove_it(void **state)
{
	(void)state;
	for (size_t i = 0; nb_send_methods[i]; i++)
		check_method(nb_send_methods[i], 1);
	for (size_t i = 0; nb_receive_methods[i]; i++)
		check_method(nb_receive_methods[i], 0);
	assert_non_null(nb_method_named(NB_ROW_SEND, "null"));
	assert_null(nb_method_named(NB_ROW_SEND, "read"));
	assert_null(nb_method_named(NB_ROW_RECEIVE, ""));
}

static void every_meter_reads_something(void **state)
{
	size_t meters = 0;

	(void)state;
	for (; nb_meters[meters]; meters++) {
		const struct nb_meter *meter = nb_meters[meters];

		assert_non_null(meter->read);
		assert_true(meter->counters_count > 0);
		for (size_t i = 0; i < meter->counters_count; i++)
			assert_string_equal(meter->name,
					    rows[rows[nb_row_of(&meter->counters[i])].owner].name);
	}
	assert_true(meters <= NB_METERS_MAX);
}

static void options_have_a_place_to_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < nb_job_options_count; i++) {
		const struct nb_field *field = &nb_job_options[i];

		int list = field->type != NB_TEXT && field->flags & NB_LIST;
		size_t size = list	    ? (1 + field->room) * sizeof(uint64_t)
			      : field->room ? field->room
					    : sizeof(uint64_t);

		assert_int_equal(list || field->type == NB_TEXT, field->room != 0);
		assert_true(field->offset + size <= sizeof(struct nb_job));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_large_enough),
		cmocka_unit_test(a_short_buffer_is_not_overrun),
		cmocka_unit_test(every_row_is_well_formed),
		cmocka_unit_test(rows_are_told_apart_in_the_right_owner),
		cmocka_unit_test(every_method_can_step_and_prove_it),
		cmocka_unit_test(every_meter_reads_something),
		cmocka_unit_test(options_have_a_place_to_go),
	};

	return cmocka_run_group_tests_name("rows", tests, describe, NULL);
}
