/* SPDX-License-Identifier: MIT */
/*
 * A folder, read-only, by NFS to some addresses. Where the system runs a server, that one exports
 * it, through exportfs(8); otherwise the worker starts a server of its own (nfsd.c).
 */
#include <stdlib.h>
#include <string.h>

#include "../guard.h"
#include "../pattern.h"
#include "../proc_text.h"
#include "nfsd.h"

static const char OPERATION[] = "export", NONE[] = "none";

static struct nb_export_target target_of(const struct nb_target *target)
{
	return (struct nb_export_target){ .folder = nb_target_word(target, 0),
					  .address = nb_target_word(target, 1),
					  .clients = nb_target_word(target, 2),
					  .file = nb_target_word(target, 3) };
}

/* The fsid of the worker's exports of a folder: it tells them from an administrator's. */
static unsigned int number_of(const char *folder)
{
	return (unsigned int)(nb_digest(NB_DIGEST_START, folder, strlen(folder)) & 0x3fffffff) |
	       0x40000000;
}

/* Run exportfs with these words, separated by NUL. 0, or negative. */
static int run_exportfs(const char *words, size_t length, char *output, size_t room,
			struct nb_error *error)
{
	static const uint64_t limit = 8000000000;
	int status = nb_exec(words, length, limit, output, room, error);

	if (status > 0)
		return nb_fail(error, NB_ERR_SYSTEM, "export", "try it by hand: exportfs -v",
			       "exportfs: %.150s", output);
	return status;
}

/* The entry of a client in what `exportfs -s` lists, "FOLDER  CLIENT(OPTIONS)": its options, or
 * NULL. */
static const char *entry_of(const char *list, const char *folder, const char *client, size_t length)
{
	size_t width = strlen(folder);

	for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + width;

		if (strncmp(line, folder, width) != 0 || (*at != ' ' && *at != '\t'))
			continue;
		at += strspn(at, " \t");
		if (!strncmp(at, client, length) && at[length] == '(')
			return at + length;
	}
	return NULL;
}

static int is_ours(const char *options, unsigned int number)
{
	char wanted[32];
	const char *at;

	snprintf(wanted, sizeof(wanted), "fsid=%u,", number);
	at = strstr(options, wanted);
	return at && at < options + strcspn(options, "\n");
}

/* What the server that runs exports, one a line, for free(); NULL with the error filled. */
static char *list_exports(struct nb_error *error)
{
	static const char words[] = "exportfs\0-s";
	char *list = malloc(NB_OP_TEXT);

	if (!list)
		nb_fail_memory(error, "a list");
	if (list && run_exportfs(words, sizeof(words) - 1, list, NB_OP_TEXT, error)) {
		free(list);
		list = NULL;
	}
	return list;
}

/* Add an export to a client, or take it away. */
static int change_export(const struct nb_export_target *target, const char *client, size_t length,
			 int adds, struct nb_error *error)
{
	char words[4096 + 256], output[512];
	int is_six = memchr(client, ':', length) != NULL, used;
	struct nb_export_reader reader = nb_export_reader(target);

	if (adds)
		used = snprintf(words, sizeof(words),
				"exportfs%c-o%cro,secure,subtree_check,all_squash,anonuid=%u,"
				"anongid=%u,fsid=%u%c",
				0, 0, reader.user, reader.group, number_of(target->folder), 0);
	else
		used = snprintf(words, sizeof(words), "exportfs%c-u%c", 0, 0);
	used += snprintf(words + used, sizeof(words) - (size_t)used, "%s%.*s%s:%s",
			 is_six ? "[" : "", (int)length, client, is_six ? "]" : "", target->folder);
	return run_exportfs(words, (size_t)used, output, sizeof(output), error);
}

enum { LOOK, ADD, REMOVE };

/* Look whether the folder is exported to all clients: 1, or 0; or export it to those to which it is
 * not exported yet, or remove what was exported so: all other exports stay. Or a negative code. */
static int with_exports(const struct nb_export_target *target, int what, struct nb_error *error)
{
	char *list = list_exports(error), folder[NB_ESCAPED_PATH];
	const char *at = target->clients, *client;
	int status = list ? 0 : -NB_ERR_SYSTEM, all = 1;
	size_t length;

	nb_export_escape(folder, target->folder, strlen(target->folder));
	while (!status && (length = nb_export_next_client(&at, &client)) > 0) {
		const char *entry = entry_of(list, folder, client, length);

		all = all && entry;
		if (what == ADD
			    ? !entry
			    : what == REMOVE && entry && is_ours(entry, number_of(target->folder)))
			status = change_export(target, client, length, what == ADD, error);
	}
	free(list);
	return status || what != LOOK ? status : all;
}

static int set_export(const struct nb_target *words, const char *value, struct nb_error *error)
{
	struct nb_export_target target = target_of(words);
	int adds = strncmp(value, NONE, strlen(NONE)) != 0;

	if (nb_nfsd_runs_another(&target))
		return with_exports(&target, adds ? ADD : REMOVE, error);
	return adds ? nb_nfsd_start(&target, error) : nb_nfsd_stop(&target, error);
}

static int get_export(const struct nb_target *words, FILE *text, struct nb_error *error)
{
	struct nb_export_target target = target_of(words);
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
		exported = with_exports(&target, LOOK, error);
	if (exported < 0)
		return exported;
	fprintf(text, "%s\n", exported ? "exported" : runs ? "broken" : NONE);
	return 0;
}

const struct nb_op nb_op_export = {
	.name = "export",
	.about = "a folder by NFS, read-only, from an address of this host to others, who read as "
		 "the owner of a file in it: exported, or none",
	.words = 4,
	.get = get_export,
	.set = set_export,
};
