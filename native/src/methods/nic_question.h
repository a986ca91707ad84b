/* SPDX-License-Identifier: MIT */
/*
 * A question to the kernel about each network interface: whether it lends a receive queue to the
 * user. What would make it lend one is left out of the question, so nothing on the host changes.
 */
#ifndef NB_NIC_QUESTION_H
#define NB_NIC_QUESTION_H

#include <stddef.h>

struct nb_nic_question {
	const char *has;  /* what this kernel has, as it was found before */
	const char *name; /* of the request */
	int accepted;	  /* errno that asks for what was left out: all else is accepted */
	/* Ask about one interface; `handle` is the caller's. Returns errno, never 0; fills `words`
	 * with the kernel's own, if it has any. */
	int (*ask)(int handle, unsigned int interface, char *words, size_t room);
};

/* Why no interface of this network namespace lends a queue here, in the kernel's words. */
void nb_ask_nics(const struct nb_nic_question *question, int handle, char *why, size_t room);

#endif
