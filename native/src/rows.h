/* SPDX-License-Identifier: MIT */
/* The table of rows: every declaration, numbered once. */
#ifndef NB_ROWS_H
#define NB_ROWS_H

#include "netbench.h"

/* Row ids, by what they describe; NB_NO_ROW if there is none. */
uint16_t nb_row_of_option(size_t index);
uint16_t nb_row_of_readback(size_t index);
uint16_t nb_row_of_method(const void *method);
uint16_t nb_row_of_op_argument(size_t index);
uint16_t nb_row_of_proof(const void *method, size_t index);
uint16_t nb_row_of_counter(const void *meter, size_t index);

/* The row with that id, or NULL. */
const struct nb_row *nb_row(uint32_t id);

/* The place of a method's option in nb_job.extra, by its row's id; NB_METHOD_OPTIONS or more for
 * any other row. */
size_t nb_row_method_option(uint16_t row);

#endif
