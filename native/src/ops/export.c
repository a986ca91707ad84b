/* SPDX-License-Identifier: MIT */
/*
 * A folder, read-only, by NFS to some addresses. Where the system runs a server, that one exports
 * it (exportfs.c); otherwise the worker starts a server of its own (nfsd.c).
 */
#include <string.h>

#include "../kernel.h"
#include "exportfs.h"
#include "nfsd.h"
#include "nfsd_cache.h"

static const char OPERATION[] = "export", NONE[] = "none";

static int set_export(const struct nb_target *words, const char *value, struct nb_error *error)
{
	struct nb_export_target target = nb_export_target(words);
	int adds = strncmp(value, NONE, strlen(NONE)) != 0;

	if (nb_nfsd_runs_another(&target))
		return adds ? nb_exportfs_add(&target, error) : nb_exportfs_remove(&target, error);
	return adds ? nb_nfsd_start(&target, error) : nb_nfsd_stop(&target, error);
}

static int get_export(const struct nb_target *words, struct nb_text *text, struct nb_error *error)
{
	struct nb_export_target target = nb_export_target(words);
	int runs, exported = 0;

	if (strlen(target.folder) >= 4096 || target.folder[0] != '/')
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "name a folder from / on",
			       "'%.70s' cannot be exported", target.folder);
	if (!nb_kernel_has("nfsd", "nfsd"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "boot a kernel that has it (CONFIG_NFSD, CONFIG_NFSD_V4), or "
			       "install its module",
			       "this kernel has no NFS server");
	runs = nb_nfsd_runs(&target);
	if (runs)
		exported = nb_nfsd_is_allowed(&target);
	else if (nb_nfsd_runs_another(&target))
		exported = nb_exportfs_has(&target, error);
	if (exported < 0)
		return exported;
	nb_text_add(text, "%s\n", exported ? "exported" : runs ? "broken" : NONE);
	return 0;
}

const struct nb_op nb_op_export = {
	.name = "export",
	.about = "a folder by NFS, read-only, from an address of this host to others: exported, or "
		 "none",
	.words = 3,
	.get = get_export,
	.set = set_export,
};
