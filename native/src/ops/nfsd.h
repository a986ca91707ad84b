/* SPDX-License-Identifier: MIT */
/* What an operation exports by NFS, read-only, and to whom; and an NFS server of the worker's own:
 * the kernel's, by NFSv4 over TCP, at one address of this host. */
#ifndef NB_OP_NFSD_H
#define NB_OP_NFSD_H

#include "op.h"

struct nb_export_target {
	const char *folder;
	const char *address; /* of this host; a server of the worker's own listens there */
	const char *clients; /* addresses, separated by spaces */
	const char *file;    /* the one that clients read, in the folder */
};

struct nb_export_reader {
	unsigned int user;
	unsigned int group;
};

enum { NB_ESCAPED_PATH = 4 * 4096 + 1 };

/* The next client from *at on, without an end: its length; 0: there is none. */
size_t nb_export_next_client(const char **at, const char **client);
/* A path as the kernel and exportfs(8) write it: white space and backslash as octal escapes. `to`
 * has room for NB_ESCAPED_PATH bytes. */
void nb_export_escape(char *to, const char *path, size_t length);

/*
 * As whom the clients read, all users of all clients as one: the owner of the file that is
 * exported, or nobody where root owns it and anybody may read it.
 */
struct nb_export_reader nb_export_reader(const struct nb_export_target *target);

/* Start it for a target; whatever a failed start has changed is restored. */
int nb_nfsd_start(const struct nb_export_target *target, struct nb_error *error);
/* Stop it and restore what its files read before. Nothing to stop is no error. */
int nb_nfsd_stop(const struct nb_export_target *target, struct nb_error *error);
/* Whether the worker's own server has been started for this address. */
int nb_nfsd_runs(const struct nb_export_target *target);
/* Whether the folder is exported by it. */
int nb_nfsd_is_allowed(const struct nb_export_target *target);
/* Whether a server runs in this network namespace that is not the worker's own. */
int nb_nfsd_runs_another(const struct nb_export_target *target);

#endif
