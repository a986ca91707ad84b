/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rows.h"

static int take_argument(struct nb_op_request *request, const struct nb_value *value,
			 const char *text, struct nb_error *error)
{
	const struct nb_field *field =
		nb_row_field(value->row, nb_op_arguments, nb_op_arguments_count);
	char *into = (char *)request + (field ? field->offset : 0);
	struct nb_target words = { text, value->bytes };

	if (!field)
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "number %u is not an argument of an operation", value->row);
	if (field->type != NB_TEXT && value->number > field->maximum)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "use a smaller one",
			       "%s %llu, at most %llu", field->name,
			       (unsigned long long)value->number,
			       (unsigned long long)field->maximum);
	if (field->type != NB_TEXT)
		memcpy(into, &value->number, sizeof(value->number));
	else if (field->flags & NB_LIST)
		memcpy(into, &words, sizeof(words));
	else if (strlen(text) != value->bytes)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "write a text",
			       "the %s contains a NUL byte", field->name);
	else
		memcpy(into, &text, sizeof(text));
	return 0;
}

static size_t count_words(const struct nb_target *target)
{
	size_t count = 1;

	for (size_t i = 0; i < target->length; i++)
		count += !target->words[i];
	return count;
}

static int check_request(struct nb_op_request *request, struct nb_error *error)
{
	const struct nb_op *op = NULL;
	size_t words = request->target.words ? count_words(&request->target) : 0;

	if (!request->kind || !request->target.words)
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "an operation needs a kind and a target");
	for (size_t i = 0; nb_ops[i] && !op; i++)
		op = strcmp(nb_ops[i]->name, request->kind) ? NULL : nb_ops[i];
	if (!op)
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "no operation '%.40s'", request->kind);
	request->op = op;
	if (op->words && words != op->words && !(op->named && words == op->words + 1))
		return nb_fail(error, NB_ERR_REQUEST, "operation", NB_SAME_VERSION,
			       "the target of %s is %zu words, not %zu", op->name, op->words,
			       words);
	if (request->value && !op->set)
		return nb_fail(error, NB_ERR_REQUEST, "operation",
			       op->words ? "only read it" : "give it as an exec with an undo",
			       "%s cannot write", op->name);
	if ((request->value && request->hold && op->keep) || (request->undo.words && op->words))
		return nb_fail(error, NB_ERR_REQUEST, "operation", "hold it instead", "%s is %s",
			       op->name,
			       op->keep ? "held beside a change, not written"
					: "undone by what it read, not by a program");
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
		status = take_argument(request, &value, text, error);
		if (status)
			return status;
	}
	return status ? status : check_request(request, error);
}

/* The edges of the two texts of an answer. */
enum reading { BEFORE = 0, AFTER = 1 };

static void answer_text(struct nb_writer *answer, enum reading reading, const char *text)
{
	nb_put_text(answer, nb_row_of(&nb_op_arguments[NB_OP_VALUE]), reading, text, strlen(text));
}

/* A program that failed has changed nothing that is its own to undo, unless it was stopped, or what
 * is looked at reads otherwise. */
static int has_changed_nothing(const struct nb_op *op, const struct nb_target *look,
			       const char *before, const struct nb_error *error)
{
	char *now = look->words ? nb_op_read(op, look, NULL) : NULL;
	int same = look->words ? now && !strcmp(now, before) : error->error != ETIMEDOUT;

	free(now);
	return same;
}

/* Read, or run the program; what is held is held before it is changed: a change that fails half-way
 * is undone too. NULL with the error filled. */
static char *read_before(const struct nb_op_request *request, struct nb_undo_entry **stack,
			 struct nb_error *error)
{
	const struct nb_op *op = request->op;
	int holds = request->hold && (request->value || op->keep) && !op->lasting;
	int undone = request->undo.words != NULL;
	const struct nb_target *look = &request->look;
	char *text, *before;

	if ((holds || undone) && nb_undo_check_scope(*stack, request->scope, error))
		return NULL;
	text = undone && look->words ? nb_op_read(op, look, error) : NULL;
	if (undone &&
	    ((look->words && !text) || nb_undo_push(stack, request->scope, op, &request->undo, look,
						    text ? text : "", error))) {
		free(text);
		return NULL;
	}
	before = text;
	text = nb_op_read(op, &request->target, error);
	if (!text && undone && has_changed_nothing(op, look, before, error))
		nb_undo_release(stack);
	free(before);
	if (text && holds && !undone &&
	    nb_undo_push(stack, request->scope, op, &request->target, look, text, error)) {
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
	if (!strcmp(request->op->name, "lock") && request->value) /* by which the log knows it */
		snprintf(client->campaign, sizeof(client->campaign), "%s", request->value);
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
	if (client->permit && (refused || !request->op->words ||
			       (request->value && request->op->set && !request->op->lasting)))
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

	return status ? status : execute(&request, client, stack, answer, error);
}
