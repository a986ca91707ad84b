/* SPDX-License-Identifier: MIT */
/* Events of perf_event_open(2): software events, which every kernel with perf has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "perf_event.h"
#include "test_controller.h"

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	assert_int_equal(sizeof(count), read(fd, &count, sizeof(count)));
	return count;
}

static void an_event_counts_from_its_start_to_its_stop(void **state)
{
	const struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_TASK_CLOCK,
					       .disabled = 1,
					       .exclude_kernel = 1 };
	int fd = nb_perf_open(&clock, 0, -1, -1);
	uint64_t stopped;

	(void)state;
	if (fd < 0) {
		fprintf(stderr, "skipped: perf_event_open: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(0, count_of(fd));
	assert_int_equal(0, nb_perf_enable(fd));
	while (!count_of(fd))
		;
	assert_int_equal(0, nb_perf_disable(fd));
	stopped = count_of(fd);
	assert_true(stopped > 0);
	assert_int_equal(stopped, count_of(fd));
	close(fd);
}

static void a_refusal_is_explained(void **state)
{
	static const struct {
		int number;
		const char *said;
	} refusals[] = {
		{ EACCES, "root is needed" },
		{ EPERM, "kernel.perf_event_paranoid is " },
		{ ENOENT, "no such hardware counter" },
		{ EOPNOTSUPP, "virtual machine" },
		{ ENOSYS, "CONFIG_PERF_EVENTS" },
		{ EMFILE, "perf_event_open: Too many open files" },
	};
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		nb_perf_explain(refusals[i].number, why, sizeof(why));
		if (!strstr(why, refusals[i].said))
			fail_msg("'%s' does not say '%s'", why, refusals[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_counts_from_its_start_to_its_stop),
		cmocka_unit_test(a_refusal_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
