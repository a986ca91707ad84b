/* SPDX-License-Identifier: MIT */
/*
 * Device memory TCP (kernel: networking/devmem.rst): a queue of a NIC writes packets into memory of
 * another device. The probe alone is here: it asks whether sockets know such memory, and then for a
 * queue of each interface.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../method.h"
#include "../ops/netlink.h"
#include "nic_question.h"
#include "uring_abi.h"

/* The memory, a dma-buf, is none: the kernel looks at the interface first, or at that (Linux 6.12),
 * and never gets as far as the queue. */
static int ask(int family, unsigned int interface, char *words, size_t room)
{
	static const struct genlmsghdr head = { .cmd = NB_NETDEV_CMD_BIND_RX, .version = 1 };
	/* Two attributes in one: the first queue that receives. */
	static const struct {
		struct rtattr id_head;
		uint32_t id;
		struct rtattr type_head;
		uint32_t type;
	} queue = { .id_head = { RTA_LENGTH(4), NB_NETDEV_A_QUEUE_ID },
		    .type_head = { RTA_LENGTH(4), NB_NETDEV_A_QUEUE_TYPE } };
	struct nb_netlink netlink;
	uint32_t none = UINT32_MAX;
	int error;

	nb_netlink_begin(&netlink, (uint16_t)family, 0, &head, sizeof(head));
	netlink.protocol = NETLINK_GENERIC;
	nb_netlink_put(&netlink, NB_NETDEV_A_DMABUF_IFINDEX, &interface, sizeof(interface));
	nb_netlink_put(&netlink, NB_NETDEV_A_DMABUF_QUEUES | NLA_F_NESTED, &queue, sizeof(queue));
	nb_netlink_put(&netlink, NB_NETDEV_A_DMABUF_FD, &none, sizeof(none));
	error = nb_netlink_ask(&netlink) ? errno : EBADF;
	snprintf(words, room, "%s", netlink.why);
	nb_netlink_free(&netlink);
	return error;
}

/* A kernel that has it looks at the tokens, and finds none. */
static int sockets_know_it(char *why, size_t room)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), known;

	if (fd < 0) {
		snprintf(why, room, "no TCP socket: %s", strerror(errno));
		return 0;
	}
	known = !setsockopt(fd, SOL_SOCKET, NB_SO_DEVMEM_DONTNEED, NULL, 0) || errno != ENOPROTOOPT;
	if (!known)
		snprintf(why, room,
			 "the kernel refuses SO_DEVMEM_DONTNEED (%s); Linux 6.12 or later with "
			 "CONFIG_NET_DEVMEM takes it",
			 strerror(errno));
	close(fd);
	return known;
}

static int probe(char *why, size_t room)
{
	static const struct nb_nic_question question = { "this kernel has SO_DEVMEM_DONTNEED",
							 "netlink's netdev bind-rx", EBADF, ask };
	int family;

	if (!sockets_know_it(why, room))
		return -1;
	family = nb_netlink_family("netdev");
	if (family)
		nb_ask_nics(&question, family, why, room);
	else
		snprintf(why, room, "the kernel has no family 'netdev' of generic netlink: %s",
			 strerror(errno));
	return -1;
}

const struct nb_method nb_receive_devmem = {
	.name = "devmem",
	.about = "device memory TCP: only looked for, with the kernel's reason",
	.flags = NB_DELIVERS | NB_TO_DISCARD,
	.probe = probe,
};
