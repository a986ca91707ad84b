/* SPDX-License-Identifier: MIT */
/*
 * Zero-copy receive of io_uring(7) (kernel: networking/iou-zcrx.rst): a queue of a NIC whose driver
 * splits headers from data writes packets into the user's memory. The probe alone is here: it says
 * how far this kernel gets, and no NIC of netbench's lab gets further.
 */
#include <stdio.h>

#include "../method.h"
#include "uring.h"

static int probe(char *why, size_t room)
{
	static const struct nb_uring_operation operations[] = { { NB_IORING_OP_RECV_ZC,
								  "IORING_OP_RECV_ZC", "6.15" } };

	if (!nb_uring_probe(operations, NB_LENGTH(operations), why, room))
		snprintf(why, room,
			 "this kernel has it (IORING_OP_RECV_ZC); it needs a NIC with header split "
			 "and a queue of its own, which netbench cannot set up yet");
	return -1;
}

const struct nb_method nb_receive_uring_zc = {
	.name = "uring_zc",
	.about = "io_uring(7) zero-copy receive (zcrx): only looked for, with the kernel's reason",
	.flags = NB_DELIVERS | NB_TO_DISCARD,
	.probe = probe,
};
