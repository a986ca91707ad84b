/* SPDX-License-Identifier: MIT */
/* What a data connection begins with: the sender writes the token and the number of the stream, the
 * receiver answers with one byte. */
#ifndef NB_HANDSHAKE_H
#define NB_HANDSHAKE_H

#include "job.h"

enum {
	NB_HANDSHAKE_BYTES = NB_TOKEN_BYTES + 8, /* token, u32 big-endian stream, u32 0 */
	NB_ACCEPTED = 'k',
};

#endif
