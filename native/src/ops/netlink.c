/* SPDX-License-Identifier: MIT */
#include "netlink.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { DUMPS_MAX = 20, ANSWER_SECONDS = 5, SEQUENCE = 1, INTERRUPTED = 1 };

static const size_t DATAGRAM = 65536;

static void pad(struct nb_writer *writer)
{
	static const unsigned char zeros[NLMSG_ALIGNTO];

	nb_put(writer, zeros, NLMSG_ALIGN(writer->used) - writer->used);
}

void nb_netlink_begin(struct nb_netlink *netlink, uint16_t type, uint16_t flags, const void *head,
		      size_t length)
{
	/* A dump ends with a message of its own, everything else with an acknowledgement. To other
	 * than RTM_GET... its bits mean NLM_F_REPLACE and NLM_F_EXCL. */
	int dumps = (type & 3) == (RTM_GETLINK & 3) && (flags & NLM_F_DUMP) == NLM_F_DUMP;
	uint16_t ends = dumps ? 0 : NLM_F_ACK;
	struct nlmsghdr header = { .nlmsg_type = type,
				   .nlmsg_flags = NLM_F_REQUEST | ends | flags,
				   .nlmsg_seq = SEQUENCE };

	memset(netlink, 0, sizeof(*netlink));
	nb_put(&netlink->request, &header, sizeof(header));
	nb_put(&netlink->request, head, length);
	pad(&netlink->request);
}

void nb_netlink_put(struct nb_netlink *netlink, uint16_t type, const void *data, size_t length)
{
	struct rtattr head = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(length) };

	if (RTA_LENGTH(length) > UINT16_MAX)
		netlink->request.failed = 1;
	nb_put(&netlink->request, &head, sizeof(head));
	nb_put(&netlink->request, data, length);
	pad(&netlink->request);
}

void nb_netlink_free(struct nb_netlink *netlink)
{
	nb_writer_free(&netlink->request);
	nb_writer_free(&netlink->answers);
}

static int open_socket(int protocol)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int one = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	/* Old kernels have no words and no short acknowledgements: they are done without. */
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)))
		return fd;
	close(fd);
	return -1;
}

static int send_request(int fd, struct nb_writer *request)
{
	uint32_t length = (uint32_t)request->used;
	ssize_t sent;

	memcpy(request->data, &length, sizeof(length)); /* nlmsg_len is its first field */
	do
		sent = send(fd, request->data, request->used, 0);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)request->used ? 0 : -1;
}

/* One datagram. Returns its length, or -1 with errno. */
static ssize_t receive(int fd, unsigned char *data)
{
	ssize_t got;

	do
		got = recv(fd, data, DATAGRAM, MSG_TRUNC);
	while (got < 0 && errno == EINTR);
	if (got > (ssize_t)DATAGRAM || !got) {
		errno = EMSGSIZE;
		return -1;
	}
	return got;
}

/* The kernel's words on a failure are attributes behind the request, or its head alone. */
static void take_words(struct nb_netlink *netlink, const struct nlmsghdr *message)
{
	const struct nlmsgerr *end = NLMSG_DATA(message);
	size_t at = NLMSG_HDRLEN + sizeof(end->error), size;
	const char *words;

	if (message->nlmsg_type == NLMSG_ERROR)
		at += message->nlmsg_flags & NLM_F_CAPPED ? sizeof(end->msg)
							  : NLMSG_ALIGN(end->msg.nlmsg_len);
	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS) || at > message->nlmsg_len)
		return;
	words = nb_attribute((const char *)message + at, message->nlmsg_len - at, NLMSGERR_ATTR_MSG,
			     &size);
	if (words)
		snprintf(netlink->why, sizeof(netlink->why), "%.*s", (int)size, words);
}

/* The end of a request: 0, or -1 with errno. */
static int take_end(struct nb_netlink *netlink, const struct nlmsghdr *message)
{
	size_t least = message->nlmsg_type == NLMSG_DONE ? sizeof(int) : sizeof(struct nlmsgerr);
	int number = 0;

	if (message->nlmsg_len < NLMSG_HDRLEN + least) {
		errno = EBADMSG;
		return -1;
	}
	memcpy(&number, NLMSG_DATA(message), sizeof(number));
	if (number < 0)
		take_words(netlink, message);
	errno = -number;
	return number < 0 ? -1 : 0;
}

/* Take in a datagram's messages. Returns 1: there are more to come; 0: that was the last; -1 with
 * errno. *interrupted is set when what was dumped changed meanwhile. */
static int take_messages(struct nb_netlink *netlink, const unsigned char *data, int length,
			 int *interrupted)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)data;

	for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
		if (message->nlmsg_seq != SEQUENCE)
			continue;
		*interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE)
			return take_end(netlink, message);
		nb_put(&netlink->answers, message, message->nlmsg_len);
		pad(&netlink->answers);
	}
	if (length <= 0)
		return 1;
	errno = EBADMSG;
	return -1;
}

static int ask_once(struct nb_netlink *netlink, unsigned char *data)
{
	int fd = open_socket(netlink->protocol), more = -1, interrupted = 0, number;

	if (fd < 0)
		return -1;
	netlink->answers.used = 0;
	if (!send_request(fd, &netlink->request))
		more = 1;
	while (more > 0) {
		ssize_t got = receive(fd, data);

		more = got < 0 ? -1 : take_messages(netlink, data, (int)got, &interrupted);
	}
	number = errno;
	close(fd);
	errno = number;
	return more ? more : interrupted;
}

int nb_netlink_ask(struct nb_netlink *netlink)
{
	unsigned char *data = netlink->request.failed ? NULL : malloc(DATAGRAM);
	int status = data ? INTERRUPTED : -1;

	errno = ENOMEM;
	for (int i = 0; i < DUMPS_MAX && status == INTERRUPTED; i++)
		status = ask_once(netlink, data);
	free(data);
	if (status == INTERRUPTED)
		errno = EBUSY;
	if (netlink->answers.failed)
		errno = ENOMEM;
	return status || netlink->answers.failed ? -1 : 0;
}

int nb_netlink_next(const struct nb_netlink *netlink, size_t *at, uint16_t type, void *head,
		    size_t head_length, const void **attributes, size_t *length)
{
	const size_t begin = NLMSG_HDRLEN + NLMSG_ALIGN(head_length);

	while (*at < netlink->answers.used) {
		const struct nlmsghdr *message = (const void *)(netlink->answers.data + *at);

		*at += NLMSG_ALIGN(message->nlmsg_len); /* checked when it was taken in */
		if (message->nlmsg_type != type || message->nlmsg_len < begin)
			continue;
		memcpy(head, NLMSG_DATA(message), head_length);
		*attributes = (const char *)message + begin;
		*length = message->nlmsg_len - begin;
		return 1;
	}
	return 0;
}

const void *nb_attribute(const void *attributes, size_t length, uint16_t type, size_t *size)
{
	const struct rtattr *at = attributes;
	int left = (int)length;

	for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) == type) {
			*size = RTA_PAYLOAD(at);
			return RTA_DATA(at);
		}
	return NULL;
}

int nb_attribute_copy(const void *attributes, size_t length, uint16_t type, void *value,
		      size_t size)
{
	size_t there = 0;
	const void *data = nb_attribute(attributes, length, type, &there);

	if (!data || there < size)
		return 0;
	memcpy(value, data, size);
	return 1;
}

int nb_interface(const char *name, const char *operation, struct nb_error *error)
{
	char remedy[64], own[IFNAMSIZ];
	unsigned int index = 0;

	if (!name[0] || strlen(name) >= IFNAMSIZ || strpbrk(name, "/: \t\n"))
		return nb_fail(error, NB_ERR_REQUEST, operation,
			       "give an interface name such as eth0",
			       "'%.40s' is not the name of an interface", name);
	index = if_nametoindex(name);
	if (index && if_indextoname(index, own) && strcmp(own, name) != 0) {
		/* What is allowed, and what is looked at around a change, goes by that name. */
		snprintf(remedy, sizeof(remedy), "write %s", own);
		return nb_fail(error, NB_ERR_REQUEST, operation, remedy,
			       "'%s' is another name of the interface %s", name, own);
	}
	if (index && index <= INT32_MAX)
		return (int)index;
	if (errno != ENODEV && errno != ENXIO)
		return nb_fail_errno(error, operation, "look at `dmesg` on that host",
				     "looking for interface %s", name);
	nb_fail(error, NB_ERR_SYSTEM, operation, "see `ip link` there",
		"no interface '%s' on this host", name);
	if (error)
		error->error = ENODEV;
	return -NB_ERR_SYSTEM;
}
