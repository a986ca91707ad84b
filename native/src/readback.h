/* SPDX-License-Identifier: MIT */
/* What a run reads back: single numbers and texts besides meters and proofs. */
#ifndef NB_READBACK_H
#define NB_READBACK_H

#include "field.h"

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

#endif
