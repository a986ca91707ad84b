/* SPDX-License-Identifier: MIT */
/* The set of nameless files that the last NB_SOURCE_FILES job made and that later jobs of this
 * worker share. */
#ifndef NB_SCRATCH_FILES_H
#define NB_SCRATCH_FILES_H

#include "fail.h"
#include "job.h"

/* Make the files that the job asks for, unless they are there already. */
int nb_scratch_files_make(const struct nb_job *job, const char *directory, struct nb_error *error);
/* Open one of them with an offset of its own. Returns a descriptor, or -1 with errno. */
int nb_scratch_file_open(uint64_t index);
/* Close the set: its files are gone with it. */
void nb_scratch_files_close(void);

#endif
