/* SPDX-License-Identifier: MIT */
/* What a run reports: read-backs, edges, digests, samples. */
#ifndef NB_RESULT_H
#define NB_RESULT_H

#include "fail.h"
#include "run.h"
#include "wire.h"

/* The read-backs of a prepared run. */
void nb_run_readbacks(const struct nb_run *run, struct nb_writer *writer);
/* What EDGE(WARM) carries besides the edge: bytes of each stream. */
void nb_run_warmup_bytes(const struct nb_run *run, struct nb_writer *writer);
/* The result of a finished run. */
int nb_run_result(struct nb_run *run, struct nb_writer *writer, struct nb_error *error);
/* Write samples from *next on until the payload is large enough; returns whether there are more. */
int nb_run_samples(const struct nb_run *run, size_t *next, struct nb_writer *writer);

#endif
