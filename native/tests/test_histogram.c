/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "histogram.h"

/* Buckets follow each other without a gap, and none is wider than 1/128 of its least value. */
static void buckets_are_narrow_and_in_order(void **state)
{
	uint64_t first = 0;

	(void)state;
	for (uint32_t bucket = 0; bucket + 1 < NB_BUCKETS; bucket++) {
		uint64_t next = first + 1;

		assert_int_equal(bucket, nb_bucket(first));
		while (nb_bucket(next) == bucket)
			next += next - first; /* widths are powers of two */
		assert_int_equal(bucket + 1, nb_bucket(next));
		assert_int_equal(bucket, nb_bucket(next - 1));
		assert_true(next - first == 1 || (next - first) * 128 <= first);
		first = next;
	}
	assert_int_equal(NB_BUCKETS - 1, nb_bucket(UINT64_MAX));
}

static void no_count_is_lost(void **state)
{
	enum { MANY = 10000000 };
	struct nb_histogram *histogram = calloc(1, sizeof(*histogram));
	uint64_t random = 1, total = 0, sum = 0, most = 0;

	(void)state;
	assert_non_null(histogram);
	for (int i = 0; i < MANY; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		sum += random >> 34;
		most = random >> 34 > most ? random >> 34 : most;
		nb_histogram_add(histogram, random >> 34);
	}
	for (uint32_t bucket = 0; bucket < NB_BUCKETS; bucket++)
		total += histogram->buckets[bucket];
	assert_int_equal(MANY, total);
	assert_int_equal(MANY, histogram->count);
	assert_true(histogram->sum == sum && histogram->most == most);
	free(histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(buckets_are_narrow_and_in_order),
					    cmocka_unit_test(no_count_is_lost) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
