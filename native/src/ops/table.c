/* SPDX-License-Identifier: MIT */
/* One row a kind of operation. */
#include "op.h"

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
	row(route) \
	row(lock) \
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
