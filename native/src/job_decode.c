/* SPDX-License-Identifier: MIT */
/* Decoding a job: values become fields, checked one by one and then together. */
#include "job.h"

#include <string.h>

#include "method.h"
#include "rows.h"
#include "wire.h"

#define REFUSE(error, remedy, ...) nb_fail(error, NB_ERR_REQUEST, "decode job", remedy, __VA_ARGS__)

static const uint64_t GIB = 1ULL << 30;

static int store_text(char *into, const struct nb_row *row, size_t room, const char *text,
		      size_t length, struct nb_error *error)
{
	/* A token is bytes, everything else is text and needs its end. */
	size_t needed = length + (room == NB_TOKEN_BYTES && !strcmp(row->name, "token") ? 0 : 1);

	if (needed > room)
		return REFUSE(error, "shorten it", "%s is %zu bytes long, at most %zu fit",
			      row->name, length, room - (needed - length));
	memset(into, 0, room);
	memcpy(into, text, length);
	if (!(row->flags & NB_LIST) && needed > length && memchr(text, 0, length))
		return REFUSE(error, "remove it", "%s contains a NUL byte", row->name);
	return 0;
}

/* The place of a word in a list separated by spaces, or -1. */
static int word_index(const char *words, const char *word, size_t length)
{
	int index = 0;

	for (const char *at = words; *at; index++) {
		size_t span = strcspn(at, " ");

		if (span == length && !memcmp(at, word, length))
			return index;
		at += span + (at[span] == ' ');
	}
	return -1;
}

static int word_number(const struct nb_row *row, const char *text, size_t length, uint64_t *number,
		       struct nb_error *error)
{
	int index = word_index(row->words, text, length);

	if (index < 0)
		return REFUSE(error, "use one of those words", "%s is '%.*s', expected one of: %s",
			      row->name, (int)(length < 40 ? length : 40), text, row->words);
	*number = (uint64_t)index;
	return 0;
}

static int store(struct nb_job *job, const struct nb_value *value, const char *text,
		 struct nb_error *error)
{
	const struct nb_row *row = nb_row(value->row);
	const struct nb_field *field =
		nb_row_field(value->row, nb_job_options, nb_job_options_count);
	uint64_t number = value->number;
	uint64_t *list;
	char *into;
	int status = 0;

	if (!row || (!field && nb_row_method_option(row->id) >= NB_METHOD_OPTIONS) ||
	    (value->bytes && row->type != NB_WORD && row->type != NB_TEXT))
		return REFUSE(error, NB_SAME_VERSION,
			      "number %u is no option of a job, or its value is no number",
			      value->row);
	if (row->type == NB_WORD)
		status = word_number(row, text, value->bytes, &number, error);
	else if (row->type != NB_TEXT && (number < row->minimum || number > row->maximum))
		status = REFUSE(error, "choose a value within the limits",
				"%s is %llu; it must be between %llu and %llu", row->name,
				(unsigned long long)number, (unsigned long long)row->minimum,
				(unsigned long long)row->maximum);
	if (status)
		return status;
	if (!field) {
		job->extra[nb_row_method_option(row->id)] = number;
		return 0;
	}
	into = (char *)job + field->offset;
	if (row->type == NB_TEXT)
		return store_text(into, row, field->room, text, value->bytes, error);
	list = (uint64_t *)(void *)into; /* of several numbers: their count before them */
	if (row->flags & NB_LIST && list[0] == field->room)
		return REFUSE(error, "shorten it", "%s has more than %zu numbers", row->name,
			      field->room);
	list[row->flags & NB_LIST ? ++list[0] : 0] = number;
	return 0;
}

/* Whether the method can read, or write, a file that is open with O_DIRECT. */
static int check_direct(const struct nb_job *job, struct nb_error *error)
{
	int source = job->source == NB_SOURCE_FILE || job->source == NB_SOURCE_FILES;
	int sends = job->role == NB_ROLE_SEND;

	if (!job->direct || job->method->flags & NB_DIRECT ||
	    !(sends ? source : job->sink == NB_SINK_FILE))
		return 0;
	return nb_fail(error, NB_ERR_UNSUPPORTED, "decode job",
		       "use direct: off with it, or `exclude:` the cell",
		       "%s cannot %s a file that is open with O_DIRECT: it does not do so by calls "
		       "with a buffer of its own",
		       job->method_name, sends ? "send from" : "write to");
}

/* A cell of which these are levels is no failure of the others. */
static int check_threads(const struct nb_job *job, struct nb_error *error)
{
	int alone = nb_method_is_alone(job);

	if (job->threads > job->streams)
		return nb_fail(error, NB_ERR_UNSUPPORTED, "decode job",
			       "use no more threads than streams",
			       "threads is %llu, and a stream has one thread at most: streams is "
			       "%llu",
			       (unsigned long long)job->threads, (unsigned long long)job->streams);
	if (alone && job->threads && job->threads < job->streams)
		return nb_fail(
			error, NB_ERR_UNSUPPORTED, "decode job",
			"leave threads out, or use another method",
			"%s needs a thread for each stream: its steps wait for no connection",
			job->method_name);
	return 0;
}

static int check_whole(struct nb_job *job, struct nb_error *error)
{
	int moves = job->role == NB_ROLE_SEND || job->role == NB_ROLE_RECEIVE;
	const struct nb_row *row;

	if (job->align + job->chunk > GIB + 65536)
		return REFUSE(error, "use a smaller chunk", "the buffer would be over 1 GiB");
	if (!moves)
		return 0;
	job->method = nb_method_named(job->role == NB_ROLE_SEND ? NB_ROW_SEND : NB_ROW_RECEIVE,
				      job->method_name);
	if (!job->method)
		return REFUSE(error, "run `netbench list methods` to see the methods",
			      "no %s method '%s'", job->role == NB_ROLE_SEND ? "send" : "receive",
			      job->method_name);
	row = nb_row(nb_row_of(job->method));
	if (row->why[0])
		return nb_fail(error, NB_ERR_UNSUPPORTED, "decode job",
			       "run `netbench list methods` to see the methods", "%s: %s",
			       job->method_name, row->why);
	if (!job->streams)
		return REFUSE(error, "use streams: 1", "a transfer needs at least one stream");
	if (check_threads(job, error))
		return -(int)error->code;
	return check_direct(job, error);
}

int nb_job_decode(struct nb_job *job, const unsigned char *payload, size_t length,
		  struct nb_error *error)
{
	const unsigned char *at = payload, *end = payload + length;
	struct nb_value value;
	const char *text;
	int status;

	memset(job, 0, sizeof(*job));
	while ((status = nb_next_value(&at, end, &value, &text, error)) > 0) {
		status = store(job, &value, text, error);
		if (status)
			return status;
	}
	return status ? status : check_whole(job, error);
}
