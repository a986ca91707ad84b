/* SPDX-License-Identifier: MIT */
/* What an operation is asked with; the same for all kinds. */
#ifndef NB_OP_ARGUMENTS_H
#define NB_OP_ARGUMENTS_H

#include "../field.h"

enum nb_op_argument {
	NB_OP_KIND,
	NB_OP_TARGET,
	NB_OP_VALUE,
	NB_OP_HOLD,
	NB_OP_SCOPE,
	NB_OP_UNDO,
	NB_OP_ASK,
	NB_OP_RESTORE,
};

extern const struct nb_field nb_op_arguments[]; /* indexed by enum nb_op_argument */
extern const size_t nb_op_arguments_count;

#endif
