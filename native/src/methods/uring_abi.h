/* SPDX-License-Identifier: MIT */
/*
 * What of the kernel's io_uring and devmem interfaces the headers of Debian 12 (Linux 6.1) lack,
 * each with the kernel that brought it. Names are the kernel's own with NB_ before them, so newer
 * headers do not clash. The rest comes from linux/io_uring.h.
 */
#ifndef NB_URING_ABI_H
#define NB_URING_ABI_H

#include <linux/io_uring.h>

enum {
	NB_SO_DEVMEM_DONTNEED = 80,	  /* Linux 6.12, asm-generic/socket.h */
	NB_IORING_OP_RECV_ZC = 58,	  /* Linux 6.15 */
	NB_IORING_REGISTER_ZCRX_IFQ = 32, /* Linux 6.15 */
};

#endif
