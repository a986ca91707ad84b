/* SPDX-License-Identifier: MIT */
/* Reading queueing disciplines as a text, and parsing such a text. */
#include "qdisc_text.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 32768 };

static const char OPERATION[] = "qdisc";

int nb_qdisc_place(struct nb_place *place, const struct nb_target *target, struct nb_error *error)
{
	place->interface = nb_target_word(target, 0);
	place->index = nb_interface(place->interface, OPERATION, error);
	return place->index < 0 ? place->index : 0;
}

/* Ask for everything of a type; to be freed, whether or not it failed. */
static int dump(struct nb_netlink *netlink, const struct nb_place *place, uint16_t type,
		uint32_t parent, struct nb_error *error)
{
	struct tcmsg head = { .tcm_ifindex = place->index, .tcm_parent = parent };

	nb_netlink_begin(netlink, type, NLM_F_DUMP, &head, sizeof(head));
	if (!nb_netlink_ask(netlink) || errno == EOPNOTSUPP) /* a kernel without it has none */
		return 0;
	return nb_fail_errno(error, OPERATION, "look at `dmesg` on that host",
			     "reading the qdiscs of %s", place->interface);
}

/* As nb_netlink_next: the next answer that is about this interface. */
static int next(const struct nb_netlink *netlink, const struct nb_place *place, size_t *at,
		uint16_t type, struct tcmsg *head, const void **attributes, size_t *length)
{
	while (nb_netlink_next(netlink, at, type, head, sizeof(*head), attributes, length))
		if (head->tcm_ifindex == place->index)
			return 1;
	return 0;
}

/* The options that htb reports differ from those that it accepts: they hold a count of packets, and
 * a longer version. Fills in those that it accepts, and returns where they are; `size`: it is
 * another kind. */
static size_t options_of_htb(const char *kind, const unsigned char *options, size_t size,
			     struct tc_htb_glob *taken)
{
	size_t room = 0;
	const unsigned char *found =
		strcmp(kind, "htb") != 0 ? NULL : nb_attribute(options, size, TCA_HTB_INIT, &room);

	if (!found || room < sizeof(*taken))
		return size;
	memcpy(taken, found, sizeof(*taken));
	taken->direct_pkts = 0;
	if (taken->version > UINT16_MAX)
		taken->version >>= 16;
	return (size_t)(found - options);
}

static void add_options(struct nb_text *text, const char *kind, const unsigned char *options,
			size_t size)
{
	struct tc_htb_glob taken;
	size_t begin = options_of_htb(kind, options, size, &taken), end = begin + sizeof(taken);

	for (size_t i = 0; i < size; i++)
		nb_text_add(text, "%s%02x", i ? "" : " ",
			    i >= begin && i < end ? ((const unsigned char *)&taken)[i - begin]
						  : options[i]);
}

static void add_qdisc(struct nb_text *text, const struct tcmsg *head, const void *attributes,
		      size_t length)
{
	size_t size = 0;
	char kind[NB_QDISC_KIND] = "";
	const void *found = nb_attribute(attributes, length, TCA_KIND, &size);

	if (found)
		memcpy(kind, found, size < sizeof(kind) ? size : sizeof(kind) - 1);
	if (head->tcm_parent == TC_H_ROOT)
		nb_text_add(text, "root %s", kind);
	else
		nb_text_add(text, "%x:%x %s", TC_H_MAJ(head->tcm_parent) >> 16,
			    TC_H_MIN(head->tcm_parent), kind);
	if (head->tcm_handle)
		nb_text_add(text, " %x:", TC_H_MAJ(head->tcm_handle) >> 16);
	else
		nb_text_add(text, " default");
	found = nb_attribute(attributes, length, TCA_OPTIONS, &size);
	if (found)
		add_options(text, kind, found, size);
	nb_text_add(text, "\n");
}

int nb_qdisc_get(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	struct nb_netlink netlink;
	struct nb_place place;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;
	int status = nb_qdisc_place(&place, target, error);

	if (status)
		return status;
	status = dump(&netlink, &place, RTM_GETQDISC, 0, error);
	while (!status && next(&netlink, &place, &at, RTM_NEWQDISC, &head, &attributes, &length))
		add_qdisc(text, &head, attributes, length);
	nb_netlink_free(&netlink);
	return status;
}

/* The line of `text` that is about the root, or its end. */
static const char *root_line(const char *text)
{
	while (*text && strncmp(text, "root ", 5) != 0) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

int nb_qdisc_fail_text(const char *text, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write the name of a kind such as fq",
		       "'%.60s' is not a qdisc", text);
}

static int read_options(const char *hex, struct nb_root *root)
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

int nb_qdisc_read(const char *text, struct nb_root *root, struct nb_error *error)
{
	const char *line = root_line(text);
	char handle[16];
	int end = 0;

	memset(root, 0, sizeof(*root));
	if (!*line)
		return 0;
	if (sscanf(line, "root %15s %15s%n", root->kind, handle, &end) != 2)
		return nb_qdisc_fail_text(text, error);
	if (strcmp(handle, "default") != 0)
		root->handle = (uint32_t)strtoul(handle, NULL, 16) << 16;
	line += end;
	return read_options(line + (*line == ' '), root) ? nb_qdisc_fail_text(text, error) : 0;
}

int nb_qdisc_read_now(const struct nb_place *place, struct nb_text *text, struct nb_root *root,
		      struct nb_error *error)
{
	struct nb_target target = { place->interface, strlen(place->interface) };
	int status;

	memset(root, 0, sizeof(*root));
	text->used = 0;
	text->data[0] = 0;
	status = nb_qdisc_get(&target, text, error);
	return status ? status : nb_qdisc_read(text->data, root, error);
}

/* What depends on a root that another program has set, and would not be restored with it. */

/* Their classes were added by another program. Those of all other kinds come with them. */
static const char *const classful[] = { "htb", "hfsc", "drr", "qfq", "cbq", "dsmark", "atm" };

static int count(const struct nb_place *place, uint16_t ask, uint16_t answer, uint32_t parent,
		 int *found, struct nb_error *error)
{
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;
	int status = dump(&netlink, place, ask, parent, error);

	*found = 0;
	while (!status && next(&netlink, place, &at, answer, &head, &attributes, &length))
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

static int is_classful(const char *kind)
{
	size_t i = 0;

	while (i < NB_LENGTH(classful) && strcmp(classful[i], kind) != 0)
		i++;
	return i < NB_LENGTH(classful);
}

/* Whether the root has tables of sizes or shared blocks, which are no options. */
static int has_extras(const struct nb_place *place, int *found, struct nb_error *error)
{
	static const uint16_t extras[] = { TCA_STAB, TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK };
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length, size;
	int status = dump(&netlink, place, RTM_GETQDISC, 0, error);

	*found = 0;
	while (!status && next(&netlink, place, &at, RTM_NEWQDISC, &head, &attributes, &length))
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
	if (is_classful(root->kind))
		*status = count(place, RTM_GETTCLASS, RTM_NEWTCLASS, 0, &found, error);
	if (!*status && found)
		return "it has classes";
	if (!*status)
		*status = count(place, RTM_GETTFILTER, RTM_NEWTFILTER, root->handle, &found, error);
	if (!*status && found)
		return "it has filters";
	if (!*status)
		*status = has_extras(place, &found, error);
	return !*status && found ? "it has a size table or a shared block" : NULL;
}
