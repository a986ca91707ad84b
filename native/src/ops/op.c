/* SPDX-License-Identifier: MIT */
/* What kinds of operations share: targets, lines and errors. */
#include "op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *nb_target_word(const struct nb_target *target, size_t index)
{
	const char *at = target->words, *end = target->words + target->length;

	while (index-- && at < end)
		at += strlen(at) + 1;
	return at < end ? at : "";
}

int nb_next_line(const char **at, struct nb_line *line)
{
	const char *name = *at + strspn(*at, " \t\r\n"), *value;
	size_t length = strcspn(name, "\n"), named = strcspn(name, ": \t\n");

	*at = name + length;
	if (!length)
		return 0;
	line->read = name[named] == ':';
	value = name + named + line->read;
	value += strspn(value, " \t");
	length = (size_t)(*at - value);
	while (length && strchr(" \t\r", value[length - 1]))
		length--;
	if (!named || named >= sizeof(line->name) || !length || length >= sizeof(line->value))
		return -1;
	snprintf(line->name, sizeof(line->name), "%.*s", (int)named, name);
	snprintf(line->value, sizeof(line->value), "%.*s", (int)length, value);
	return 1;
}

int nb_fail_device(struct nb_error *error, const char *operation, const char *interface,
		   const char *what)
{
	if (errno == EOPNOTSUPP)
		return nb_fail(error, NB_ERR_UNSUPPORTED, operation,
			       "leave this setting out, or use another device", "%s has no %s",
			       interface, what);
	return nb_fail_errno(
		error, operation,
		errno == EPERM
			? "run as root (a container needs CAP_NET_ADMIN), or leave this setting out"
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

/* Of lines "NAME: VALUE" those with one of these names, which blanks separate; "": all. */
static void keep_named(char *text, const char *names)
{
	char *kept = text, *next;

	for (char *at = text; *names && *at; at = next) {
		size_t name = strcspn(at, ":\n"), length = strcspn(at, "\n");
		const char *one = names;

		next = at + length + (at[length] == '\n');
		while (*one && (strncmp(one, at, name) != 0 || !strchr(" ", one[name])))
			one += strcspn(one, " "), one += strspn(one, " ");
		if (*one) {
			memmove(kept, at, (size_t)(next - at));
			kept += next - at;
		}
	}
	if (*names)
		*kept = 0;
}

char *nb_op_read(const struct nb_op *op, const struct nb_target *target, struct nb_error *error)
{
	char *read = NULL;
	size_t length = 0;
	FILE *text = open_memstream(&read, &length);
	int status = text ? op->get(target, text, error) : nb_fail_memory(error, "an answer");

	if (text && fclose(text) && !status)
		status = nb_fail_memory(error, "an answer");
	if (!status && length >= NB_OP_TEXT)
		status = nb_fail(error, NB_ERR_UNSUPPORTED, op->name, "leave it out",
				 "what %s reads is longer than %d bytes", target->words,
				 NB_OP_TEXT - 1);
	if (!status && op->named)
		keep_named(read, nb_target_word(target, op->words));
	if (!status)
		return read;
	free(read);
	return NULL;
}

int nb_op_restore(const struct nb_op *op, const struct nb_target *target, const char *text,
		  struct nb_error *error)
{
	return (op->restore ? op->restore : op->set)(target, text, error);
}
