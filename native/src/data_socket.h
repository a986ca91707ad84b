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

/* Set a socket's buffer and its congestion control as a job asks. 0, or a negative code. */
int nb_data_options(int fd, const struct nb_job *job, struct nb_error *error);
/* A TCP socket that does not block, with the options of the job. Returns it or a negative code. */
int nb_data_socket(const struct nb_job *job, int family, struct nb_error *error);

/* The receiver's data port: connections are pending until they have sent the token. */

enum { NB_PENDING_MAX = 64 };

/* A connection that has not sent its token yet. */
struct nb_pending {
	int socket;
	uint64_t deadline;
	size_t got;
	unsigned char handshake[NB_HANDSHAKE_BYTES];
};

struct nb_listener {
	int socket; /* -1: closed */
	uint64_t port;
	uint64_t rejected_connections;
	struct nb_pending pending[NB_PENDING_MAX];
	size_t pending_count;
};

/* A socket that listens to the first free port of the job's range, or to any; <0: an error. */
int nb_listen_in_range(const struct nb_job *job, struct nb_error *error);
/* Whether a connection may come from there: from the sender's address, where the job names it. */
int nb_is_sender(const union nb_address *from, const struct nb_job *job);

int nb_listener_open(struct nb_listener *listener, const struct nb_job *job,
		     struct nb_error *error);
/* Accept the connections that wait in the kernel's queue, as many as fit; those that do not come
 * from the sender's address are rejected. */
void nb_listener_accept(struct nb_listener *listener, const struct nb_job *job);
/* Read from the pending connection `index`. Fills *stream and returns its socket once its token is
 * right; -1: not yet, or the connection was rejected. */
int nb_listener_read(struct nb_listener *listener, size_t index, const struct nb_job *job,
		     uint32_t *stream);
/* Reject the pending connections whose deadline has passed. */
void nb_listener_expire(struct nb_listener *listener, uint64_t now);
void nb_listener_close(struct nb_listener *listener);

#endif
