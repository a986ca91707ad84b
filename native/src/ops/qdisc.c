/* SPDX-License-Identifier: MIT */
/*
 * The root qdisc of an interface (tc(8), linux/pkt_sched.h): read with all others of the interface,
 * replaced by a kind with its own defaults, and put back. The text has one line for each qdisc,
 * "root KIND HANDLE OPTIONS" or with its parent in place of `root`: the handle is `default` where
 * the kernel made it by itself, the options are its own bytes in hex, so that any simple kind can
 * be put back. What another program has built of several parts is left alone.
 */
#include "qdisc.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

enum { KIND = IFNAMSIZ, OPTIONS_MAX = 32768, ATTEMPTS = 4, HANDLES = 0x8000 };

static const char OPERATION[] = "qdisc";

extern const struct nb_op nb_op_qdisc;

/* The qdisc at the root of an interface. */
struct root {
	char kind[KIND];	/* "": there is none */
	uint32_t handle;	/* 0: the kernel's own */
	unsigned char *options; /* to be freed */
	size_t size;
};

/* Their classes are another program's, and so are the numbers of packets in htb's options. */
static int is_classful(const char *kind)
{
	static const char *const kinds[] = { "htb", "hfsc", "drr", "qfq", "cbq", "dsmark", "atm" };
	size_t i = 0;

	while (i < NB_LENGTH(kinds) && strcmp(kinds[i], kind) != 0)
		i++;
	return i < NB_LENGTH(kinds);
}

/* Ask for everything of a type; to be freed, whether or not it failed. */
static int dump(struct nb_netlink *netlink, int index, uint16_t type, uint32_t parent,
		struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = index, .tcm_parent = parent };

	nb_netlink_begin(netlink, type, NLM_F_DUMP, &head, sizeof(head));
	if (!nb_netlink_ask(netlink) || errno == EOPNOTSUPP) /* a kernel without it has none */
		return 0;
	return nb_fail_errno(error, OPERATION, "look at `dmesg` on that host",
			     "reading the qdiscs of interface %d", index);
}

/* As nb_netlink_next: the next answer that is about this interface. */
static int next(const struct nb_netlink *netlink, int index, size_t *at, uint16_t type,
		struct tcmsg *head, const void **attributes, size_t *length)
{
	while (nb_netlink_next(netlink, at, type, head, sizeof(*head), attributes, length))
		if (head->tcm_ifindex == index)
			return 1;
	return 0;
}

static void add_qdisc(FILE *text, const struct tcmsg *head, const void *attributes, size_t length)
{
	size_t size = 0;
	char kind[KIND] = "";
	const unsigned char *found = nb_attribute(attributes, length, TCA_KIND, &size);

	if (found)
		memcpy(kind, found, size < sizeof(kind) ? size : sizeof(kind) - 1);
	if (head->tcm_parent == TC_H_ROOT)
		fprintf(text, "root %s", kind);
	else
		fprintf(text, "%x:%x %s", TC_H_MAJ(head->tcm_parent) >> 16,
			TC_H_MIN(head->tcm_parent), kind);
	if (head->tcm_handle)
		fprintf(text, " %x:", TC_H_MAJ(head->tcm_handle) >> 16);
	else
		fprintf(text, " default");
	found = is_classful(kind) ? NULL : nb_attribute(attributes, length, TCA_OPTIONS, &size);
	for (size_t i = 0; found && i < size; i++)
		fprintf(text, "%s%02x", i ? "" : " ", found[i]);
	fprintf(text, "\n");
}

static int get_qdisc(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	int index = nb_interface(target->words, OPERATION, error), status;
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;

	if (index < 0)
		return index;
	status = dump(&netlink, index, RTM_GETQDISC, 0, error);
	while (!status && next(&netlink, index, &at, RTM_NEWQDISC, &head, &attributes, &length))
		add_qdisc(text, &head, attributes, length);
	nb_netlink_free(&netlink);
	return status;
}

static int fail_text(const char *text, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write the name of a kind such as fq",
		       "'%.60s' is not a qdisc", text);
}

static int read_options(const char *hex, struct root *root)
{
	size_t digits = strspn(hex, "0123456789abcdef");

	if (!digits)
		return 0;
	root->options = digits % 2 || digits / 2 > OPTIONS_MAX ? NULL : malloc(digits / 2);
	if (!root->options)
		return -1;
	for (; root->size < digits / 2; root->size++) {
		const char pair[3] = { hex[2 * root->size], hex[2 * root->size + 1], 0 };

		root->options[root->size] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return 0;
}

/* The root that a text describes. */
static int parse(const char *text, struct root *root, struct nb_error *error)
{
	const char *line = strncmp(text, "root ", 5) ? strstr(text, "\nroot ") : text;
	char handle[16];
	int end = 0;

	memset(root, 0, sizeof(*root));
	if (!line)
		return 0;
	line += *line == '\n';
	if (sscanf(line, "root %15s %15s%n", root->kind, handle, &end) != 2)
		return fail_text(text, error);
	if (strcmp(handle, "default") != 0)
		root->handle = (uint32_t)strtoul(handle, NULL, 16) << 16;
	line += end;
	return read_options(line + (*line == ' '), root) ? fail_text(text, error) : 0;
}

/* What the interface has now: its text, for free(), and the root in it; NULL with the error filled.
 */
static char *read_now(const char *interface, struct root *root, struct nb_error *error)
{
	struct nb_target target = { interface, strlen(interface) };
	char *text = nb_op_read(&nb_op_qdisc, &target, error);

	memset(root, 0, sizeof(*root));
	if (!text || !parse(text, root, error))
		return text;
	free(text);
	return NULL;
}

static int fail_qdisc(const struct nb_netlink *netlink, const char *interface, const char *kind,
		      struct nb_error *error)
{
	int number = errno;

	if (number == ENOENT)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "use a kind that it has, or load its module",
			       "this kernel has no qdisc '%s'", kind);
	if (number == EOPNOTSUPP)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "use another kind",
			       "%s cannot have the qdisc %s at its root", interface, kind);
	return nb_fail_errno(
		error, OPERATION,
		number == EPERM ? "run as root, or leave this setting out"
				: "use another kind, or set it by a command of the campaign's own",
		"%s of %s%s%s", kind, interface, netlink->why[0] ? ": " : "", netlink->why);
}

/* A new root in place of the one that is there; or none, and the kernel makes its default one. */
static int replace(const char *interface, const struct root *root, struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = nb_interface(interface, OPERATION, error),
			      .tcm_parent = TC_H_ROOT,
			      .tcm_handle = root ? root->handle : 0 };
	struct nb_netlink netlink;
	int status = 0;

	if (head.tcm_ifindex < 0)
		return head.tcm_ifindex;
	nb_netlink_begin(&netlink, root ? RTM_NEWQDISC : RTM_DELQDISC,
			 root ? NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL : 0, &head, sizeof(head));
	if (root)
		nb_netlink_put(&netlink, TCA_KIND, root->kind, strlen(root->kind) + 1);
	if (root && root->size)
		nb_netlink_put(&netlink, TCA_OPTIONS, root->options, root->size);
	if (nb_netlink_ask(&netlink))
		status = fail_qdisc(&netlink, interface, root ? root->kind : "the root", error);
	nb_netlink_free(&netlink);
	return status;
}

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

/* Whether another program has added anything below the root, or beside it. */
static int has_children(const char *text)
{
	char parent[24], kind[KIND], handle[16];

	for (; *text; text += *text == '\n') {
		if (sscanf(text, "%23s %15s %15s", parent, kind, handle) == 3 &&
		    strcmp(parent, "root") != 0 && strcmp(parent, "ffff:fff1") != 0 &&
		    strcmp(handle, "default") != 0)
			return 1;
		text += strcspn(text, "\n");
	}
	return 0;
}

/* Whether the root has filters, a table of sizes or a shared block, which are no options; or a
 * negative code. */
static int has_extras(int index, uint32_t handle, struct nb_error *error)
{
	static const uint16_t extras[] = { TCA_STAB, TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK };
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length, size;
	int status = dump(&netlink, index, RTM_GETTFILTER, handle, error), found = 0;

	while (!status && next(&netlink, index, &at, RTM_NEWTFILTER, &head, &attributes, &length))
		found = 1;
	nb_netlink_free(&netlink);
	if (status || found)
		return status ? status : found;
	at = 0;
	status = dump(&netlink, index, RTM_GETQDISC, 0, error);
	while (!status && next(&netlink, index, &at, RTM_NEWQDISC, &head, &attributes, &length))
		for (size_t i = 0; head.tcm_parent == TC_H_ROOT && i < NB_LENGTH(extras); i++)
			found |= nb_attribute(attributes, length, extras[i], &size) != NULL;
	nb_netlink_free(&netlink);
	return status ? status : found;
}

/*
 * Check, before a root that another program has set is lost, that it could be restored: replace it
 * with a copy. The kernel makes the new one before it frees the old one, which stays on failure.
 */
static int check_restorable(const char *interface, const struct root *root, const char *text,
			    struct nb_error *error)
{
	int extras = has_extras(nb_interface(interface, OPERATION, error), root->handle, error);
	const char *lost = has_children(text)	     ? "it has qdiscs below it"
			   : is_classful(root->kind) ? "its classes are another program's"
			   : extras ? "it has filters, a size table or a shared block"
				    : NULL;
	struct root like = *root;
	struct nb_error why;

	if (extras < 0)
		return extras;
	like.handle = free_handle(text, HANDLES) << 16;
	if (!lost && replace(interface, &like, &why))
		lost = why.message;
	return lost ? nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			      "remove it by hand, or leave this setting out",
			      "the %s of %s could not be restored: %s", root->kind, interface, lost)
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
static int make_root(const char *interface, const struct root *wanted, struct nb_error *error)
{
	struct root aim = *wanted, now;
	int status = 0, again = 1;

	aim.options = wanted->size ? malloc(wanted->size) : NULL;
	if (aim.options)
		memcpy(aim.options, wanted->options, wanted->size);
	for (int i = 0; !status && again && i < ATTEMPTS; i++) {
		char *text;

		status = i ? replace(interface, NULL, error) : 0;
		if (!status)
			status = replace(interface, &aim, error);
		if (status)
			break;
		text = read_now(interface, &now, error);
		status = text ? 0 : -(int)error->code;
		again = text && aim.options && now.size == wanted->size &&
			nb_qdisc_aim(aim.options, wanted->options, now.options, wanted->size);
		free(now.options);
		free(text);
	}
	free(aim.options);
	return status;
}

/* The kernel makes its default root where the last one is removed. */
static int restore_default(const char *interface, const struct root *now, struct nb_error *error)
{
	static const struct root any = { .kind = "pfifo" };
	int status = 0;

	if (!now->kind[0])
		return 0;
	if (!now->handle)
		status = replace(interface, &any, error); /* so that there is one to remove */
	return status ? status : replace(interface, NULL, error);
}

static int restore_qdisc(const struct nb_target *target, const char *text, struct nb_error *error)
{
	const char *interface = target->words;
	struct root now, wanted;
	char *reads = read_now(interface, &now, error);
	int status = reads ? parse(text, &wanted, error) : -(int)error->code;

	if (!reads)
		return status;
	if (!status && strcmp(reads, text) != 0) {
		if (!wanted.handle)
			status = restore_default(interface, &now, error);
		else if (!now.handle || !(status = replace(interface, NULL, error)))
			status = make_root(interface, &wanted, error);
	}
	free(wanted.options);
	free(now.options);
	free(reads);
	return status;
}

static int set_kind(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const char *interface = target->words;
	struct root now, wanted = { 0 };
	size_t length = strcspn(value, "\n");
	struct nb_error ignored;
	char *before;
	int status;

	if (length >= sizeof(wanted.kind))
		return fail_text(value, error);
	memcpy(wanted.kind, value, length);
	before = read_now(interface, &now, error);
	if (!before)
		return -(int)error->code;
	status = now.handle ? check_restorable(interface, &now, before, error) : 0;
	if (!status) {
		if (!strcmp(now.kind, wanted.kind)) /* a handle that the check has not used */
			wanted.handle = free_handle(before, free_handle(before, HANDLES)) << 16;
		status = replace(interface, &wanted, error);
		if (status && now.handle) /* the check has left a copy there */
			restore_qdisc(target, before, &ignored);
	}
	free(before);
	free(now.options);
	return status;
}

static int set_qdisc(const struct nb_target *target, const char *value, struct nb_error *error)
{
	return value[0] && !strchr(value, ' ') ? set_kind(target, value, error)
					       : restore_qdisc(target, value, error);
}

const struct nb_op nb_op_qdisc = {
	.name = "qdisc",
	.about = "queueing disciplines of an interface; a kind replaces the root",
	.words = 1,
	.get = get_qdisc,
	.set = set_qdisc,
	.restore = restore_qdisc,
};
