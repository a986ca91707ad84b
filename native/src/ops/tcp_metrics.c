/* SPDX-License-Identifier: MIT */
/* What TCP has learnt of addresses in this network namespace, and begins the next connection to
 * them with: round-trip time, reordering, ssthresh; by generic netlink (linux/tcp_metrics.h), as
 * ip-tcp_metrics(8) does. sysctl net.ipv4.tcp_no_metrics_save ends the saving alone: what is saved
 * is used all the same. */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/tcp_metrics.h>
#include <string.h>

#include "netlink.h"

static const char OPERATION[] = "tcp_metrics", NONE[] = "none";

static void begin(struct nb_netlink *netlink, uint16_t family, uint8_t command, uint16_t flags)
{
	const struct genlmsghdr head = { .cmd = command, .version = TCP_METRICS_GENL_VERSION };

	nb_netlink_begin(netlink, family, flags, &head, sizeof(head));
	netlink->protocol = NETLINK_GENERIC;
}

/* The number that the kernel gave to what it speaks of these with; -1 with errno. */
static int family(void)
{
	struct nb_netlink netlink;
	struct genlmsghdr head;
	const void *attributes;
	size_t at = 0, length;
	uint16_t number = 0;
	int found;

	begin(&netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	nb_netlink_put(&netlink, CTRL_ATTR_FAMILY_NAME, TCP_METRICS_GENL_NAME,
		       sizeof(TCP_METRICS_GENL_NAME));
	found = !nb_netlink_ask(&netlink) &&
		nb_netlink_next(&netlink, &at, GENL_ID_CTRL, &head, sizeof(head), &attributes,
				&length) &&
		nb_attribute_copy(attributes, length, CTRL_ATTR_FAMILY_ID, &number, sizeof(number));
	nb_netlink_free(&netlink);
	return found ? number : -1;
}

/* Give a command; how many answers there were, or a negative code with the error filled. */
static int ask(uint8_t command, uint16_t flags, struct nb_error *error)
{
	int of = family(), count = 0;
	struct nb_netlink netlink = { 0 };
	struct genlmsghdr head;
	const void *attributes;
	size_t at = 0, length;

	if (of >= 0)
		begin(&netlink, (uint16_t)of, command, flags);
	if (of < 0 || nb_netlink_ask(&netlink))
		count = nb_fail_errno(error, OPERATION,
				      "let root run it, outside of user namespaces",
				      "what TCP has learnt of addresses");
	while (count >= 0 && nb_netlink_next(&netlink, &at, (uint16_t)of, &head, sizeof(head),
					     &attributes, &length))
		count++;
	nb_netlink_free(&netlink);
	return count;
}

static int get_tcp_metrics(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	int count = ask(TCP_METRICS_CMD_GET, NLM_F_DUMP, error);

	(void)target;
	if (count > 0)
		fprintf(text, "%d\n", count);
	else if (!count)
		fprintf(text, "%s\n", NONE);
	return count < 0 ? count : 0;
}

static int set_tcp_metrics(const struct nb_target *target, const char *value,
			   struct nb_error *error)
{
	if (strcmp(nb_target_word(target, 0), "addresses") != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write addresses",
			       "all addresses are forgotten, or none: '%.40s'",
			       nb_target_word(target, 0));
	if (strcmp(value, NONE) != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write none",
			       "TCP can only be made to forget: '%.40s'", value);
	return ask(TCP_METRICS_CMD_DEL, 0, error); /* of no address: all */
}

const struct nb_op nb_op_tcp_metrics = {
	.name = "tcp_metrics",
	.about = "of how many addresses TCP knows what to begin a connection with; `none` makes it "
		 "forget them",
	.words = 1,
	.get = get_tcp_metrics,
	.set = set_tcp_metrics,
};
