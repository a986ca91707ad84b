/* SPDX-License-Identifier: MIT */
/* Sources, sinks and the digest that compares them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ends.h"
#include "pattern.h"
#include "test_controller.h"

static void the_digest_is_fnv_1a(void **state)
{
	(void)state;
	/* Test vectors of the FNV reference code: http://www.isthe.com/chongo/src/fnv/test_fnv.c */
	assert_true(nb_digest(NB_DIGEST_START, "", 0) == 0xcbf29ce484222325ULL);
	assert_true(nb_digest(NB_DIGEST_START, "a", 1) == 0xaf63dc4c8601ec8cULL);
	assert_true(nb_digest(NB_DIGEST_START, "foobar", 6) == 0x85944171f73967e8ULL);
	assert_true(nb_digest(nb_digest(NB_DIGEST_START, "foo", 3), "bar", 3) ==
		    0x85944171f73967e8ULL);
}

static void the_pattern_is_one_of_offsets(void **state)
{
	unsigned char whole[3 * 4096], part[100];

	(void)state;
	nb_pattern(whole, sizeof(whole), 0);
	for (size_t offset = 0; offset < 64; offset++) {
		nb_pattern(part, sizeof(part), 4000 + offset);
		assert_memory_equal(whole + 4000 + offset, part, sizeof(part));
	}
	/* Bytes that arrive a page or a word late must not look right. */
	assert_memory_not_equal(whole, whole + 4096, 4096);
	assert_memory_not_equal(whole, whole + 8, 4096);
	assert_memory_not_equal(whole, whole + 1, 4096);
}

/* Read all of a source by the two functions that every method uses, `chunk` bytes a step. */
static uint64_t walk(struct nb_source *source, uint64_t length, size_t chunk)
{
	uint64_t digest = NB_DIGEST_START;
	unsigned char *block = malloc(chunk);

	assert_non_null(block);
	while (length) {
		size_t want = nb_source_clamp(source, chunk < length ? chunk : (size_t)length);

		assert_true(want > 0);
		assert_int_equal(want,
				 pread(nb_source_fd(source), block, want, (off_t)source->offset));
		digest = nb_digest(digest, block, want);
		nb_source_advance(source, want);
		length -= want;
	}
	free(block);
	return digest;
}

static struct nb_source opened(const struct nb_job *job, uint32_t stream)
{
	struct nb_source source = { 0 };
	struct nb_error error;

	if (nb_source_open(&source, job, stream, &error))
		fail_msg("%s", error.message);
	return source;
}

/* A source walked in steps gives what its digest says, several times round and cut off in the
 * middle. */
static void check_source(struct nb_job *job, uint64_t length, size_t chunk)
{
	struct nb_source source = opened(job, 0);
	uint64_t digest = NB_DIGEST_START;
	struct nb_error error;

	assert_int_equal(0, nb_source_digest(&source, length, &digest, &error));
	assert_true(digest == walk(&source, length, chunk));
	nb_source_close(&source);
	nb_scratch_files_close();
}

static void memory_holds_whole_chunks(void **state)
{
	struct nb_job job = { .source = NB_SOURCE_MEMORY, .chunk = 100000, .streams = 1 };
	struct nb_source source = opened(&job, 0);

	(void)state;
	assert_int_equal(1, source.count);
	assert_int_equal(0, source.ranges[0].end % job.chunk);
	assert_int_equal(source.ranges[0].end, source.largest);
	nb_source_close(&source);
	check_source(&job, 3333333, 100000);
	check_source(&job, 3333333, 4097);
}

static void zero_is_endless(void **state)
{
	struct nb_job job = { .source = NB_SOURCE_ZERO, .chunk = 65536, .streams = 1 };
	struct nb_source source = opened(&job, 0);
	struct nb_residence found = { 0, 0 };
	struct nb_error error;

	(void)state;
	assert_true(source.largest == NB_MISSING);
	assert_int_equal(65536, nb_source_clamp(&source, 65536));
	nb_source_advance(&source, 65536);
	assert_int_equal(0, source.offset);
	assert_int_equal(0, nb_page_cache_prepare(&source, &job, &found, &error));
	assert_true(found.resident == NB_MISSING && found.size == NB_MISSING);
	nb_source_close(&source);
}

static void a_named_file_is_read_round_and_round_unless_it_is_cut_short(void **state)
{
	char *path = temporary_file("0123456789", 10);
	struct nb_job job = { .source = NB_SOURCE_FILE, .chunk = 4, .streams = 1 };
	uint64_t digest = NB_DIGEST_START;
	struct nb_source source;
	struct nb_error error;

	(void)state;
	strcpy(job.source_path, path);
	check_source(&job, 37, 4);
	source = opened(&job, 0);
	assert_int_equal(0, nb_source_digest(&source, 25, &digest, &error));
	assert_true(digest == nb_digest(NB_DIGEST_START, "0123456789012345678901234", 25));
	assert_int_equal(0, truncate(path, 5));
	assert_true(nb_source_digest(&source, 10, &digest, &error) < 0);
	assert_int_equal(ENODATA, error.error);
	nb_source_close(&source);
	forget_file(path);
}

static void files_differ_and_are_made_once(void **state)
{
	struct nb_job job = { .source = NB_SOURCE_FILES,
			      .source_files = 5,
			      .source_size = 70001,
			      .chunk = 65536,
			      .streams = 1 };
	struct nb_source one, two;
	struct stat first, second;
	unsigned char a[64], b[64];

	(void)state;
	check_source(&job, 5 * 70001 + 12345, 65536);
	one = opened(&job, 0);
	two = opened(&job, 0);
	assert_int_equal(5, one.count);
	assert_int_equal(64, pread(one.ranges[0].fd, a, 64, 0));
	assert_int_equal(64, pread(one.ranges[1].fd, b, 64, 0));
	assert_memory_not_equal(a, b, 64);
	/* Two runs read the same file, each at its own offset. */
	assert_int_equal(0, fstat(one.ranges[3].fd, &first) | fstat(two.ranges[3].fd, &second));
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(64, read(one.ranges[3].fd, a, 64));
	assert_int_equal(0, lseek(two.ranges[3].fd, 0, SEEK_CUR));
	nb_source_close(&one);
	nb_source_close(&two);
	nb_scratch_files_close();
}

/* Whatever the sizes: the streams' ranges follow one another without a gap, are no more than a page
 * from equal, and begin at a page where there are enough of them. */
static void divide(struct nb_job *job, uint64_t size)
{
	uint64_t files = job->source == NB_SOURCE_FILES ? job->source_files : 1;
	uint64_t total = files * size, share = total / job->streams, at = 0, page = 4096;

	for (uint32_t stream = 0; stream < job->streams; stream++) {
		struct nb_source source = opened(job, stream);
		uint64_t bytes = 0;

		for (uint32_t i = 0; i < source.count; i++) {
			const struct nb_range *range = &source.ranges[i];

			assert_int_equal(at % size, range->begin);
			assert_true(share < page || range->begin % page == 0);
			assert_int_equal(range->begin, lseek(range->fd, 0, SEEK_CUR));
			at += range->end - range->begin;
			bytes += range->end - range->begin;
		}
		assert_true(bytes > 0 && bytes <= share + page && bytes + page >= share);
		nb_source_close(&source);
		if (stream + 1 == job->streams) /* each is walked as its digest says */
			check_source(job, 2 * total + 5, 5000);
	}
	assert_int_equal(total, at);
	nb_scratch_files_close();
}

static void streams_have_disjoint_ranges(void **state)
{
	static const uint64_t shapes[][3] = { { 1, 1 << 20, 4 }, { 1, 1000003, 7 }, { 1, 10, 10 },
					      { 1, 9000, 4 },	 { 5, 70001, 2 },   { 60, 4096, 4 },
					      { 3, 300, 8 },	 { 2, 1 << 20, 6 }, { 9, 1, 4 } };
	(void)state;
	for (size_t i = 0; i < NB_LENGTH(shapes); i++) {
		struct nb_job job = { .source = NB_SOURCE_FILES,
				      .source_files = shapes[i][0],
				      .source_size = shapes[i][1],
				      .chunk = 4096,
				      .streams = shapes[i][2] };

		divide(&job, shapes[i][1]);
		if (shapes[i][0] == 1) {
			char *bytes = calloc(1, shapes[i][1]), *path;

			path = temporary_file(bytes, shapes[i][1]);
			free(bytes);
			job.source = NB_SOURCE_FILE;
			strcpy(job.source_path, path);
			divide(&job, shapes[i][1]);
			forget_file(path);
		}
	}
}

static void what_cannot_be_sent_is_refused(void **state)
{
	static const struct {
		const char *path; /* NULL: a file of so many bytes, which is made */
		size_t bytes;
		const char *expected;
		struct nb_job job;
	} cases[] = {
		{ NULL, 0, "is empty", { .source = NB_SOURCE_FILE, .streams = 1 } },
		{ "/", 0, "is neither", { .source = NB_SOURCE_FILE, .streams = 1 } },
		{ "/dev/null", 0, "is neither", { .source = NB_SOURCE_FILE, .streams = 1 } },
		{ "/no/such/file", 0, "No such file", { .source = NB_SOURCE_FILE, .streams = 1 } },
		{ NULL,
		  4,
		  "5 streams cannot divide a source of 4 bytes",
		  { .source = NB_SOURCE_FILE, .streams = 5 } },
		{ "/tmp",
		  0,
		  "no files or no size",
		  { .source = NB_SOURCE_FILES, .streams = 1, .source_files = 2 } },
		{ "/no/such/folder",
		  0,
		  "No such file",
		  { .source = NB_SOURCE_FILES,
		    .streams = 1,
		    .source_files = 2,
		    .source_size = 10 } },
	};

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(cases); i++) {
		char *made = cases[i].path ? NULL : temporary_file("0123", cases[i].bytes);
		struct nb_job job = cases[i].job;
		struct nb_source source = { 0 };
		struct nb_error error;

		job.chunk = 4;
		strcpy(job.source_path, made ? made : cases[i].path);
		assert_true(nb_source_open(&source, &job, 0, &error) < 0);
		if (!strstr(error.message, cases[i].expected))
			fail_msg("'%s' does not say '%s'", error.message, cases[i].expected);
		nb_source_close(&source);
		if (made)
			forget_file(made);
	}
	nb_scratch_files_close();
}

/* Sinks */

static void discard_has_no_file_unless_it_is_verified(void **state)
{
	struct nb_job job = { .sink = NB_SINK_DISCARD };
	uint64_t digest = NB_DIGEST_START;
	struct nb_sink sink;
	struct nb_error error;

	(void)state;
	assert_int_equal(0, nb_sink_open(&sink, &job, 0, &error));
	assert_int_equal(-1, sink.fd);
	job.verify = 1;
	assert_int_equal(0, nb_sink_open(&sink, &job, 0, &error));
	assert_true(sink.fd >= 0);
	assert_int_equal(6, write(sink.fd, "foobar", 6));
	assert_int_equal(0, nb_sink_digest(&sink, 6, &digest, &error));
	assert_true(digest == 0x85944171f73967e8ULL);
	assert_true(nb_sink_digest(&sink, 7, &digest, &error) <
		    0); /* less arrived than was counted */
	assert_int_equal(ENODATA, error.error);
	nb_sink_close(&sink);
	assert_int_equal(-1, sink.fd);
}

static void what_exists_is_not_written_over(void **state)
{
	char *path = temporary_file("precious", 8), *first;
	struct nb_job job = { .sink = NB_SINK_FILE, .streams = 1 };
	struct nb_sink sink;
	struct nb_error error;

	(void)state;
	strcpy(job.sink_path, path);
	assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
	assert_non_null(strstr(error.remedy, "overwrite: true"));
	nb_sink_close(&sink);
	assert_true(file_holds(path, "precious", 8));
	/* Nor by another stream, though the first may: and then no file is made. */
	assert_true(asprintf(&first, "%.*s", (int)strlen(path) - 2, path) > 0);
	assert_int_equal(0, rename(path, strcat(strcpy(job.sink_path, first), ".1")));
	strcpy(job.sink_path, first);
	job.streams = 2;
	strcpy(job.sink_files, "1:2");
	assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
	assert_non_null(strstr(error.message, ".1 exists"));
	assert_int_equal(-1, access(first, F_OK));
	assert_int_equal(0, rename(strcat(job.sink_path, ".1"), path));
	free(first);
	strcpy(job.sink_path, path);
	job.streams = 1;
	job.overwrite = 1;
	job.sink_files[0] = '\0';
	assert_int_equal(0, nb_sink_open(&sink, &job, 0, &error));
	nb_sink_close(&sink);
	assert_true(file_holds(path, "", 0));
	forget_file(path);
	strcpy(job.sink_path, "/tmp");
	assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
	assert_non_null(strstr(error.message, "directory"));
}

/* Another user of the folder may put a link, or another file, where the sink was. */
static void what_replaced_a_sink_is_not_written_over(void **state)
{
	char *precious = temporary_file("precious", 8), *path = temporary_file("", 0);
	struct nb_job job = { .sink = NB_SINK_FILE, .streams = 1 };
	struct nb_sink sink;
	struct nb_error error;

	(void)state;
	strcpy(job.sink_path, path);
	assert_int_equal(0, unlink(path));
	assert_int_equal(0, nb_sink_open(&sink, &job, 0, &error));
	nb_sink_close(&sink);
	snprintf(job.sink_files, sizeof(job.sink_files), "%llu:%llu",
		 (unsigned long long)sink.device, (unsigned long long)sink.inode);
	assert_int_equal(0, nb_sink_open(&sink, &job, 0, &error));
	nb_sink_close(&sink);
	for (job.overwrite = 0; job.overwrite < 2; job.overwrite++) {
		assert_int_equal(0, unlink(path));
		assert_int_equal(0, symlink(precious, path));
		assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
		assert_non_null(strstr(error.message, "symbolic link"));
		assert_int_equal(0, unlink(path));
		assert_int_equal(0, link(precious, path));
		assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
		assert_non_null(strstr(error.message, "another file"));
		nb_sink_close(&sink);
	}
	assert_true(file_holds(precious, "precious", 8));
	assert_int_equal(0, unlink(precious));
	assert_int_equal(0, unlink(path));
	assert_int_equal(0, symlink(precious, path)); /* to nothing */
	job.sink_files[0] = '\0';
	for (job.overwrite = 0; job.overwrite < 2; job.overwrite++)
		assert_int_equal(-NB_ERR_REQUEST, nb_sink_open(&sink, &job, 0, &error));
	assert_int_equal(-1, access(precious, F_OK));
	forget_file(path);
	free(precious);
}

static void devices_can_be_sinks(void **state)
{
	struct nb_job job = { .sink = NB_SINK_FILE, .streams = 2, .sink_path = "/dev/null" };
	struct nb_sink sink;
	struct nb_error error;

	(void)state;
	for (uint32_t stream = 0; stream < 2; stream++) {
		assert_int_equal(0, nb_sink_open(&sink, &job, stream, &error));
		assert_true(sink.inode == NB_MISSING);
		nb_sink_close(&sink);
	}
	assert_int_equal(-1, access("/dev/null.1", F_OK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_is_fnv_1a),
		cmocka_unit_test(the_pattern_is_one_of_offsets),
		cmocka_unit_test(memory_holds_whole_chunks),
		cmocka_unit_test(zero_is_endless),
		cmocka_unit_test(a_named_file_is_read_round_and_round_unless_it_is_cut_short),
		cmocka_unit_test(what_cannot_be_sent_is_refused),
		cmocka_unit_test(files_differ_and_are_made_once),
		cmocka_unit_test(streams_have_disjoint_ranges),
		cmocka_unit_test(discard_has_no_file_unless_it_is_verified),
		cmocka_unit_test(what_exists_is_not_written_over),
		cmocka_unit_test(what_replaced_a_sink_is_not_written_over),
		cmocka_unit_test(devices_can_be_sinks),
	};

	return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}
