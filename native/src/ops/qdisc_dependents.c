/* SPDX-License-Identifier: MIT */
/* What depends on a root qdisc, and cannot be restored with it. */
#include "qdisc_dependents.h"

#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>

/* Their classes come with them. Those of any other kind were added by another program. */
static const char *const classes_of_their_own[] = { "mq",    "mqprio",	 "taprio", "prio", "multiq",
						    "ets",   "fq_codel", "fq_pie", "cake", "sfq",
						    "sfb",   "red",	 "gred",   "tbf",  "etf",
						    "netem", "choke",	 "skbprio" };

static int count(const struct nb_place *place, uint16_t ask, uint16_t answer, uint32_t parent,
		 int *found, struct nb_error *error)
{
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;
	int status = nb_qdisc_dump(&netlink, place, ask, parent, error);

	*found = 0;
	while (!status && nb_qdisc_next(&netlink, place, &at, answer, &head, &attributes, &length))
		++*found;
	nb_netlink_free(&netlink);
	return status;
}

/* Whether another program has added anything below the root, or beside it. */
static int has_children(const char *text)
{
	char parent[24], kind[NB_QDISC_KIND], handle[16];

	for (; *text; text += *text == '\n') {
		if (sscanf(text, "%23s %15s %15s", parent, kind, handle) == 3 &&
		    strcmp(parent, "root") != 0 && strcmp(parent, "ffff:fff1") != 0 &&
		    strcmp(handle, "default") != 0)
			return 1;
		text += strcspn(text, "\n");
	}
	return 0;
}

static int makes_own_classes(const char *kind)
{
	size_t i = 0;

	while (i < NB_LENGTH(classes_of_their_own) && strcmp(classes_of_their_own[i], kind) != 0)
		i++;
	return i < NB_LENGTH(classes_of_their_own);
}

/* Whether the root has tables of sizes or shared blocks, which are no options. */
static int has_extras(const struct nb_place *place, int *found, struct nb_error *error)
{
	static const uint16_t extras[] = { TCA_STAB, TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK };
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length, size;
	int status = nb_qdisc_dump(&netlink, place, RTM_GETQDISC, 0, error);

	*found = 0;
	while (!status &&
	       nb_qdisc_next(&netlink, place, &at, RTM_NEWQDISC, &head, &attributes, &length))
		for (size_t i = 0; head.tcm_parent == TC_H_ROOT && i < NB_LENGTH(extras); i++)
			*found |= nb_attribute(attributes, length, extras[i], &size) != NULL;
	nb_netlink_free(&netlink);
	return status;
}

const char *nb_qdisc_dependents(const struct nb_place *place, const struct nb_root *root,
				const char *text, int *status, struct nb_error *error)
{
	int found = 0;

	if (has_children(text))
		return "it has qdiscs below it";
	*status = count(place, RTM_GETTCLASS, RTM_NEWTCLASS, 0, &found, error);
	if (!*status && found && !makes_own_classes(root->kind))
		return "it has classes";
	if (!*status)
		*status = count(place, RTM_GETTFILTER, RTM_NEWTFILTER, root->handle, &found, error);
	if (!*status && found)
		return "it has filters";
	if (!*status)
		*status = has_extras(place, &found, error);
	return !*status && found ? "it has a size table or a shared block" : NULL;
}
