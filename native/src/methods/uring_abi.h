/* SPDX-License-Identifier: MIT */
/*
 * What of the kernel's io_uring and devmem interfaces the headers of Debian 12 (Linux 6.1) lack,
 * each with the kernel that brought it. Names are the kernel's own with NB_ before them, so newer
 * headers do not clash. The rest comes from linux/io_uring.h.
 */
#ifndef NB_URING_ABI_H
#define NB_URING_ABI_H

#include <linux/io_uring.h>
#include <stdint.h>

enum {
	NB_SO_DEVMEM_DONTNEED = 80,	    /* Linux 6.12, asm-generic/socket.h */
	NB_IORING_OP_RECV_ZC = 58,	    /* Linux 6.15 */
	NB_IORING_REGISTER_ZCRX_IFQ = 32,   /* Linux 6.15 */
	NB_IORING_MEM_REGION_TYPE_USER = 1, /* Linux 6.13 */
};

/* Linux 6.12, linux/netdev.h: the family "netdev" of generic netlink */
enum {
	NB_NETDEV_CMD_BIND_RX = 13,
	NB_NETDEV_A_DMABUF_IFINDEX = 1,
	NB_NETDEV_A_DMABUF_QUEUES = 2,
	NB_NETDEV_A_DMABUF_FD = 3,
	NB_NETDEV_A_QUEUE_ID = 1,
	NB_NETDEV_A_QUEUE_TYPE = 3, /* 0: receive */
};

/* Linux 6.13, linux/io_uring.h */
struct nb_io_uring_region_desc {
	uint64_t user_addr;
	uint64_t size;
	uint32_t flags;
	uint32_t id;
	uint64_t mmap_offset;
	uint64_t reserved[4];
};

/* Linux 6.15, linux/io_uring.h */
struct nb_io_uring_zcrx_area_reg {
	uint64_t addr;
	uint64_t len;
	uint64_t rq_area_token;
	uint32_t flags;
	uint32_t dmabuf_fd;
	uint64_t reserved[2];
};

struct nb_io_uring_zcrx_ifq_reg {
	uint32_t if_idx;
	uint32_t if_rxq;
	uint32_t rq_entries;
	uint32_t flags;
	uint64_t area_ptr;
	uint64_t region_ptr;
	uint32_t offsets[8];
	uint32_t zcrx_id;
	uint32_t rx_buf_len;
	uint64_t reserved[3];
};

#endif
