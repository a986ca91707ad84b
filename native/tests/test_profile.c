/* SPDX-License-Identifier: MIT */
/* Profiles: a function that is known to run is found where it is, symbols have one name each, and
 * memory is bounded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "op_helper.h"
#include "profile/profile.h"

static const uint64_t BUSY_NS = 300000000;

static const char KALLSYMS[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T startup\n"
			       "ffffffff81000100 t local_one\n"
			       "ffffffff81000100 W weak_one\n"
			       "ffffffff81000100 T global_one\n"
			       "ffffffff81000200 D data_of_no_code\n"
			       "0000000000000000 T hidden\n"
			       "no line of symbols\n"
			       "ffffffffc0000000 t of_module\t[toy]\n";

static void read_symbols(struct nb_kernel_symbols *symbols, const char *text)
{
	char path[] = "/tmp/netbench-test-XXXXXX";
	struct nb_error error;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	close(fd);
	assert_int_equal(0, nb_kernel_symbols_read(symbols, path, &error));
	unlink(path);
}

static void an_address_of_the_kernel_has_one_name(void **state)
{
	static const struct {
		uint64_t address;
		const char *name; /* NULL: none */
	} cases[] = {
		{ 0xffffffff80ffffff, NULL },	      { 0xffffffff81000000, "startup" },
		{ 0xffffffff810000ff, "startup" },    { 0xffffffff81000100, "global_one" },
		{ 0xffffffff81000250, "global_one" }, { 0xffffffffc0000010, "of_module [toy]" },
	};
	struct nb_kernel_symbols symbols;

	(void)state;
	read_symbols(&symbols, KALLSYMS);
	assert_int_equal(3, symbols.count);
	for (size_t i = 0; i < NB_LENGTH(cases); i++) {
		const struct nb_kernel_symbol *found = nb_kernel_symbol(&symbols, cases[i].address);

		assert_int_equal(!cases[i].name, !found);
		if (found)
			assert_string_equal(cases[i].name, found->name);
	}
	nb_kernel_symbols_free(&symbols);
	read_symbols(&symbols, "0000000000000000 T _text\n0000000000000000 t tcp_sendmsg\n");
	assert_int_equal(0, symbols.count); /* hidden */
	assert_null(nb_kernel_symbol(&symbols, 0xffffffff81000000));
	nb_kernel_symbols_free(&symbols);
}

static void equal_stacks_are_one(void **state)
{
	const uint64_t chain[] = { 0xffffffff81000110, 0xffffffff81000000 };
	const uint64_t same[] = { 0xffffffff81000190, 0xffffffff81000050 };
	struct nb_profile profile = { .event = "cpu-clock", .frequency = 997 };
	size_t length;
	char *text;

	(void)state;
	read_symbols(&profile.kernel, KALLSYMS);
	nb_profile_add(&profile, 0, 10, chain, NB_LENGTH(chain));
	nb_profile_add(&profile, 0, 10, same, NB_LENGTH(same));
	nb_profile_add(&profile, 0, 10, NULL, 0); /* in user space */
	text = nb_profile_text(&profile, &length);
	assert_int_equal(length, strlen(text));
	assert_non_null(strstr(text, "samples 3\nlost 0\n"));
	assert_non_null(strstr(text, "f global_one\nf startup\np 0 swapper\n"
				     "s 1 10 0\ns 2 20 0 1 0\n"));
	free(text);
	nb_profile_free(&profile);
}

static void memory_for_stacks_is_bounded(void **state)
{
	uint64_t chain[256] = { 0 }, known;
	struct nb_profile profile = { .bytes = NB_PROFILE_BYTES - (1 << 20) };

	(void)state;
	for (uint32_t pid = 0; profile.lost < 100; pid++) /* the same frames, of other processes */
		for (size_t length = 1; length <= NB_LENGTH(chain) && profile.lost < 100; length++)
			nb_profile_add(&profile, pid, 1, chain, length);
	assert_in_range(profile.bytes, NB_PROFILE_BYTES - 2048, NB_PROFILE_BYTES);
	known = profile.samples;
	nb_profile_add(&profile, 0, 1, chain, 1); /* one that is there takes no more room */
	assert_int_equal(known + 1, profile.samples);
	assert_int_equal(100, profile.lost);
	nb_profile_free(&profile);
}

/* Whether this account may sample; the reason is printed where it may not. */
static int may_sample(void)
{
	if (!op_try_set("profile sampling", "ready 997"))
		return 1;
	print_message("skipped: %s\n", op_error.message);
	return 0;
}

static char *read_parts(void)
{
	char *text = calloc(1, 1), words[32];

	for (int part = 0;; part++) {
		const char *more;

		snprintf(words, sizeof(words), "profile %d", part);
		more = op_get(words);
		if (!*more)
			return text;
		text = realloc(text, strlen(text) + strlen(more) + 1);
		strcat(text, more);
	}
}

static uint64_t number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, 10);
}

/* The samples of this process, of a text that is cut into its lines. */
static uint64_t own_samples(char *text)
{
	size_t processes = 0, own = SIZE_MAX;
	uint64_t sum = 0;

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		char *at = line + 2;

		if (line[0] == 'p' && strtol(at, NULL, 10) == getpid())
			own = processes;
		processes += line[0] == 'p';
		if (line[0] == 's' && line[1] == ' ') {
			uint64_t samples = strtoull(at, &at, 10);

			strtoull(at, &at, 10);
			sum += strtoull(at, NULL, 10) == own ? samples : 0;
		}
	}
	return sum;
}

static void a_busy_process_is_sampled_as_long_as_it_runs(void **state)
{
	uint64_t end, used, expected;
	struct timespec before, after;
	char *text;

	(void)state;
	if (!may_sample())
		skip();
	assert_string_equal("ready\n", op_get("profile sampling"));
	op_set("profile sampling", "on");
	assert_string_equal("on\n", op_get("profile sampling"));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (end = nb_now() + BUSY_NS; nb_now() < end;)
		;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	op_set("profile sampling", "off");
	assert_string_equal("off\n", op_get("profile sampling"));
	text = read_parts();
	assert_true(number_behind(text, "\nend ") - number_behind(text, "\nbegin ") >= BUSY_NS);
	assert_int_equal(0, number_behind(text, "\nlost "));
	if (!strncmp(text, "event cpu-clock\n", 16)) {
		used = (uint64_t)(after.tv_sec - before.tv_sec) * 1000000000 +
		       (uint64_t)after.tv_nsec - (uint64_t)before.tv_nsec;
		expected = used * 997 / 1000000000;
		assert_in_range(own_samples(text), expected / 2, 2 * expected + 20);
	}
	free(text);
	nb_sampler_end();
}

static size_t count_open(void)
{
	size_t open = 0;

	for (int fd = 0; fd < 1024; fd++)
		open += lseek(fd, 0, SEEK_CUR) >= 0 || dup2(fd, fd) == fd;
	return open;
}

static void nothing_is_open_after_the_end(void **state)
{
	static const char *const orders[] = { "on", "off", "ready 50", "on" };
	size_t before = count_open();

	(void)state;
	if (!may_sample())
		skip();
	nb_sampler_end();
	for (size_t i = 0; i < NB_LENGTH(orders); i++) { /* the end comes after each of them */
		assert_int_equal(0, op_try_set("profile sampling", "ready 997"));
		for (size_t j = 0; j <= i; j++)
			op_set("profile sampling", orders[j]);
		nb_sampler_end();
		assert_int_equal(before, count_open());
		assert_string_equal("off\n", op_get("profile sampling"));
		assert_string_equal("", op_get("profile 0"));
	}
}

static void wrong_orders_are_refused(void **state)
{
	static const struct {
		const char *target;
		const char *value;
		const char *expected;
	} cases[] = {
		{ "profile sampling", "on", "there is no profile to start" },
		{ "profile sampling", "off", "there is no profile to stop" },
		{ "profile sampling", "ready", "no order for a profile" },
		{ "profile sampling", "ready 0", "no order for a profile" },
		{ "profile sampling", "ready -1", "no order for a profile" },
		{ "profile sampling", "ready 100001", "no order for a profile" },
		{ "profile sampling", "ready 9x", "no order for a profile" },
		{ "profile 0", "on", "only read" },
		{ "profile x", NULL, "no part of a profile" },
		{ "profile -1", NULL, "no part of a profile" },
	};

	(void)state;
	nb_sampler_end();
	for (size_t i = 0; i < NB_LENGTH(cases); i++)
		op_must_fail(cases[i].target, cases[i].value, NB_ERR_REQUEST, cases[i].expected);
	assert_string_equal("", op_get("profile 18446744073709551615"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_of_the_kernel_has_one_name),
		cmocka_unit_test(equal_stacks_are_one),
		cmocka_unit_test(memory_for_stacks_is_bounded),
		cmocka_unit_test(a_busy_process_is_sampled_as_long_as_it_runs),
		cmocka_unit_test(nothing_is_open_after_the_end),
		cmocka_unit_test(wrong_orders_are_refused),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
