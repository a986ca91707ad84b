/* SPDX-License-Identifier: MIT */
/* An NFS server of the worker's own: the kernel's, by NFSv4 over TCP, at one address of this host.
 */
#ifndef NB_OP_NFSD_H
#define NB_OP_NFSD_H

#include "export_target.h"

/* Start it for a target; whatever a failed start has changed is restored. */
int nb_nfsd_start(const struct nb_export_target *target, struct nb_error *error);
/* Stop it and restore what its files read before. Nothing to stop is no error. */
int nb_nfsd_stop(const struct nb_export_target *target, struct nb_error *error);
/* Whether the worker's own server has been started for this address. */
int nb_nfsd_runs(const struct nb_export_target *target);
/* Whether a server runs in this network namespace that is not the worker's own. */
int nb_nfsd_runs_another(const struct nb_export_target *target);

#endif
