/* SPDX-License-Identifier: MIT */
#ifndef NB_QDISC_DEPENDENTS_H
#define NB_QDISC_DEPENDENTS_H

#include "qdisc_text.h"

/*
 * What depends on a root that another program has set and would be lost with it, or NULL; *status
 * is <0 when it could not be read. `text` is what the interface reads.
 */
const char *nb_qdisc_dependents(const struct nb_place *place, const struct nb_root *root,
				const char *text, int *status, struct nb_error *error);

#endif
