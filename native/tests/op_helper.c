/* SPDX-License-Identifier: MIT */
#include "op_helper.h"

#include <stdlib.h>
#include <string.h>

static char *text;
struct nb_error op_error;

struct order {
	char words[128];
	struct nb_target target;
	const struct nb_op *op;
};

static const struct nb_op *op_named(const char *name)
{
	size_t i = 0;

	while (nb_ops[i] && strcmp(nb_ops[i]->name, name) != 0)
		i++;
	assert_non_null(nb_ops[i]);
	return nb_ops[i];
}

static void begin(struct order *order, const char *words)
{
	char *at;

	assert_in_range(strlen(words), 1, sizeof(order->words) - 1);
	strcpy(order->words, words);
	at = strchr(order->words, ' ');
	assert_non_null(at);
	*at++ = 0;
	order->target = (struct nb_target){ at, strlen(at) };
	for (; *at; at++)
		*at = *at == ' ' ? 0 : *at;
	order->op = op_named(order->words);
	memset(&op_error, 0, sizeof(op_error));
}

int op_try_get(const char *words)
{
	struct order order;

	begin(&order, words);
	free(text);
	text = nb_op_read(order.op, &order.target, &op_error);
	return text ? 0 : -(int)op_error.code;
}

const char *op_get(const char *words)
{
	if (op_try_get(words))
		fail_msg("%s: %s", words, op_error.message);
	return text;
}

int op_try_set(const char *words, const char *value)
{
	struct order order;

	begin(&order, words);
	return order.op->set(&order.target, value, &op_error);
}

void op_set(const char *words, const char *value)
{
	if (op_try_set(words, value))
		fail_msg("%s: %s", words, op_error.message);
}

void op_restore(const char *words, const char *was)
{
	struct order order;

	begin(&order, words);
	if (nb_op_restore(order.op, &order.target, was, &op_error))
		fail_msg("%s: %s", words, op_error.message);
	assert_string_equal(was, op_get(words));
}

void op_must_fail(const char *words, const char *value, int code, const char *expected)
{
	assert_int_equal(-code, value ? op_try_set(words, value) : op_try_get(words));
	if (!strstr(op_error.message, expected))
		fail_msg("'%s' does not say '%s'", op_error.message, expected);
	assert_true(op_error.remedy[0]);
}
