/* SPDX-License-Identifier: MIT */
/* Operations: decoded, executed, held, and undone in reverse. What each kind does is in its file
 * under ops/. */
#include "ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartbeat.h"

enum { OP_KIND, OP_TARGET, OP_VALUE, OP_HOLD, OP_SCOPE, OP_UNDO };
enum nb_edge_of_op { BEFORE = 0, AFTER = 1 };

static const char SAME_VERSION[] = "use the same netbench version on both sides";

const struct nb_field nb_op_arguments[] = {
	[OP_KIND] = { .name = "op", .about = "the operation, by name", .type = NB_TEXT },
	[OP_TARGET] = { .name = "target",
			.about = "file, or interface and key, or program and arguments, separated "
				 "by NUL",
			.type = NB_TEXT,
			.flags = NB_LIST },
	[OP_VALUE] = { .name = "value",
		       .about = "what to write; left out: only read",
		       .type = NB_TEXT },
	[OP_HOLD] = { .name = "hold",
		      .about = "put back what was there when the controller asks or is gone",
		      .type = NB_FLAG,
		      .maximum = 1 },
	[OP_SCOPE] = { .name = "scope",
		       .about = "what is held in a scope is undone together with all scopes above "
				"it",
		       .maximum = NB_OP_SCOPES - 1 },
	[OP_UNDO] = { .name = "undo",
		      .about = "program and arguments that undo an exec",
		      .type = NB_TEXT,
		      .flags = NB_LIST },
};
const size_t nb_op_arguments_count = NB_LENGTH(nb_op_arguments);

struct nb_undo_entry {
	struct nb_undo_entry *before;
	const struct nb_op *op;
	struct nb_target target; /* its words are this entry's */
	char *value;
	uint32_t scope;
};

struct request {
	const struct nb_op *op;
	struct nb_target target; /* as `undo`, a copy with its end */
	struct nb_target undo;
	char *value; /* NULL: only read */
	int hold;
	uint32_t scope;
};

static const struct nb_op *op_named(const char *name, size_t length)
{
	for (size_t i = 0; nb_ops[i]; i++)
		if (strlen(nb_ops[i]->name) == length && !memcmp(nb_ops[i]->name, name, length))
			return nb_ops[i];
	return NULL;
}

static char *copy_text(const char *text, size_t length)
{
	char *copy = malloc(length + 1);

	if (copy) {
		memcpy(copy, text, length);
		copy[length] = 0;
	}
	return copy;
}

static int no_memory(struct nb_error *error, const char *what)
{
	return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "no memory for %s",
		       what);
}

static int take_words(struct nb_target *target, const char *text, size_t length,
		      struct nb_error *error)
{
	free((char *)target->words);
	target->words = copy_text(text, length);
	target->length = length;
	return target->words ? 0 : no_memory(error, "a target");
}

static int take_value(struct request *request, const char *text, size_t length,
		      struct nb_error *error)
{
	if (memchr(text, 0, length))
		return nb_fail(error, NB_ERR_REQUEST, "operation", "write a text",
			       "a value with a NUL in it");
	free(request->value);
	request->value = copy_text(text, length);
	return request->value ? 0 : no_memory(error, "a value");
}

static int take_argument(struct request *request, size_t argument, const struct nb_value *value,
			 const char *text, struct nb_error *error)
{
	switch (argument) {
	case OP_KIND:
		request->op = op_named(text, value->bytes);
		return request->op ? 0
				   : nb_fail(error, NB_ERR_REQUEST, "operation", SAME_VERSION,
					     "no operation '%.*s'",
					     (int)(value->bytes < 40 ? value->bytes : 40), text);
	case OP_TARGET:
		return take_words(&request->target, text, value->bytes, error);
	case OP_VALUE:
		return take_value(request, text, value->bytes, error);
	case OP_HOLD:
		request->hold = value->number != 0;
		return 0;
	case OP_SCOPE:
		request->scope = (uint32_t)value->number;
		return value->number < NB_OP_SCOPES
			       ? 0
			       : nb_fail(error, NB_ERR_REQUEST, "operation", "use fewer scopes",
					 "scope %llu, the last one is %d",
					 (unsigned long long)value->number, NB_OP_SCOPES - 1);
	default:
		return take_words(&request->undo, text, value->bytes, error);
	}
}

/* The index of a row in nb_op_arguments, or how many there are if it is none. */
static size_t argument_of(const struct nb_row *row)
{
	const struct nb_row *owner = row && row->kind == NB_ROW_OPTION ? nb_row(row->owner) : NULL;
	size_t i = 0;

	if (!owner || owner->kind != NB_ROW_OP)
		return nb_op_arguments_count;
	while (i < nb_op_arguments_count && strcmp(row->name, nb_op_arguments[i].name) != 0)
		i++;
	return i;
}

static size_t count_words(const struct nb_target *target)
{
	size_t count = 1;

	for (size_t i = 0; i < target->length; i++)
		count += !target->words[i];
	return count;
}

static int check_request(const struct request *request, struct nb_error *error)
{
	const struct nb_op *op = request->op;

	if (!op || !request->target.words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", SAME_VERSION,
			       "an operation needs a kind and a target");
	if (op->words && count_words(&request->target) != op->words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", SAME_VERSION,
			       "the target of %s is %zu words, not %zu", op->name, op->words,
			       count_words(&request->target));
	if (request->value && !op->set)
		return nb_fail(error, NB_ERR_REQUEST, "operation",
			       op->words ? "only read it" : "give it as an exec with an undo",
			       "%s cannot write", op->name);
	if (request->undo.words && op->words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "hold it instead",
			       "%s is undone by what it read, not by a program", op->name);
	return 0;
}

static int decode(struct request *request, const unsigned char *payload, size_t length,
		  struct nb_error *error)
{
	const unsigned char *at = payload, *end = payload + length;
	struct nb_value value;
	const char *text;
	int status;

	while ((status = nb_next_value(&at, end, &value, &text, error)) > 0) {
		size_t argument = argument_of(nb_row(value.row));

		if (argument == nb_op_arguments_count)
			return nb_fail(error, NB_ERR_REQUEST, "operation", SAME_VERSION,
				       "number %u is no argument of an operation", value.row);
		status = take_argument(request, argument, &value, text, error);
		if (status)
			return status;
	}
	return status ? status : check_request(request, error);
}

static void forget(struct request *request)
{
	free((char *)request->target.words);
	free((char *)request->undo.words);
	free(request->value);
}

static void free_entry(struct nb_undo_entry *entry)
{
	if (entry) {
		free((char *)entry->target.words);
		free(entry->value);
	}
	free(entry);
}

static int hold(struct nb_undo_entry **held, const struct request *request,
		const struct nb_target *target, const char *value, struct nb_error *error)
{
	struct nb_undo_entry *entry = calloc(1, sizeof(*entry));

	if (entry) {
		entry->op = request->op;
		entry->scope = request->scope;
		entry->target = (struct nb_target){ copy_text(target->words, target->length),
						    target->length };
		entry->value = copy_text(value, strlen(value));
		entry->before = *held;
	}
	if (entry && entry->target.words && entry->value) {
		*held = entry;
		return 0;
	}
	free_entry(entry);
	return no_memory(error, "what was there");
}

static void release(struct nb_undo_entry **held)
{
	struct nb_undo_entry *entry = *held;

	*held = entry->before;
	free_entry(entry);
}

static int get(const struct nb_op *op, const struct nb_target *target, struct nb_text *text,
	       struct nb_error *error)
{
	int status;

	text->used = 0;
	text->full = 0;
	text->data[0] = 0;
	status = op->get(target, text, error);
	if (!status && text->full)
		status = nb_fail(error, NB_ERR_UNSUPPORTED, op->name, "leave it out",
				 "what %s reads is longer than %zu bytes", target->words,
				 text->room - 1);
	return status;
}

/* What the kernel moves along is remembered first, so put back last: putting back the one may move
 * the other again. */
static int hold_moved(const struct request *request, struct nb_text *text,
		      struct nb_undo_entry **held, struct nb_error *error)
{
	char words[NB_OP_MOVED];
	struct nb_target other = { words, 0 };

	if (request->op->moves)
		other.length = request->op->moves(&request->target, words);
	if (!other.length || get(request->op, &other, text, NULL))
		return 0; /* this kernel does not have it */
	return hold(held, request, &other, text->data, error);
}

/* Undoing nests: what is held later is undone sooner. */
static int check_scope(const struct request *request, const struct nb_undo_entry *held,
		       struct nb_error *error)
{
	if (!held || held->scope <= request->scope)
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "operation", "undo the scopes above it first",
		       "operations nest: scope %u is asked for while scope %u is held",
		       request->scope, held->scope);
}

/* Run a program that has an undo. */
static int run(const struct request *request, struct nb_text *text, struct nb_undo_entry **held,
	       struct nb_error *error)
{
	int status = hold(held, request, &request->undo, "", error);

	if (status)
		return status;
	status = get(request->op, &request->target, text, error);
	/* A program that failed has changed nothing that is its own to undo; one that was stopped
	 * may have. */
	if (status && error->error != ETIMEDOUT)
		release(held);
	return status;
}

/* Remembered before it is changed: a change that fails half-way is undone too. */
static int remember(const struct request *request, struct nb_text *text,
		    struct nb_undo_entry **held, struct nb_error *error)
{
	int status = hold_moved(request, text, held, error);

	if (!status)
		status = get(request->op, &request->target, text, error);
	return status ? status : hold(held, request, &request->target, text->data, error);
}

static int read_before(const struct request *request, struct nb_text *text,
		       struct nb_undo_entry **held, struct nb_error *error)
{
	int holds = request->hold && request->value && !request->op->lasting;
	int status = holds || request->undo.words ? check_scope(request, *held, error) : 0;

	if (status)
		return status;
	if (request->undo.words)
		return run(request, text, held, error);
	if (holds)
		return remember(request, text, held, error);
	return get(request->op, &request->target, text, error);
}

static int perform(const struct request *request, struct nb_text *text, struct nb_undo_entry **held,
		   struct nb_writer *answer, struct nb_error *error)
{
	uint16_t row = nb_row_of_op_argument(OP_VALUE);
	int status = read_before(request, text, held, error);

	if (!status)
		nb_put_text(answer, row, BEFORE, text->data, strlen(text->data));
	if (status || !request->value)
		return status;
	status = request->op->set(&request->target, request->value, error);
	if (!status)
		status = get(request->op, &request->target, text, error);
	if (!status)
		nb_put_text(answer, row, AFTER, text->data, strlen(text->data));
	return status;
}

static int make_text(struct nb_text *text, struct nb_error *error)
{
	*text = (struct nb_text){ .data = malloc(NB_OP_TEXT), .room = NB_OP_TEXT };
	return text->data ? 0 : no_memory(error, "an answer");
}

int nb_op_execute(const unsigned char *payload, size_t length, struct nb_undo_entry **held,
		  struct nb_writer *answer, struct nb_error *error)
{
	struct request request = { 0 };
	struct nb_text text;
	int status = make_text(&text, error);

	if (!status)
		status = decode(&request, payload, length, error);
	if (!status)
		status = perform(&request, &text, held, answer, error);
	forget(&request);
	free(text.data);
	return status;
}

int nb_op_check(const unsigned char *payload, size_t length, struct nb_error *error)
{
	struct request request = { 0 };
	int status = decode(&request, payload, length, error);

	forget(&request);
	return status;
}

/* "op word word" of what an entry is about, for messages. */
static void name_entry(const struct nb_undo_entry *entry, char *name, size_t room)
{
	size_t used = (size_t)snprintf(name, room, "%s ", entry->op->name);

	for (size_t i = 0; i < entry->target.length && used + 1 < room; i++)
		name[used++] = entry->target.words[i] ? entry->target.words[i] : ' ';
	name[used] = 0;
}

/* The first line in which two texts differ: where it begins in both. */
static size_t differing_line(const char *one, const char *other)
{
	size_t begin = 0;

	for (size_t i = 0; one[i] && one[i] == other[i]; i++)
		if (one[i] == '\n')
			begin = i + 1;
	return begin;
}

static int shown(const char *line)
{
	size_t length = strcspn(line, "\n");

	return length < 70 ? (int)length : 70;
}

static int fail_difference(const struct nb_undo_entry *entry, const char *now,
			   struct nb_error *error)
{
	size_t at = differing_line(now, entry->value);
	const char *reads = now + at, *was = entry->value + at;
	char name[64];

	name_entry(entry, name, sizeof(name));
	return nb_fail(error, NB_ERR_SYSTEM, "undo",
		       "something else changed it in between: put it back by hand",
		       "%s reads '%.*s', it was '%.*s'", name, shown(reads), reads, shown(was),
		       was);
}

static int put_back(const struct nb_undo_entry *entry, struct nb_text *text, struct nb_error *error)
{
	const struct nb_op *op = entry->op;
	int status;

	if (!get(op, &entry->target, text, NULL) && !strcmp(text->data, entry->value))
		return 0;
	status = (op->restore ? op->restore : op->set)(&entry->target, entry->value, error);
	if (!status)
		status = get(op, &entry->target, text, error);
	if (!status && strcmp(text->data, entry->value) != 0)
		status = fail_difference(entry, text->data, error);
	return status;
}

static int undo_one(const struct nb_undo_entry *entry, struct nb_error *error)
{
	struct nb_text text;
	int status = make_text(&text, error);

	if (!status)
		status = entry->op->set ? put_back(entry, &text, error)
					: get(entry->op, &entry->target, &text, error);
	free(text.data);
	return status;
}

static void add_count(struct nb_error *error, size_t others)
{
	char more[64];
	size_t length, used = strlen(error->message);

	length = (size_t)snprintf(more, sizeof(more), "; %zu more could not be put back", others);
	if (used > sizeof(error->message) - 1 - length)
		used = sizeof(error->message) - 1 - length;
	memcpy(error->message + used, more, length + 1);
}

int nb_op_undo(struct nb_undo_entry **held, uint32_t scope, struct nb_error *error)
{
	size_t failures = 0;
	int first = 0;

	while (*held && (*held)->scope >= scope) {
		struct nb_error ignored;
		int status = undo_one(*held, first ? &ignored : error);

		failures += status != 0;
		first = first ? first : status;
		release(held);
		nb_heartbeat();
	}
	if (failures > 1)
		add_count(error, failures - 1);
	return first;
}
