/* SPDX-License-Identifier: MIT */
/* Descriptors of a meter that only root may open: opened here, or by a helper that passed them. */
#ifndef NB_METER_FILES_H
#define NB_METER_FILES_H

#include "meter.h"

/* Fill reading->files: those that a helper has passed, else new ones. 0, or a negative code. */
int nb_meter_files_open(struct nb_reading *reading, struct nb_error *error);
/* Close what nb_meter_files_open() has opened; what was passed stays for later runs. */
void nb_meter_files_close(struct nb_reading *reading);
/* Keep `count` descriptors that were passed for a meter, -1 where there is none, in place of those
 * that it had. Takes them over, and the memory. */
void nb_meter_files_keep(const struct nb_meter *meter, int *files, size_t count);

#endif
