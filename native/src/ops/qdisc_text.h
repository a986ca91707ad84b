/* SPDX-License-Identifier: MIT */
/*
 * Queueing disciplines of an interface (tc(8), linux/pkt_sched.h). A text has one line for each,
 * "root KIND HANDLE OPTIONS" or with its parent in place of `root`: the handle is `default` where
 * the kernel made it by itself, the options are its own bytes in hex, so that any kind can be put
 * back.
 */
#ifndef NB_QDISC_TEXT_H
#define NB_QDISC_TEXT_H

#include <net/if.h>

#include "netlink.h"

enum { NB_QDISC_KIND = IFNAMSIZ };

struct nb_place {
	const char *interface;
	int index;
};

/* The qdisc at the root of an interface. */
struct nb_root {
	char kind[NB_QDISC_KIND]; /* "": there is none */
	uint32_t handle;	  /* 0: the kernel's own */
	unsigned char *options;	  /* to be freed */
	size_t size;
};

int nb_qdisc_place(struct nb_place *place, const struct nb_target *target, struct nb_error *error);
int nb_qdisc_get(const struct nb_target *target, struct nb_text *text, struct nb_error *error);
/* The root that a text describes. */
int nb_qdisc_read(const char *text, struct nb_root *root, struct nb_error *error);
/* What the interface has now, as a text and its root. */
int nb_qdisc_read_now(const struct nb_place *place, struct nb_text *text, struct nb_root *root,
		      struct nb_error *error);
int nb_qdisc_fail_text(const char *text, struct nb_error *error);

/*
 * What depends on a root that another program has set and would be lost with it, or NULL; *status
 * is <0 when it could not be read. `text` is what the interface reads.
 */
const char *nb_qdisc_dependents(const struct nb_place *place, const struct nb_root *root,
				const char *text, int *status, struct nb_error *error);

#endif
