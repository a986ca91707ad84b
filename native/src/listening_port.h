/* SPDX-License-Identifier: MIT */
/* Whether a program of this host listens on a port. */
#ifndef NB_LISTENING_PORT_H
#define NB_LISTENING_PORT_H

#include <stdint.h>

/* Whether a TCP socket of this network namespace listens on the port, on whatever address. Nothing
 * connects to it: a server may serve one connection only. */
int nb_port_listens(uint64_t port);

#endif
