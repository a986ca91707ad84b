/* SPDX-License-Identifier: MIT */
/* The files that control the kernel's NFS server of this network namespace (nfsd(7)), at a mount of
 * their own. */
#ifndef NB_NFSD_FILES_H
#define NB_NFSD_FILES_H

#include "export_target.h"

struct nb_nfsd {
	const struct nb_export_target *target;
	char place[96];		/* where the files are mounted */
	char saved[104];	/* what they read before, for nb_nfsd_stop of a later worker */
	struct nb_error *error; /* where failures go; may be NULL */
};

/* Where the files are for a server at the address of a target. */
struct nb_nfsd nb_nfsd_at(const struct nb_export_target *target, struct nb_error *error);
/* Mount them, which loads the kernel's module; unmount them and remove the folder. */
int nb_nfsd_mount(const struct nb_nfsd *nfsd);
int nb_nfsd_unmount(const struct nb_nfsd *nfsd);
int nb_nfsd_is_mounted(const struct nb_nfsd *nfsd);
/* Fail with errno and what it is about. */
int nb_nfsd_fail(const struct nb_nfsd *nfsd, const char *what);
/* Read the first line of a file. 0, or -1 with errno. */
int nb_nfsd_read(const char *place, const char *name, char *text, size_t room);
/* Write a file. 0, or a negative code with the error filled. */
int nb_nfsd_write(const struct nb_nfsd *nfsd, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Write a text in one piece. 0, or -1 with errno. */
int nb_nfsd_write_path(const char *path, const char *text);

/*
 * Fill the caches in which the server looks up clients and exports, with those of the target;
 * mountd(8) fills them otherwise (Documentation/filesystems/nfs/rpc-cache.rst). Clients first: they
 * make the domain that folders name. Of the folders above an exported one only the way to it is
 * visible.
 */
int nb_nfsd_allow_clients(const struct nb_nfsd *nfsd, long long until);
int nb_nfsd_allow_folder(const struct nb_nfsd *nfsd, long long until);
/* Whether the folder is exported to clients of this kind. */
int nb_nfsd_is_allowed(const struct nb_export_target *target);
/* Empty them. */
int nb_nfsd_flush(const struct nb_nfsd *nfsd);

#endif
