/* SPDX-License-Identifier: MIT */
/*
 * What TCP has learnt of addresses in this network namespace, and begins the next connection to
 * them with: round-trip time, reordering, ssthresh (tcp_metrics(8), linux/tcp_metrics.h). sysctl
 * net.ipv4.tcp_no_metrics_save ends the saving alone: what is saved is used all the same.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/tcp_metrics.h>
#include <string.h>

#include "netlink.h"

static const char OPERATION[] = "tcp_metrics", NONE[] = "none";

static int check_target(const struct nb_target *target, struct nb_error *error)
{
	const char *which = nb_target_word(target, 0);

	if (!strcmp(which, "addresses"))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write addresses",
		       "'%.40s' is nothing of TCP's", which);
}

static int fail(const char *what, struct nb_error *error)
{
	if (errno == ENOENT) /* no such family */
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "use Linux 3.6 or later",
			       "this kernel does not tell what TCP has learnt of addresses");
	if (errno == EPERM)
		return nb_fail_errno(error, OPERATION,
				     "let root run it, outside of user namespaces", "%s", what);
	return nb_fail_errno(error, OPERATION, "look at `dmesg` on that host", "%s", what);
}

/* One request and its answers. Returns the number of the family, or 0 with errno. */
static uint16_t ask(struct nb_netlink *netlink, uint8_t what, uint16_t flags)
{
	const struct genlmsghdr head = { .cmd = what, .version = TCP_METRICS_GENL_VERSION };
	uint16_t family = nb_netlink_family(TCP_METRICS_GENL_NAME);

	if (!family)
		return 0;
	nb_netlink_begin(netlink, family, flags, &head, sizeof(head));
	netlink->protocol = NETLINK_GENERIC;
	return nb_netlink_ask(netlink) ? 0 : family;
}

static int get_tcp_metrics(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct nb_netlink netlink = { 0 };
	struct genlmsghdr head;
	const void *attributes;
	size_t at = 0, length, count = 0;
	int status = check_target(target, error);
	uint16_t family = status ? 0 : ask(&netlink, TCP_METRICS_CMD_GET, NLM_F_DUMP);

	if (!status && !family)
		status = fail("reading what TCP has learnt of addresses", error);
	while (family &&
	       nb_netlink_next(&netlink, &at, family, &head, sizeof(head), &attributes, &length))
		count++;
	nb_netlink_free(&netlink);
	if (!status && count)
		fprintf(text, "%zu\n", count);
	else if (!status)
		fprintf(text, "%s\n", NONE);
	return status;
}

/* A request without an address is about all of them. */
static int set_tcp_metrics(const struct nb_target *target, const char *value,
			   struct nb_error *error)
{
	struct nb_netlink netlink = { 0 };
	int status = check_target(target, error);

	if (status)
		return status;
	if (strcmp(value, NONE) != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write none",
			       "TCP can only be made to forget: '%.40s'", value);
	if (!ask(&netlink, TCP_METRICS_CMD_DEL, 0))
		status = fail("making TCP forget addresses", error);
	nb_netlink_free(&netlink);
	return status;
}

const struct nb_op nb_op_tcp_metrics = {
	.name = "tcp_metrics",
	.about = "of how many addresses TCP knows what to begin a connection with; `none` makes it "
		 "forget them",
	.words = 1,
	.get = get_tcp_metrics,
	.set = set_tcp_metrics,
};
