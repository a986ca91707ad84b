/* SPDX-License-Identifier: MIT */
/* Call operations without a worker. Words such as "link va mtu" name the operation and its target.
 */
#ifndef NB_TEST_OP_HELPER_H
#define NB_TEST_OP_HELPER_H

#include "ops/op.h"
#include "test_controller.h"

/* What the last operation found wrong. */
extern struct nb_error op_error;

/* Status of an operation. */
int op_try_get(const char *words);
int op_try_set(const char *words, const char *value);

/* These fail the test where the operation fails; what was read stands until the next one. */
const char *op_get(const char *words);
void op_set(const char *words, const char *value);
/* Put back what was read, and see that it reads so again. */
void op_restore(const char *words, const char *was);

/* Reading (no value) or setting fails with this code, these words, and a remedy. */
void op_must_fail(const char *words, const char *value, int code, const char *expected);

#endif
