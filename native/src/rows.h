/* SPDX-License-Identifier: MIT */
/* The table of rows: every declaration, numbered once. */
#ifndef NB_ROWS_H
#define NB_ROWS_H

#include "fail.h"

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
	NB_READBACK_LATENCY,
	NB_READBACK_SERVICE,
	NB_READBACK_LATENESS,
	NB_READBACK_SECOND,
	NB_READBACK_SINK_DEVICE,
	NB_READBACK_SINK_INODE,
	NB_READBACK_STATUS,
	NB_READBACK_OUTPUT,
	NB_READBACK_ERRORS
};

extern const struct nb_field nb_readbacks[]; /* indexed by enum nb_readback */
extern const size_t nb_readbacks_count;

/* The id of the row that was made of a method, meter, operation or field, or NB_NO_ROW. */
uint16_t nb_row_of(const void *origin);
/* The row with that id, or NULL. */
const struct nb_row *nb_row(uint32_t id);
/* Which of these fields it was made of; NULL: none. */
const struct nb_field *nb_row_field(uint32_t id, const struct nb_field *fields, size_t count);

/* The place of a method's option in nb_job.extra, by its row's id; NB_METHOD_OPTIONS or more for
 * any other row. */
size_t nb_row_method_option(uint16_t row);

#endif
