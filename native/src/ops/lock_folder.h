/* SPDX-License-Identifier: MIT */
/* Where lock files are. */
#ifndef NB_LOCK_FOLDER_H
#define NB_LOCK_FOLDER_H

/*
 * The folder of this account's locks, made where it is missing: /run/netbench/locks for root, which
 * no other account can open; for others one of their own, below XDG_RUNTIME_DIR, XDG_STATE_HOME or
 * HOME, or else in /tmp/netbench-UID. A descriptor for close(), or -1 with errno: there is no place
 * that only this account writes.
 */
int nb_lock_folder(void);

#endif
