/* SPDX-License-Identifier: MIT */
#include "permit.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allow.h"
#include "permit_file.h"

enum { GROUPS = 1024 };

static const char OPERATION[] = "allow";

/* A name of a setting, and a pattern of what it changes. */
struct named {
	const char *setting;
	const char *pattern;
};

static const struct named features[] = {
	{ "tso", "tx-tcp*-segmentation" },
	{ "gso", "tx-generic-segmentation" },
	{ "gro", "rx-gro" },
	{ "lro", "rx-lro" },
	{ "sg", "tx-scatter-gather*" },
	{ "rx_checksum", "rx-checksum" },
	{ "tx_checksum", "tx-checksum-*" },
};

/* Attributes of a link that another's setting changes too. */
static const struct named links[] = {
	{ "gso_max_size", "gso_ipv4_max_size" },
	{ "gro_max_size", "gro_ipv4_max_size" },
};

static const char *setting_of(const struct named *table, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!fnmatch(table[i].pattern, name, FNM_PATHNAME | FNM_PERIOD))
			return table[i].setting;
	return NULL;
}

/* Whether a text has exactly this line. */
static int has_line(const char *text, const char *line, size_t length)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strcspn(text, "\n") == length && !strncmp(text, line, length))
			return 1;
	return 0;
}

static int check_feature(const struct nb_allow *allow, const char *name, struct nb_error *error)
{
	const char *setting = setting_of(features, NB_LENGTH(features), name);
	char full[128];
	struct nb_need any[2];
	size_t count = 0;

	snprintf(full, sizeof(full), "feature.%s", name);
	any[count++] = nb_need("setting", full);
	if (setting)
		any[count++] = nb_need("setting", setting);
	return nb_allow_any(allow, any, count, error);
}

/* What is put back has a line for every feature: only those that change count. */
static int check_features(const struct nb_allow *allow, const struct nb_op_request *request,
			  struct nb_error *error)
{
	struct nb_text now;
	int status = nb_text_allocate(&now, error), more;
	const char *at = request->value;
	struct nb_line line;

	if (status)
		return status;
	status = nb_op_read(request->op, &request->target, &now, error);
	while (!status && *at) {
		const char *begin = at + strspn(at, " \t\r\n");

		more = nb_next_line(&at, &line);
		if (more <= 0)
			break; /* of a line that is none the operation makes an error */
		if (!has_line(now.data, begin, (size_t)(at - begin)))
			status = check_feature(allow, line.name, error);
	}
	free(now.data);
	return status;
}

static int check_command(const struct nb_allow *allow, const struct nb_target *words,
			 struct nb_error *error)
{
	struct nb_need wanted = { .keyword = "command", .length = words->length + 1 };

	if (!allow->text)
		return 0;
	if (wanted.length >= sizeof(wanted.name) || words->words[0] != '/')
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "write the program's whole path, as it is in the file",
			       "%s allows commands by their whole path: `%.60s` is none",
			       allow->name, words->words);
	memcpy(wanted.name, words->words, words->length);
	return nb_allow_any(allow, &wanted, 1, error);
}

static int check_yes(const struct nb_allow *allow, const char *keyword, struct nb_error *error)
{
	struct nb_need wanted = nb_need(keyword, "yes");

	return nb_allow_any(allow, &wanted, 1, error);
}

/* A mount covers what is there: only at a folder that is netbench's own. */
static int check_mount(const char *folder, struct nb_error *error)
{
	if (!strncmp(folder, "/run/netbench.nfs-", strlen("/run/netbench.nfs-")) &&
	    !strchr(folder + strlen("/run/"), '/'))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "use /run/netbench.nfs-ADDRESS",
		       "a helper mounts nothing at %.100s", folder);
}

static int check_setting(const struct nb_allow *allow, const char *setting, const char *interface,
			 struct nb_error *error)
{
	struct nb_need wanted = nb_need("setting", setting);
	int status = nb_allow_any(allow, &wanted, 1, error);

	return status ? status : nb_allow_interface(allow, interface, error);
}

static int check_meter(const struct nb_allow *allow, const char *name, struct nb_error *error)
{
	struct nb_need wanted = nb_need("meters", name);

	return nb_allow_any(allow, &wanted, 1, error);
}

/* Counters of the whole kernel go to the user who may ask for them, and to no other. */
static int check_taker(const struct nb_client *client, const char *user, struct nb_error *error)
{
	if (!client->by_sudo || strtoul(user, NULL, 10) == client->id)
		return 0;
	return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "let your own mover take it",
		       "descriptors of a meter go to user %u only", (unsigned int)client->id);
}

static int is(const struct nb_op_request *request, const char *op)
{
	return !strcmp(request->op->name, op);
}

/* Whether the host's file allows a change, or a program. */
static int check_allowed(const struct nb_allow *allow, const struct nb_op_request *request,
			 struct nb_error *error)
{
	const struct nb_target *target = &request->target;
	const char *first = target->words, *key, *setting;
	int status;

	if (is(request, "exec")) {
		status = check_command(allow, target, error);
		return status || !request->undo.words ? status
						      : check_command(allow, &request->undo, error);
	}
	if (is(request, "boot") || is(request, "profile"))
		return check_yes(allow, request->op->name, error);
	if (is(request, "meter_files"))
		return check_meter(allow, first, error);
	if (is(request, "file"))
		return nb_permit_file(allow, first, error);
	if (is(request, "tcp_metrics"))
		return nb_permit_file(allow, "/proc/sys/net/ipv4/tcp_no_metrics_save", error);
	if (is(request, "mount") || is(request, "export"))
		return check_setting(allow, "nfs", "", error);
	if (is(request, "features")) {
		status = nb_allow_interface(allow, first, error);
		return status ? status : check_features(allow, request, error);
	}
	if (is(request, "link")) {
		key = nb_target_word(target, 1);
		setting = setting_of(links, NB_LENGTH(links), key);
		return check_setting(allow, setting ? setting : key, first, error);
	}
	return check_setting(allow, request->op->name, first, error);
}

/*
 * Whether the login may read a file by itself. sysctls look at the effective user and at all groups
 * (proc_sys_permission), not at those for file systems.
 */
static int can_read(const struct nb_client *client, const char *path)
{
	gid_t groups[GROUPS];
	int count = getgroups(GROUPS, groups), fd = -1;

	if (count < 0 || setgroups(0, NULL))
		return 0;
	if (!setegid(client->group) && !seteuid(client->id))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	/* Where this fails it is not root any more: what is asked of it from now on fails too. */
	return !seteuid(0) && !setegid(0) && !setgroups((size_t)count, groups) && fd >= 0;
}

/* What one may read anyway is no secret; files of settings that one may change are none either. */
static int check_reading(const struct nb_client *client, const struct nb_op_request *request,
			 struct nb_error *error)
{
	struct nb_allow allow;
	int status;

	if (!client->by_sudo || nb_permit_is_readable(request->target.words) ||
	    can_read(client, request->target.words))
		return 0;
	status = nb_allow_read(&allow, client->by_sudo, error);
	if (!status)
		status = nb_permit_file(&allow, request->target.words, error);
	free(allow.text);
	return status;
}

int nb_permit_helper(const struct nb_client *client, const struct nb_op_request *request,
		     struct nb_error *error)
{
	int nfs = is(request, "mount") || is(request, "export");
	int runs = is(request, "exec") || is(request, "boot") || (nfs && client->by_sudo);
	int changes = request->value && !request->op->lasting, status = 0;
	struct nb_allow allow;

	if (is(request, "file") || is(request, "list"))
		status = nb_permit_place(request->target.words, changes, error);
	if (!status && is(request, "mount") && changes)
		status = check_mount(request->target.words, error);
	if (!status && is(request, "meter_files") && changes)
		status = check_taker(client, nb_target_word(&request->target, 2), error);
	if (status)
		return status;
	if (!runs && !changes)
		return is(request, "file") || is(request, "list")
			       ? check_reading(client, request, error)
			       : 0;
	status = nb_allow_read(&allow, client->by_sudo, error);
	if (!status)
		status = check_allowed(&allow, request, error);
	free(allow.text);
	return status;
}

int nb_permit_mover(const struct nb_client *client, const struct nb_op_request *request,
		    struct nb_error *error)
{
	int changes = (request->value && !request->op->lasting) || request->undo.words ||
		      is(request, "boot");

	(void)client;
	if (!changes || request->ask) /* which a helper knows */
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "operation", "send it to a helper",
		       "a mover does not change the host: %s %.60s", request->op->name,
		       request->target.words);
}
