/* SPDX-License-Identifier: MIT */
/* The receiver's data port: connections are pending until they have sent the token. */
#ifndef NB_LISTENER_H
#define NB_LISTENER_H

#include "data_socket.h"
#include "fail.h"
#include "job.h"

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

int nb_listener_open(struct nb_listener *listener, const struct nb_job *job,
		     struct nb_error *error);
/* Accept the connections that wait in the kernel's queue, as many as fit; those that do not come
 * from the sender's address are rejected. */
void nb_listener_accept(struct nb_listener *listener, const struct nb_job *job);
/*
 * Read from the pending connection `index`. Fills *stream and returns its socket once its token is
 * right; -1: not yet, or the connection was rejected.
 */
int nb_listener_read(struct nb_listener *listener, size_t index, const struct nb_job *job,
		     uint32_t *stream);
/* Reject the pending connections whose deadline has passed. */
void nb_listener_expire(struct nb_listener *listener, uint64_t now);
void nb_listener_close(struct nb_listener *listener);

#endif
