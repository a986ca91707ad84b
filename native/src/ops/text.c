/* SPDX-License-Identifier: MIT */
/* Texts of operations: targets, lines, and errors that several kinds share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op.h"

const char *nb_target_word(const struct nb_target *target, size_t index)
{
	const char *at = target->words, *end = target->words + target->length;

	while (index-- && at < end)
		at += strlen(at) + 1;
	return at < end ? at : "";
}

void nb_text_add(struct nb_text *text, const char *format, ...)
{
	size_t left = text->room - text->used;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text->data + text->used, left, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= left)
		text->full = 1;
	else
		text->used += (size_t)length;
}

static int copy_word(char *to, size_t room, const char *from, size_t length)
{
	if (!length || length >= room)
		return -1;
	memcpy(to, from, length);
	to[length] = 0;
	return 0;
}

static size_t trimmed(const char *text, size_t length)
{
	while (length && strchr(" \t\r", text[length - 1]))
		length--;
	return length;
}

static int split_line(const char *text, size_t length, struct nb_line *line)
{
	size_t name = 0, value;

	while (name < length && !strchr(": \t", text[name]))
		name++;
	line->read = name < length && text[name] == ':';
	for (value = name + (size_t)line->read; value < length && strchr(" \t", text[value]);
	     value++)
		;
	if (copy_word(line->name, sizeof(line->name), text, name))
		return -1;
	return copy_word(line->value, sizeof(line->value), text + value,
			 trimmed(text + value, length - value))
		       ? -1
		       : 1;
}

int nb_next_line(const char **at, struct nb_line *line)
{
	const char *begin = *at + strspn(*at, " \t\r\n");
	size_t length = strcspn(begin, "\n");

	*at = begin + length;
	return length ? split_line(begin, length, line) : 0;
}

int nb_fail_device(struct nb_error *error, const char *operation, const char *interface,
		   const char *what)
{
	if (errno == EOPNOTSUPP)
		return nb_fail(error, NB_ERR_UNSUPPORTED, operation,
			       "leave this setting out, or use another device", "%s has no %s",
			       interface, what);
	return nb_fail_errno(error, operation,
			     errno == EPERM ? "run as root, or leave this setting out"
					    : "choose another value: the driver rejects this one",
			     "%s of %s", what, interface);
}

char *nb_text_copy(const char *text, size_t length)
{
	char *copy = malloc(length + 1);

	if (copy) {
		memcpy(copy, text, length);
		copy[length] = 0;
	}
	return copy;
}

size_t nb_text_differs(const char *one, const char *other)
{
	size_t begin = 0;

	for (size_t i = 0; one[i] && one[i] == other[i]; i++)
		if (one[i] == '\n' && one[i + 1])
			begin = i + 1;
	return begin;
}

int nb_op_fail_memory(struct nb_error *error, const char *what)
{
	return nb_fail(error, NB_ERR_MEMORY, "operation", "free some memory", "no memory for %s",
		       what);
}

int nb_text_allocate(struct nb_text *text, struct nb_error *error)
{
	*text = (struct nb_text){ .data = malloc(NB_OP_TEXT), .room = NB_OP_TEXT };
	if (!text->data)
		return nb_op_fail_memory(error, "an answer");
	text->data[0] = 0;
	return 0;
}

int nb_op_read(const struct nb_op *op, const struct nb_target *target, struct nb_text *text,
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
