/* SPDX-License-Identifier: MIT */
/* What the kernel tells about sends with MSG_ZEROCOPY, in a connection's error queue (kernel:
 * networking/msg_zerocopy.rst). */
#ifndef NB_ERRQUEUE_H
#define NB_ERRQUEUE_H

#include <time.h> /* which linux/errqueue.h needs and does not include */

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* Room for one notice with its sender's address, of either family. */
union nb_notice {
	struct cmsghdr first;
	char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
};

/* How many sends a message from the error queue completes, 0 if it is about something else. Sends
 * are numbered with 32 bits that wrap; a notice names the first and the last of a range. *copied:
 * the kernel made a copy after all. Only the first notice of a range has that flag: later ones are
 * merged into it, so a reader that looks seldom counts fewer. */
static inline uint64_t nb_completed(struct msghdr *message, int *copied)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		const struct sock_extended_err *notice =
			(const struct sock_extended_err *)(const void *)CMSG_DATA(at);
		int v4 = at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR;
		int v6 = at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR;

		if ((!v4 && !v6) || at->cmsg_len < CMSG_LEN(sizeof(*notice)))
			continue;
		if (notice->ee_origin != SO_EE_ORIGIN_ZEROCOPY || notice->ee_errno)
			continue;
		*copied = (notice->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0;
		return (uint64_t)(notice->ee_data - notice->ee_info) + 1;
	}
	*copied = 0;
	return 0;
}

#endif
