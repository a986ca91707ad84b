/* SPDX-License-Identifier: MIT */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

enum { OP_KIND, OP_TARGET, OP_VALUE, OP_HOLD, OP_UNDO };
enum nb_edge_of_op { BEFORE = 0, AFTER = 1 };

static const uint64_t EXEC_LIMIT_NS = 8000000000;

const struct nb_field nb_op_arguments[] = {
	[OP_KIND] = { .name = "op", .about = "the operation, by name", .type = NB_TEXT },
	[OP_TARGET] = { .name = "target",
			.about = "file, or program and arguments separated by NUL",
			.type = NB_TEXT,
			.flags = NB_LIST },
	[OP_VALUE] = { .name = "value", .about = "what to write; left out: only read", .type = NB_TEXT },
	[OP_HOLD] = { .name = "hold",
		      .about = "put back what was there when the controller asks or is gone",
		      .type = NB_FLAG,
		      .maximum = 1 },
	[OP_UNDO] = { .name = "undo", .about = "program and arguments that undo an exec", .type = NB_TEXT, .flags = NB_LIST },
};
const size_t nb_op_arguments_count = NB_LENGTH(nb_op_arguments);

struct nb_held {
	struct nb_held *before;
	const struct nb_op *op;
	char *target;
	size_t target_length;
	char *value;
};

struct request {
	const struct nb_op *op;
	const char *target;
	size_t target_length;
	char *value; /* a copy with its end; NULL: only read */
	const char *undo;
	size_t undo_length;
	int hold;
};

static int get_file(const char *target, size_t length, char *text, struct nb_error *error)
{
	int fd = open(target, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t used = 0;
	ssize_t got = -1;

	(void)length;
	while (fd >= 0 && used < NB_OP_TEXT - 1 && (got = read(fd, text + used, NB_OP_TEXT - 1 - used)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		used += (size_t)got;
	}
	text[used] = 0;
	if (fd < 0 || got < 0) {
		int status = nb_fail_errno(error, "read file", "it does not exist on this host, or this user may not read it",
					   "%s", target);

		if (fd >= 0)
			close(fd);
		return status;
	}
	close(fd);
	/* A part of it would be put back in place of the whole. */
	if (used == NB_OP_TEXT - 1 || memchr(text, 0, used))
		return nb_fail(error, NB_ERR_UNSUPPORTED, "read file", "name a file of /proc or /sys",
			       "%s is no text of less than %d bytes", target, NB_OP_TEXT - 1);
	return 0;
}

static int set_file(const char *target, size_t length, const char *value, struct nb_error *error)
{
	int fd = open(target, O_WRONLY | O_TRUNC | O_CLOEXEC);
	size_t size = strlen(value);
	int status = 0;

	(void)length;
	if (fd < 0)
		return nb_fail_errno(error, "write file", "run as root, or leave this setting out", "%s", target);
	if (write(fd, value, size) != (ssize_t)size)
		status = nb_fail_errno(error, "write file", "the kernel does not take this value", "'%s' to %s", value, target);
	if (close(fd) && !status)
		status = nb_fail_errno(error, "write file", "the kernel does not take this value", "'%s' to %s", value, target);
	return status;
}

static int get_exec(const char *target, size_t length, char *text, struct nb_error *error)
{
	int status = nb_exec(target, length, EXEC_LIMIT_NS, text, NB_OP_TEXT, error);

	if (status < 0)
		return status;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return nb_fail(error, NB_ERR_SYSTEM, "exec", "try the command by hand on this host", "%s: exit status %d: %.150s", target,
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text);
}

const struct nb_op nb_ops[] = {
	{ "file", "read or write a file of /proc or /sys", get_file, set_file },
	{ "exec", "run a program", get_exec, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct nb_op *op_named(const char *name, size_t length)
{
	for (size_t i = 0; nb_ops[i].name; i++)
		if (strlen(nb_ops[i].name) == length && !memcmp(nb_ops[i].name, name, length))
			return &nb_ops[i];
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

static int take_argument(struct request *request, const char *name, const struct nb_value *value, const char *text,
			 struct nb_error *error)
{
	if (!strcmp(name, nb_op_arguments[OP_KIND].name)) {
		request->op = op_named(text, value->bytes);
		if (!request->op)
			return nb_fail(error, NB_ERR_REQUEST, "operation", "use the same netbench version on both sides",
				       "no operation '%.*s'", (int)(value->bytes < 40 ? value->bytes : 40), text);
	} else if (!strcmp(name, nb_op_arguments[OP_TARGET].name)) {
		request->target = text;
		request->target_length = value->bytes;
	} else if (!strcmp(name, nb_op_arguments[OP_VALUE].name)) {
		free(request->value);
		request->value = copy_text(text, value->bytes);
		if (!request->value)
			return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "a value of %u bytes",
				       value->bytes);
	} else if (!strcmp(name, nb_op_arguments[OP_HOLD].name)) {
		request->hold = value->number != 0;
	} else {
		request->undo = text;
		request->undo_length = value->bytes;
	}
	return 0;
}

static int is_argument(const struct nb_row *row)
{
	const struct nb_row *owner = row && row->kind == NB_ROW_OPTION ? nb_row(row->owner) : NULL;

	return owner && owner->kind == NB_ROW_OP;
}

static int decode(struct request *request, const unsigned char *payload, size_t length, struct nb_error *error)
{
	const unsigned char *at = payload, *end = payload + length;
	struct nb_value value;
	const char *text;
	int status;

	while ((status = nb_next_value(&at, end, &value, &text, error)) > 0) {
		const struct nb_row *row = nb_row(value.row);

		if (!is_argument(row))
			return nb_fail(error, NB_ERR_REQUEST, "operation", "use the same netbench version on both sides",
				       "number %u is no argument of an operation", value.row);
		status = take_argument(request, row->name, &value, text, error);
		if (status)
			return status;
	}
	if (!status && (!request->op || !request->target))
		return nb_fail(error, NB_ERR_REQUEST, "operation", "use the same netbench version on both sides",
			       "an operation needs a kind and a target");
	if (!status && request->value && !request->op->set)
		return nb_fail(error, NB_ERR_REQUEST, "operation", "give it as an exec with an undo", "%s cannot write",
			       request->op->name);
	return status;
}

static int hold(struct nb_held **held, const struct nb_op *op, const char *target, size_t length, const char *value,
		struct nb_error *error)
{
	struct nb_held *entry = calloc(1, sizeof(*entry));

	if (entry) {
		entry->op = op;
		entry->target = copy_text(target, length);
		entry->target_length = length;
		entry->value = copy_text(value, strlen(value));
		entry->before = *held;
	}
	if (entry && entry->target && entry->value) {
		*held = entry;
		return 0;
	}
	if (entry) {
		free(entry->target);
		free(entry->value);
	}
	free(entry);
	return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "no memory to remember what was there");
}

static void let_go(struct nb_held **held)
{
	struct nb_held *entry = *held;

	*held = entry->before;
	free(entry->target);
	free(entry->value);
	free(entry);
}

static int perform(const struct request *request, char *text, struct nb_held **held, struct nb_writer *answer,
		   struct nb_error *error)
{
	uint16_t value_row = NB_NO_ROW;
	char *target = copy_text(request->target, request->target_length);
	int status;

	for (uint32_t id = 0; nb_row(id); id++)
		if (is_argument(nb_row(id)) && !strcmp(nb_row(id)->name, nb_op_arguments[OP_VALUE].name))
			value_row = (uint16_t)id;
	if (!target)
		return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "no memory for a target");
	status = request->undo ? hold(held, request->op, request->undo, request->undo_length, "", error) : 0;
	if (!status) {
		status = request->op->get(target, request->target_length, text, error);
		/* A program that failed has changed nothing that is its own to undo; one that was stopped may have. */
		if (status && request->undo && error->error != ETIMEDOUT)
			let_go(held);
	}
	if (!status)
		nb_put_text(answer, value_row, BEFORE, text, strlen(text));
	if (!status && request->value) {
		/* Remembered before it is changed: a change that fails half-way is undone too. */
		if (request->hold)
			status = hold(held, request->op, request->target, request->target_length, text, error);
		if (!status)
			status = request->op->set(target, request->target_length, request->value, error);
		if (!status)
			status = request->op->get(target, request->target_length, text, error);
		if (!status)
			nb_put_text(answer, value_row, AFTER, text, strlen(text));
	}
	free(target);
	return status;
}

int nb_op_execute(const unsigned char *payload, size_t length, struct nb_held **held, struct nb_writer *answer,
		  struct nb_error *error)
{
	struct request request = { 0 };
	char *text = malloc(NB_OP_TEXT);
	int status;

	if (!text)
		return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "no memory for an answer");
	status = decode(&request, payload, length, error);
	if (!status)
		status = perform(&request, text, held, answer, error);
	free(request.value);
	free(text);
	return status;
}

static int undo_one(const struct nb_held *entry, struct nb_error *error)
{
	char *text;
	int status;

	if (entry->op->set)
		return entry->op->set(entry->target, entry->target_length, entry->value, error);
	text = malloc(NB_OP_TEXT);
	if (!text)
		return nb_fail(error, NB_ERR_MEMORY, "undo", "free some memory", "no memory for an answer");
	status = entry->op->get(entry->target, entry->target_length, text, error);
	free(text);
	return status;
}

int nb_op_undo(struct nb_held **held, struct nb_error *error)
{
	int first = 0;

	while (*held) {
		struct nb_error ignored;
		int status = undo_one(*held, first ? &ignored : error);

		first = first ? first : status;
		let_go(held);
	}
	return first;
}
