/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rows.h"

static const struct nb_op *op_named(const char *name, size_t length)
{
	for (size_t i = 0; nb_ops[i]; i++)
		if (strlen(nb_ops[i]->name) == length && !memcmp(nb_ops[i]->name, name, length))
			return nb_ops[i];
	return NULL;
}

static int take_words(struct nb_target *target, const char *text, size_t length,
		      struct nb_error *error)
{
	free((char *)target->words);
	target->words = nb_text_copy(text, length);
	target->length = length;
	return target->words ? 0 : nb_fail_memory(error, "a target");
}

static int take_value(struct nb_op_request *request, const char *text, size_t length,
		      struct nb_error *error)
{
	if (memchr(text, 0, length))
		return nb_fail(error, NB_ERR_REQUEST, "operation", "write a text",
			       "the value contains a NUL byte");
	free(request->value);
	request->value = nb_text_copy(text, length);
	return request->value ? 0 : nb_fail_memory(error, "a value");
}

static int take_argument(struct nb_op_request *request, size_t argument,
			 const struct nb_value *value, const char *text, struct nb_error *error)
{
	switch (argument) {
	case NB_OP_KIND:
		request->op = op_named(text, value->bytes);
		return request->op ? 0
				   : nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
					     "no operation '%.*s'",
					     (int)(value->bytes < 40 ? value->bytes : 40), text);
	case NB_OP_TARGET:
		return take_words(&request->target, text, value->bytes, error);
	case NB_OP_VALUE:
		return take_value(request, text, value->bytes, error);
	case NB_OP_HOLD:
		request->hold = value->number != 0;
		return 0;
	case NB_OP_ASK:
		request->ask = value->number != 0;
		return 0;
	case NB_OP_RESTORE:
		request->restore = value->number != 0;
		return 0;
	case NB_OP_SCOPE:
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

static int check_request(const struct nb_op_request *request, struct nb_error *error)
{
	const struct nb_op *op = request->op;

	if (!op || !request->target.words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "an operation needs a kind and a target");
	if (op->words && count_words(&request->target) != op->words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "the target of %s is %zu words, not %zu", op->name, op->words,
			       count_words(&request->target));
	if (request->value && !op->set)
		return nb_fail(error, NB_ERR_REQUEST, "operation",
			       op->words ? "only read it" : "give it as an exec with an undo",
			       "%s cannot write", op->name);
	if (request->value && request->hold && op->keep)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "hold it, or write it",
			       "%s is held beside a change, not written", op->name);
	if (request->undo.words && op->words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "hold it instead",
			       "%s is undone by what it read, not by a program", op->name);
	return 0;
}

int nb_op_decode(struct nb_op_request *request, const unsigned char *payload, size_t length,
		 struct nb_error *error)
{
	const unsigned char *at = payload, *end = payload + length;
	struct nb_value value;
	const char *text;
	int status;

	while ((status = nb_next_value(&at, end, &value, &text, error)) > 0) {
		size_t argument = argument_of(nb_row(value.row));

		if (argument == nb_op_arguments_count)
			return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
				       "number %u is not an argument of an operation", value.row);
		status = take_argument(request, argument, &value, text, error);
		if (status)
			return status;
	}
	return status ? status : check_request(request, error);
}

void nb_op_request_free(struct nb_op_request *request)
{
	free((char *)request->target.words);
	free((char *)request->undo.words);
	free(request->value);
}

/* The edges of the two texts of an answer. */
enum reading { BEFORE = 0, AFTER = 1 };

static void answer_text(struct nb_writer *answer, enum reading reading, const char *text)
{
	nb_put_text(answer, nb_row_of_op_argument(NB_OP_VALUE), reading, text, strlen(text));
}

/* Read, or run the program; what is held is held before it is changed: a change that fails half-way
 * is undone too. NULL with the error filled. */
static char *read_before(const struct nb_op_request *request, struct nb_undo_entry **stack,
			 struct nb_error *error)
{
	const struct nb_op *op = request->op;
	int holds = request->hold && (request->value || op->keep) && !op->lasting;
	int undone = request->undo.words != NULL;
	char *text;

	if ((holds || undone) && nb_undo_check_scope(*stack, request->scope, error))
		return NULL;
	if (undone && nb_undo_push(stack, request->scope, op, &request->undo, "", error))
		return NULL;
	text = nb_op_read(op, &request->target, error);
	/* A program that failed has changed nothing that is its own to undo; one that was stopped
	 * may have. */
	if (!text && undone && error->error != ETIMEDOUT)
		nb_undo_release(stack);
	if (text && holds && !undone &&
	    nb_undo_push(stack, request->scope, op, &request->target, text, error)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* Make the change between two notes of what is held beside it. What it reads then; NULL with the
 * error filled. */
static char *change(const struct nb_op_request *request, struct nb_undo_entry *held,
		    struct nb_error *error)
{
	const struct nb_op *op = request->op;
	char *after = NULL;

	if (request->hold)
		nb_undo_note(held, 0);
	if (!(request->restore ? nb_op_restore(op, &request->target, request->value, error)
			       : op->set(&request->target, request->value, error)))
		after = nb_op_read(op, &request->target, error);
	if (request->hold)
		nb_undo_note(held, 1);
	return after;
}

/* The name under which a campaign locks the host stands in the host's log from then on. */
static void remember_campaign(const struct nb_op_request *request, struct nb_client *client)
{
	if (!strcmp(request->op->name, "lock") && request->value)
		snprintf(client->campaign, sizeof(client->campaign), "%s", request->value);
}

/* Readings are not logged. */
static int is_logged(const struct nb_op_request *request)
{
	return (request->value && request->op->set && !request->op->lasting) || !request->op->words;
}

/* Execute what the client may ask for, with what the host's log is to tell of it. */
static int execute(const struct nb_op_request *request, struct nb_client *client,
		   struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error)
{
	int status = client->permit ? client->permit(client, request, error) : 0;
	int refused = status != 0;
	char *before = NULL, *after = NULL;
	struct nb_deed deed = { .verb = refused		     ? "refuse"
					: request->op->words ? "set"
							     : "run",
				.op = request->op,
				.target = &request->target };

	if (request->ask) {
		answer_text(answer, BEFORE, "");
		return status;
	}
	remember_campaign(request, client);
	if (!refused) {
		before = read_before(request, stack, error);
		after = before && request->value ? change(request, *stack, error) : NULL;
		status = before && (after || !request->value) ? 0 : -(int)error->code;
	}
	if (before)
		answer_text(answer, BEFORE, before);
	if (after)
		answer_text(answer, AFTER, after);
	deed.before = request->value ? before : NULL;
	deed.after = after;
	deed.error = status ? error : NULL;
	if (client->permit && (refused || is_logged(request)))
		nb_audit(client, &deed);
	free(before);
	free(after);
	return status;
}

int nb_op_execute(const unsigned char *payload, size_t length, struct nb_client *client,
		  struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error)
{
	struct nb_op_request request = { 0 };
	int status = nb_op_decode(&request, payload, length, error);

	if (!status)
		status = execute(&request, client, stack, answer, error);
	nb_op_request_free(&request);
	return status;
}
