/* SPDX-License-Identifier: MIT */
/* What a network namespace counts: bytes and packets of one interface, packets of IP, segments of
 * TCP. */
#ifndef NB_LINK_COUNTS_H
#define NB_LINK_COUNTS_H

#include "../fail.h"
#include "../proc_text.h"

enum {
	NB_LINK_RX_BYTES,
	NB_LINK_RX_PACKETS,
	NB_LINK_TX_BYTES,
	NB_LINK_TX_PACKETS,
	NB_IP_OUT_REQUESTS,
	NB_IP_IN_RECEIVES,
	NB_IP_IN_DELIVERS,
	NB_IP_OUT_OCTETS,
	NB_IP_IN_OCTETS,
	NB_IP_IN_NO_ECT,
	NB_IP_IN_ECT,
	NB_TCP_OUT_SEGMENTS,
	NB_TCP_IN_SEGMENTS,
	NB_LINK_COUNTS
};

struct nb_link_counts {
	const char *interface; /* "": none is counted */
	int ip6;	       /* count packets of IPv6 */
	struct nb_proc_text dev;
	struct nb_proc_text snmp;
	struct nb_proc_text more; /* netstat, or snmp6 */
};

int nb_link_counts_open(struct nb_link_counts *counts, const char *interface, int ip6,
			struct nb_error *error);
/* Fill NB_LINK_COUNTS numbers. */
void nb_link_counts_read(struct nb_link_counts *counts, uint64_t *numbers);
void nb_link_counts_close(struct nb_link_counts *counts);
/* The interrupts of the interface's device: how many there are; 0: it has none of its own. */
size_t nb_link_irqs(const char *interface, unsigned int *irqs, size_t room);

#endif
