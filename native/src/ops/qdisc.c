/* SPDX-License-Identifier: MIT */
/* The root qdisc of an interface (tc(8), linux/pkt_sched.h): read with all others of the interface,
 * replaced by a kind with its own defaults, and put back. The text has one line for each qdisc,
 * "root KIND HANDLE OPTIONS" or with its parent in place of `root`: the handle is `default` where
 * the kernel made it by itself, the options are its own bytes in hex. What another program has set
 * stays: it could not be put back as it was. */
#include <errno.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

/* Roots that are made here have a handle from OWN on, below those that the kernel gives out: their
 * options are what their kind has by itself. */
enum { KIND = IFNAMSIZ, OWN = 0x7f00, HANDLES = 0x8000 };

static const char OPERATION[] = "qdisc";

extern const struct nb_op nb_op_qdisc;

/* The qdisc at the root of an interface. */
struct root {
	char kind[KIND]; /* "": there is none */
	uint32_t handle; /* 0: the kernel's own */
};

/* Kinds whose options are what they were given, and do not move. */
static int is_simple(const char *kind)
{
	static const char *const kinds[] = { "pfifo", "bfifo", "pfifo_fast", "fq",
					     "tbf",   "mq",    "noqueue" };
	size_t i = 0;

	while (i < NB_LENGTH(kinds) && strcmp(kinds[i], kind) != 0)
		i++;
	return i < NB_LENGTH(kinds);
}

/* Made here, with the options that its kind has by itself. */
static int is_own(const struct root *root)
{
	uint32_t handle = root->handle >> 16;

	return handle >= OWN && handle < HANDLES;
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
	found = nb_attribute(attributes, length, TCA_OPTIONS, &size);
	for (size_t i = 0; found && i < size && is_simple(kind); i++)
		fprintf(text, "%s%02x", i ? "" : " ", found[i]);
	fprintf(text, nb_attribute(attributes, length, TCA_STAB, &size) ? " stab\n" : "\n");
}

static int get_qdisc(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = nb_interface(target->words, OPERATION, error) };
	int index = head.tcm_ifindex, status = 0;
	struct nb_netlink netlink;
	const void *attributes;
	size_t at = 0, length;

	if (index < 0)
		return index;
	nb_netlink_begin(&netlink, RTM_GETQDISC, NLM_F_DUMP, &head, sizeof(head));
	if (nb_netlink_ask(&netlink) && errno != EOPNOTSUPP) /* a kernel without it has none */
		status = nb_fail_errno(error, OPERATION, "look at `dmesg` on that host",
				       "reading the qdiscs of %s", target->words);
	while (!status && nb_netlink_next(&netlink, &at, RTM_NEWQDISC, &head, sizeof(head),
					  &attributes, &length))
		if (head.tcm_ifindex == index)
			add_qdisc(text, &head, attributes, length);
	nb_netlink_free(&netlink);
	return status;
}

static int fail_text(const char *text, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write the name of a kind such as fq",
		       "'%.60s' is not a qdisc", text);
}

static int parse(const char *text, struct root *root, struct nb_error *error)
{
	const char *line = strncmp(text, "root ", 5) ? strstr(text, "\nroot ") : text;
	char handle[16];

	memset(root, 0, sizeof(*root));
	if (!line)
		return 0;
	line += *line == '\n';
	if (sscanf(line, "root %15s %15s", root->kind, handle) != 2)
		return fail_text(text, error);
	if (strcmp(handle, "default") != 0)
		root->handle = (uint32_t)strtoul(handle, NULL, 16) << 16;
	return 0;
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

	if (number == ENOENT || number == EOPNOTSUPP)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "use another kind, or load its module",
			       "this kernel has no qdisc '%s' for the root of %s", kind, interface);
	return nb_fail_errno(
		error, OPERATION,
		number == EPERM
			? "run as root (a container needs CAP_NET_ADMIN), or leave this setting out"
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
	if (nb_netlink_ask(&netlink))
		status = fail_qdisc(&netlink, interface, root ? root->kind : "the root", error);
	nb_netlink_free(&netlink);
	return status;
}

/* Below those that the kernel gives out. A root of the kind that is there is only changed, unless
 * it is given a handle. */
static uint32_t free_handle(const char *text)
{
	uint32_t free = HANDLES;
	char handle[16];

	do
		snprintf(handle, sizeof(handle), " %x:", --free);
	while (strstr(text, handle));
	return free;
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
	/* The text may be anybody's. */
	if (!status && wanted.handle && !is_own(&wanted))
		status = fail_text(text, error);
	if (!status && strcmp(reads, text) != 0) {
		if (!wanted.handle)
			status = restore_default(interface, &now, error);
		else if (!now.handle || !(status = replace(interface, NULL, error)))
			status = replace(interface, &wanted, error);
	}
	free(reads);
	return status;
}

static int set_qdisc(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const char *interface = target->words;
	struct root now, wanted = { 0 };
	size_t length = strcspn(value, "\n");
	char *before;
	int status = 0;

	if (!length || length >= sizeof(wanted.kind) || memchr(value, ' ', length))
		return fail_text(value, error);
	memcpy(wanted.kind, value, length);
	before = read_now(interface, &now, error);
	if (!before)
		return -(int)error->code;
	if (now.handle && !is_own(&now))
		status = nb_fail(
			error, NB_ERR_UNSUPPORTED, OPERATION,
			"remove it by hand (tc qdisc delete), or leave this setting out",
			"the %s of %s was set by another program, and could not be restored",
			now.kind, interface);
	wanted.handle = free_handle(before) << 16;
	if (!status)
		status = replace(interface, &wanted, error);
	free(before);
	return status;
}

const struct nb_op nb_op_qdisc = {
	.name = "qdisc",
	.about = "queueing disciplines of an interface; a kind replaces the root",
	.words = 1,
	.get = get_qdisc,
	.set = set_qdisc,
	.restore = restore_qdisc,
};
