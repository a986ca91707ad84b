/* SPDX-License-Identifier: MIT */
/*
 * Zero-copy receive of io_uring(7) (kernel: networking/iou-zcrx.rst): a queue of a NIC whose driver
 * splits headers from data writes packets into the user's memory. The probe alone is here: it asks
 * for a queue of each interface, and no NIC of netbench's lab has one to lend.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../method.h"
#include "nic_question.h"
#include "uring.h"

enum { ENTRIES = 8, REFILL_BYTES = 65536 };

/* The area of memory that packets would be written into is none. The kernel looks at the interface
 * before it looks at that, and at that before it touches the queue (from Linux 6.16 on; 6.15 looks
 * at the area first). */
static int ask(int ring, unsigned int interface, char *words, size_t room)
{
	void *refill = mmap(NULL, REFILL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	struct nb_io_uring_zcrx_area_reg area = { 0 };
	struct nb_io_uring_region_desc region = { .user_addr = (uintptr_t)refill,
						  .size = REFILL_BYTES,
						  .flags = NB_IORING_MEM_REGION_TYPE_USER };
	struct nb_io_uring_zcrx_ifq_reg queue = { .if_idx = interface,
						  .rq_entries = ENTRIES,
						  .area_ptr = (uintptr_t)&area,
						  .region_ptr = (uintptr_t)&region };
	int error;

	(void)words;
	(void)room;
	if (refill == MAP_FAILED)
		return errno;
	error = syscall(SYS_io_uring_register, ring, NB_IORING_REGISTER_ZCRX_IFQ, &queue, 1)
			? errno
			: EFAULT;
	munmap(refill, REFILL_BYTES);
	return error;
}

static int probe(char *why, size_t room)
{
	static const struct nb_uring_operation operations[] = { { NB_IORING_OP_RECV_ZC,
								  "IORING_OP_RECV_ZC", "6.15" } };
	static const struct nb_nic_question question = { "this kernel has IORING_OP_RECV_ZC",
							 "IORING_REGISTER_ZCRX_IFQ", EFAULT, ask };
	struct io_uring_params params = { .flags = IORING_SETUP_SINGLE_ISSUER |
						   IORING_SETUP_DEFER_TASKRUN |
						   IORING_SETUP_CQE32 };
	int ring;

	if (nb_uring_probe(operations, NB_LENGTH(operations), why, room))
		return -1;
	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring < 0) {
		snprintf(why, room, "io_uring_setup with IORING_SETUP_CQE32: %s", strerror(errno));
		return -1;
	}
	nb_ask_nics(&question, ring, why, room);
	close(ring);
	return -1;
}

const struct nb_method nb_receive_uring_zc = {
	.name = "uring_zc",
	.about = "io_uring(7) zero-copy receive (zcrx): only looked for, with the kernel's reason",
	.flags = NB_DELIVERS | NB_TO_DISCARD,
	.probe = probe,
};
