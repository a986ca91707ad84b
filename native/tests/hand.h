/* SPDX-License-Identifier: MIT */
/* Operations by hand: as words such as "link va mtu", the operation and its target, with no worker
 * between. */
#ifndef NB_TEST_HAND_H
#define NB_TEST_HAND_H

#include "desk.h"
#include "ops.h"

/* What the last operation read, and what it found wrong. */
extern struct nb_text hand_text;
extern struct nb_error hand_error;

/* Status of an operation. */
int hand_try_get(const char *words);
int hand_try_set(const char *words, const char *value);

/* These fail the test where the operation fails; what was read stands until the next one. */
const char *hand_get(const char *words);
void hand_set(const char *words, const char *value);
/* Put back what was read, and see that it reads so again. */
void hand_restore(const char *words, const char *was);

/* Reading (no value) or setting fails with this code, these words, and a remedy. */
void hand_must_not(const char *words, const char *value, int code, const char *expected);

#endif
