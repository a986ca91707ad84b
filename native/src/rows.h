/* SPDX-License-Identifier: MIT */
/* The table of rows: every declaration, numbered once. */
#ifndef NB_ROWS_H
#define NB_ROWS_H

#include "field.h"

/* What a run reads back: single numbers and texts besides meters and proofs. */
enum nb_readback {
	NB_READBACK_PORT,
	NB_READBACK_SEND_BUFFER,
	NB_READBACK_RECEIVE_BUFFER,
	NB_READBACK_CONGESTION,
	NB_READBACK_RESIDENT,
	NB_READBACK_SOURCE_SIZE,
	NB_READBACK_RESIDENT_AFTER,
	NB_READBACK_SINK_RESIDENT,
	NB_READBACK_SINK_DIRTY,
	NB_READBACK_FSYNC,
	NB_READBACK_REJECTED,
	NB_READBACK_LOST,
	NB_READBACK_SILENCE,
	NB_READBACK_DIGEST,
	NB_READBACK_SINK_DEVICE,
	NB_READBACK_SINK_INODE,
	NB_READBACK_STATUS,
	NB_READBACK_OUTPUT,
	NB_READBACK_ERRORS
};

extern const struct nb_field nb_readbacks[]; /* indexed by enum nb_readback */
extern const size_t nb_readbacks_count;

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
