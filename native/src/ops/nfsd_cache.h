/* SPDX-License-Identifier: MIT */
/*
 * The caches in which the kernel's NFS server looks up clients and exports; mountd(8) fills them
 * otherwise (Documentation/filesystems/nfs/rpc-cache.rst). Of the folders above an exported one
 * only the way to it is visible.
 */
#ifndef NB_NFSD_CACHE_H
#define NB_NFSD_CACHE_H

#include "export_target.h"
#include "nfsd_files.h"

/* Fill them with the clients and the folder of a target. Clients first: they make the domain that
 * folders name. */
int nb_nfsd_allow_clients(const struct nb_nfsd *nfsd, const struct nb_export_target *target,
			  long long until);
int nb_nfsd_allow_folder(const struct nb_nfsd *nfsd, const struct nb_export_target *target,
			 long long until);
/* Whether the folder is exported to clients of this kind. */
int nb_nfsd_is_allowed(const struct nb_export_target *target);
/* Empty them. */
int nb_nfsd_flush(const struct nb_nfsd *nfsd);

#endif
