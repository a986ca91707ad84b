/* SPDX-License-Identifier: MIT */
/* What listening and connecting share: addresses, the handshake, and sockets with the options of
 * the job. */
#ifndef NB_DATA_SOCKET_H
#define NB_DATA_SOCKET_H

#include <netinet/in.h>

#include "fail.h"
#include "job.h"

/* What a data connection begins with: the sender writes the token and the number of the stream, the
 * receiver answers with one byte. */
enum {
	NB_HANDSHAKE_BYTES = NB_TOKEN_BYTES + 8, /* token, u32 big-endian stream, u32 0 */
	NB_ACCEPTED = 'k',
};

union nb_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* An address written as numbers. Returns its length; 0: it is none. */
socklen_t nb_address_parse(union nb_address *address, const char *text, uint64_t port);
/* Streams that are connected at the same time: a receiver has room for more (NB_PENDING_MAX). */
enum { NB_CONNECTING = 32 };

/* Connect `count` streams from `first` on to the job's receiver and send the token, in the round
 * trips that one takes. 0 with their sockets, or a negative code. */
int nb_connect(const struct nb_job *job, uint32_t first, uint32_t count, int *sockets,
	       struct nb_error *error);

/* A TCP socket that does not block, with the options of the job. Returns it or a negative code. */
int nb_data_socket(const struct nb_job *job, int family, struct nb_error *error);

#endif
