/* SPDX-License-Identifier: MIT */
/* Setting and restoring the root qdisc of an interface. */
#include "qdisc.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qdisc_text.h"

enum { ATTEMPTS = 4, HANDLES = 0x8000 };

static const char OPERATION[] = "qdisc", DEFAULT_FILE[] = "/proc/sys/net/core/default_qdisc";

extern const struct nb_op nb_op_file;

static int fail_qdisc(const struct nb_netlink *netlink, const struct nb_place *place,
		      const char *kind, struct nb_error *error)
{
	int number = errno;

	if (number == ENOENT)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "use a kind that it has, or load its module",
			       "this kernel has no qdisc '%s'", kind);
	if (number == EOPNOTSUPP)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "use another kind",
			       "%s cannot have the qdisc %s at its root", place->interface, kind);
	return nb_fail_errno(
		error, OPERATION,
		number == EPERM ? "run as root, or leave this setting out"
				: "use another kind, or set it by a command of the campaign's own",
		"%s of %s%s%s", kind, place->interface, netlink->why[0] ? ": " : "", netlink->why);
}

/* What tc(8) gives with a kind that the kernel takes with options only. */
static const struct tc_prio_qopt prio = { 3, { 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 } };
static const struct tc_netem_qopt netem = { .limit = 1000 };
static const struct {
	struct rtattr head;
	struct tc_htb_glob options;
} htb = { { RTA_LENGTH(sizeof(struct tc_htb_glob)), TCA_HTB_INIT },
	  { .version = 3, .rate2quantum = 10 } };

static const struct {
	const char *kind;
	const void *options;
	size_t size;
} defaults[] = { { "prio", &prio, sizeof(prio) },
		 { "netem", &netem, sizeof(netem) },
		 { "htb", &htb, sizeof(htb) } };

/* Below those that the kernel gives out. A root of the kind that is there is only changed, unless
 * it is given a handle. */
static uint32_t free_handle(const char *text, uint32_t below)
{
	char handle[16];

	do
		snprintf(handle, sizeof(handle), " %x:", --below);
	while (strstr(text, handle));
	return below;
}

/* A new root in place of the one that is there. */
static int replace(const struct nb_place *place, const struct nb_root *root, struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = place->index,
			      .tcm_parent = TC_H_ROOT,
			      .tcm_handle = root->handle };
	struct nb_netlink netlink;
	int status = 0;

	nb_netlink_begin(&netlink, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL, &head,
			 sizeof(head));
	nb_netlink_put(&netlink, TCA_KIND, root->kind, strlen(root->kind) + 1);
	if (root->size)
		nb_netlink_put(&netlink, TCA_OPTIONS, root->options, root->size);
	for (size_t i = 0; !root->size && i < NB_LENGTH(defaults); i++)
		if (!strcmp(defaults[i].kind, root->kind))
			nb_netlink_put(&netlink, TCA_OPTIONS, defaults[i].options,
				       defaults[i].size);
	if (nb_netlink_ask(&netlink))
		status = fail_qdisc(&netlink, place, root->kind, error);
	nb_netlink_free(&netlink);
	return status;
}

/* Take the root away; the kernel then makes its default one. */
static int remove_root(const struct nb_place *place, struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = place->index, .tcm_parent = TC_H_ROOT };
	struct nb_netlink netlink;
	int status = 0;

	nb_netlink_begin(&netlink, RTM_DELQDISC, 0, &head, sizeof(head));
	if (nb_netlink_ask(&netlink))
		status = fail_qdisc(&netlink, place, "the root", error);
	nb_netlink_free(&netlink);
	return status;
}

/*
 * Check, before a root that another program has set is lost, that it could be restored: replace it
 * with a copy. The kernel makes the new one before it frees the old one, which stays on failure.
 */
static int check_restorable(const struct nb_place *place, const struct nb_root *root,
			    const char *text, struct nb_error *error)
{
	struct nb_root like = *root;
	struct nb_error why;
	int status = 0;
	const char *lost = nb_qdisc_dependents(place, root, text, &status, error);

	if (status)
		return status;
	like.handle = free_handle(text, HANDLES) << 16;
	if (!lost && replace(place, &like, &why))
		lost = why.message;
	return lost ? nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			      "remove it by hand, or leave this setting out",
			      "the %s of %s could not be restored: %s", root->kind,
			      place->interface, lost)
		    : 0;
}

int nb_qdisc_aim(unsigned char *aim, const unsigned char *wanted, const unsigned char *got,
		 size_t size)
{
	int moved = 0;
	struct rtattr head;

	for (size_t at = 0; size - at >= sizeof(head); at += RTA_ALIGN(head.rta_len)) {
		uint32_t aimed, should, is;

		memcpy(&head, wanted + at, sizeof(head));
		if (head.rta_len < sizeof(head) || head.rta_len > size - at ||
		    memcmp(&head, got + at, sizeof(head)) != 0)
			return 0;
		if (head.rta_len == RTA_LENGTH(sizeof(aimed))) {
			memcpy(&aimed, aim + at + sizeof(head), sizeof(aimed));
			memcpy(&should, wanted + at + sizeof(head), sizeof(should));
			memcpy(&is, got + at + sizeof(head), sizeof(is));
			aimed += should - is;
			memcpy(aim + at + sizeof(head), &aimed, sizeof(aimed));
			moved |= should != is;
		}
		if (RTA_ALIGN(head.rta_len) > size - at)
			break;
	}
	return moved;
}

/* Make a root that reads as it is wanted, where no other program has set one. */
static int make_root(const struct nb_place *place, const struct nb_root *wanted,
		     struct nb_text *text, struct nb_error *error)
{
	struct nb_root aim = *wanted, now = { 0 };
	int status = 0, again = 1;

	aim.options = wanted->size ? malloc(wanted->size) : NULL;
	if (aim.options)
		memcpy(aim.options, wanted->options, wanted->size);
	for (int i = 0; !status && again && i < ATTEMPTS; i++) {
		if (i)
			status = remove_root(place, error);
		if (!status)
			status = replace(place, &aim, error);
		if (!status)
			status = nb_qdisc_read_now(place, text, &now, error);
		again = !status && aim.options && now.size == wanted->size &&
			nb_qdisc_aim(aim.options, wanted->options, now.options, wanted->size);
		free(now.options);
		now.options = NULL;
	}
	free(aim.options);
	return status;
}

/* The kind that the kernel made by itself: of a multiqueue device, that of its queues. "": none. */
static void default_kind(const char *text, char *kind)
{
	char parent[24], made[NB_QDISC_KIND], handle[16];

	kind[0] = 0;
	for (; *text; text += *text == '\n') {
		if (sscanf(text, "%23s %15s %15s", parent, made, handle) == 3 &&
		    !strcmp(handle, "default") && strcmp(made, "mq") != 0 &&
		    strcmp(made, "noqueue") != 0 && !kind[0])
			strcpy(kind, made);
		text += strcspn(text, "\n");
	}
}

/* Let the kernel make its default of that kind from now on; keeps what it was. Returns whether it
 * does, and did not before. */
static int aim_default(const struct nb_target *file, const char *kind, struct nb_text *was)
{
	if (!kind[0] || nb_op_file.get(file, was, NULL))
		return 0; /* in a network namespace the file is not there */
	was->data[strcspn(was->data, "\n")] = 0;
	return strcmp(was->data, kind) != 0 && !nb_op_file.set(file, kind, NULL);
}

/* The kernel makes its default of the kind that net.core.default_qdisc names at that time, which
 * may differ from the kind that was there. */
static int restore_default(const struct nb_place *place, const char *text,
			   const struct nb_root *now, struct nb_error *error)
{
	static const struct nb_root any = { .kind = "pfifo" };
	struct nb_target file = { DEFAULT_FILE, sizeof(DEFAULT_FILE) - 1 };
	char kind[NB_QDISC_KIND], before[64];
	struct nb_text was = { .data = before, .room = sizeof(before) };
	int aimed, status = 0;

	if (!now->kind[0])
		return 0;
	if (!now->handle)
		status = replace(place, &any, error); /* so that there is one to remove */
	if (status)
		return status;
	default_kind(text, kind);
	aimed = aim_default(&file, kind, &was);
	status = remove_root(place, error);
	if (aimed && nb_op_file.set(&file, before, status ? NULL : error))
		status = -NB_ERR_SYSTEM;
	return status;
}

static int restore_from(const struct nb_place *place, const char *text,
			const struct nb_root *wanted, struct nb_text *scratch,
			struct nb_error *error)
{
	struct nb_root now;
	int status = nb_qdisc_read_now(place, scratch, &now, error);

	if (status || !strcmp(scratch->data, text))
		goto out;
	if (!wanted->handle) {
		status = restore_default(place, text, &now, error);
		goto out;
	}
	if (now.handle)
		status = remove_root(place, error);
	if (status)
		goto out;
	status = make_root(place, wanted, scratch, error);
out:
	free(now.options);
	return status;
}

static int restore_root(const struct nb_place *place, const char *text, struct nb_text *scratch,
			struct nb_error *error)
{
	struct nb_root wanted;
	int status = nb_qdisc_read(text, &wanted, error);

	if (!status)
		status = restore_from(place, text, &wanted, scratch, error);
	free(wanted.options);
	return status;
}

static int set_kind(const struct nb_place *place, const char *value, struct nb_text *scratch,
		    struct nb_error *error)
{
	struct nb_root now, wanted = { 0 };
	size_t length = strcspn(value, "\n");
	struct nb_error ignored;
	char *before = NULL;
	int status;

	if (length >= sizeof(wanted.kind))
		return nb_qdisc_fail_text(value, error);
	memcpy(wanted.kind, value, length);
	status = nb_qdisc_read_now(place, scratch, &now, error);
	if (status)
		goto out;
	before = nb_text_copy(scratch->data, strlen(scratch->data));
	if (!before) {
		status = nb_op_fail_memory(error, "the present qdisc");
		goto out;
	}
	if (now.handle)
		status = check_restorable(place, &now, before, error);
	if (status)
		goto out;
	if (!strcmp(now.kind, wanted.kind)) /* a handle that the check has not used */
		wanted.handle = free_handle(before, free_handle(before, HANDLES)) << 16;
	status = replace(place, &wanted, error);
	if (status && now.handle) /* the check has left a copy there */
		restore_root(place, before, scratch, &ignored);
out:
	free(before);
	free(now.options);
	return status;
}

static int with_scratch(int (*what)(const struct nb_place *, const char *, struct nb_text *,
				    struct nb_error *),
			const struct nb_target *target, const char *value, struct nb_error *error)
{
	struct nb_text scratch;
	struct nb_place place;
	int status = nb_text_allocate(&scratch, error);

	if (status)
		return status;
	status = nb_qdisc_place(&place, target, error);
	if (!status)
		status = what(&place, value, &scratch, error);
	free(scratch.data);
	return status;
}

static int restore_qdisc(const struct nb_target *target, const char *text, struct nb_error *error)
{
	return with_scratch(restore_root, target, text, error);
}

static int set_qdisc(const struct nb_target *target, const char *value, struct nb_error *error)
{
	int is_kind = value[0] && !strchr(value, ' ');

	return with_scratch(is_kind ? set_kind : restore_root, target, value, error);
}

const struct nb_op nb_op_qdisc = {
	.name = "qdisc",
	.about = "queueing disciplines of an interface; a kind replaces the root",
	.words = 1,
	.get = nb_qdisc_get,
	.set = set_qdisc,
	.restore = restore_qdisc,
};
