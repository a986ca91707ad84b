/* SPDX-License-Identifier: MIT */
#include "execute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rows.h"
#include "arguments.h"
#include "audit.h"
#include "request.h"

/* The edges of the two texts of an answer. */
enum reading { BEFORE = 0, AFTER = 1 };

/* Run a program that has an undo. */
static int run_program(const struct nb_op_request *request, struct nb_text *text,
		       struct nb_undo_entry **stack, struct nb_error *error)
{
	int status = nb_undo_push(stack, request->scope, request->op, &request->undo, "", error);

	if (status)
		return status;
	status = nb_op_read(request->op, &request->target, text, error);
	/* A program that failed has changed nothing that is its own to undo; one that was stopped
	 * may have. */
	if (status && error->error != ETIMEDOUT)
		nb_undo_release(stack);
	return status;
}

/* Held before it is changed: a change that fails half-way is undone too. */
static int read_and_hold(const struct nb_op_request *request, struct nb_text *text,
			 struct nb_undo_entry **stack, struct nb_error *error)
{
	int status = nb_op_read(request->op, &request->target, text, error);

	return status ? status
		      : nb_undo_push(stack, request->scope, request->op, &request->target,
				     text->data, error);
}

static int read_before(const struct nb_op_request *request, struct nb_text *text,
		       struct nb_undo_entry **stack, struct nb_error *error)
{
	int holds = request->hold && (request->value || request->op->keep) && !request->op->lasting;
	int status = holds || request->undo.words
			     ? nb_undo_check_scope(*stack, request->scope, error)
			     : 0;

	if (status)
		return status;
	if (request->undo.words)
		return run_program(request, text, stack, error);
	if (holds)
		return read_and_hold(request, text, stack, error);
	return nb_op_read(request->op, &request->target, text, error);
}

static void answer_text(struct nb_writer *answer, enum reading reading, const struct nb_text *text)
{
	nb_put_text(answer, nb_row_of_op_argument(NB_OP_VALUE), reading, text->data,
		    strlen(text->data));
}

static int change(const struct nb_op_request *request, struct nb_text *text, struct nb_error *error)
{
	const struct nb_op *op = request->op;
	int status = (request->restore && op->restore ? op->restore : op->set)(
		&request->target, request->value, error);

	return status ? status : nb_op_read(request->op, &request->target, text, error);
}

static int perform(const struct nb_op_request *request, struct nb_text *text,
		   struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_deed *deed,
		   struct nb_error *error)
{
	int status = read_before(request, text, stack, error);

	if (status)
		return status;
	answer_text(answer, BEFORE, text);
	if (!request->value)
		return 0;
	deed->before = nb_text_copy(text->data, strlen(text->data));
	if (request->hold)
		nb_undo_note(*stack, 0);
	status = change(request, text, error);
	if (request->hold)
		nb_undo_note(*stack, 1);
	if (status)
		return status;
	deed->after = text->data;
	answer_text(answer, AFTER, text);
	return 0;
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
		   struct nb_text *text, struct nb_undo_entry **stack, struct nb_writer *answer,
		   struct nb_error *error)
{
	struct nb_deed deed = { .verb = "set", .op = request->op, .target = &request->target };
	int status = client->permit ? client->permit(client, request, error) : 0;
	int refused = status != 0;

	if (request->ask) {
		text->data[0] = 0;
		answer_text(answer, BEFORE, text);
		return status;
	}
	remember_campaign(request, client);
	if (!status)
		status = perform(request, text, stack, answer, &deed, error);
	if (refused || !request->op->words)
		deed.verb = refused ? "refuse" : "run";
	deed.error = status ? error : NULL;
	if (client->permit && (refused || is_logged(request)))
		nb_audit(client, &deed);
	free((char *)deed.before);
	return status;
}

int nb_op_execute(const unsigned char *payload, size_t length, struct nb_client *client,
		  struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error)
{
	struct nb_op_request request = { 0 };
	struct nb_text text;
	int status = nb_text_allocate(&text, error);

	if (status)
		return status;
	status = nb_op_decode(&request, payload, length, error);
	if (!status)
		status = execute(&request, client, &text, stack, answer, error);
	nb_op_request_free(&request);
	free(text.data);
	return status;
}
