/* SPDX-License-Identifier: MIT */
/* One row a kind of operation, and what each is asked with. */
#include "client.h"

/* clang-format off */
#define OPERATIONS(row) \
	row(file) \
	row(list) \
	row(exec) \
	row(boot) \
	row(features) \
	row(link) \
	row(rings) \
	row(coalesce) \
	row(channels) \
	row(qdisc) \
	row(tcp_metrics) \
	row(driver) \
	row(statistics) \
	row(interface) \
	row(index) \
	row(route) \
	row(lock) \
	row(undone) \
	row(neighbours) \
	row(worker) \
	row(mount) \
	row(export) \
	row(profile) \
	row(meter_socket) \
	row(meter_files)
/* clang-format on */

#define DECLARE(name) extern const struct nb_op nb_op_##name;
#define ROW(name) &nb_op_##name,

OPERATIONS(DECLARE)

const struct nb_op *const nb_ops[] = { OPERATIONS(ROW) NULL };

#define AT(field) .offset = offsetof(struct nb_op_request, field)

const struct nb_field nb_op_arguments[] = {
	{ "op", "the operation, by name", .type = NB_TEXT, AT(kind) },
	{ "target", "file, or interface and key, or program and arguments, by NUL", .type = NB_TEXT,
	  .flags = NB_LIST, AT(target) },
	[NB_OP_VALUE] = { "value", "what to write; left out: only read", .type = NB_TEXT,
			  AT(value) },
	{ "hold", "restore what was there when the controller asks or is gone", .type = NB_FLAG,
	  .maximum = 1, AT(hold) },
	{ "scope", "what is held there is undone with all scopes above it", .maximum = UINT32_MAX,
	  AT(scope) },
	{ "undo", "program and arguments that undo an exec", .type = NB_TEXT, .flags = NB_LIST,
	  AT(undo) },
	{ "look", "program and arguments that print the same after it", .type = NB_TEXT,
	  .flags = NB_LIST, AT(look) },
	{ "ask", "only whether the host allows it: nothing is done", .type = NB_FLAG, .maximum = 1,
	  AT(ask) },
	{ "restore", "write what was read once, as an undo does", .type = NB_FLAG, .maximum = 1,
	  AT(restore) },
};
const size_t nb_op_arguments_count = NB_LENGTH(nb_op_arguments);
