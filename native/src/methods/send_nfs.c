/* SPDX-License-Identifier: MIT */
/* The server's side of receive_nfs.c: the kernel sends. The worker brings the file into the page
 * cache and reads the meters. */
#include <poll.h>
#include <stdio.h>

#include "../method.h"
#include "../proc_text.h"

static int probe(char *why, size_t room)
{
	if (nb_kernel_has("nfsd", "nfsd"))
		return 0;
	snprintf(why, room,
		 "this kernel has no NFS server (CONFIG_NFSD, CONFIG_NFSD_V4): the module nfsd is "
		 "not there");
	return -1;
}

static ssize_t step(struct nb_flow *flow, size_t most)
{
	enum { LOOK_MS = 20 };

	(void)flow;
	(void)most;
	poll(NULL, 0, LOOK_MS);
	return 1;
}

const struct nb_method nb_send_nfs = {
	.name = "nfs",
	.about = "nothing by itself: the kernel's NFS server sends what the receiver reads "
		 "(setting nfs)",
	.flags = NB_NO_DATA | NB_FETCHES | NB_FROM_FILE,
	.probe = probe,
	.step = step,
};
