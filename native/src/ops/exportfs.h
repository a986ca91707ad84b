/* SPDX-License-Identifier: MIT */
/* Exports of the NFS server that the system runs, through exportfs(8). */
#ifndef NB_EXPORTFS_H
#define NB_EXPORTFS_H

#include "export_target.h"

/* Export the folder to the clients to which it is not exported yet. */
int nb_exportfs_add(const struct nb_export_target *target, struct nb_error *error);
/* Remove what nb_exportfs_add has exported; all other exports stay. */
int nb_exportfs_remove(const struct nb_export_target *target, struct nb_error *error);
/* 1: the folder is exported to all clients; 0: it is not; or a negative code. */
int nb_exportfs_has(const struct nb_export_target *target, struct nb_error *error);

#endif
