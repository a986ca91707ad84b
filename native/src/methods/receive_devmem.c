/* SPDX-License-Identifier: MIT */
/*
 * Device memory TCP (kernel: networking/devmem.rst): a queue of a NIC writes packets into memory of
 * another device. The probe alone is here: it says how far this kernel gets.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../method.h"
#include "uring_abi.h"

/* A kernel that has it looks at the tokens, and finds none. */
static int probe(char *why, size_t room)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		snprintf(why, room, "no TCP socket: %s", strerror(errno));
		return -1;
	}
	if (setsockopt(fd, SOL_SOCKET, NB_SO_DEVMEM_DONTNEED, NULL, 0) && errno == ENOPROTOOPT)
		snprintf(why, room,
			 "the kernel refuses SO_DEVMEM_DONTNEED (%s); Linux 6.12 or later with "
			 "CONFIG_NET_DEVMEM takes it",
			 strerror(errno));
	else
		snprintf(
			why, room,
			"this kernel has it (SO_DEVMEM_DONTNEED); it needs a NIC with header split "
			"that takes a dma-buf, which netbench cannot set up yet");
	close(fd);
	return -1;
}

const struct nb_method nb_receive_devmem = {
	.name = "devmem",
	.about = "device memory TCP: only looked for, with the kernel's reason",
	.flags = NB_DELIVERS | NB_TO_DISCARD,
	.probe = probe,
};
