/* SPDX-License-Identifier: MIT */
/* Data connections: listening with a token at the listener, connecting, socket options and what the
 * kernel made of them. */
#ifndef NB_LISTENER_H
#define NB_LISTENER_H

#include "job.h"

enum { NB_PENDING_MAX = 64, NB_GREETING_BYTES = NB_TOKEN_BYTES + 8 };

/* A connection that has not shown its token yet. */
struct nb_pending {
	int socket;
	uint64_t deadline;
	size_t got;
	unsigned char greeting[NB_GREETING_BYTES];
};

struct nb_listener {
	int socket; /* listening; -1: shut */
	uint64_t port;
	uint64_t rejected_connections;
	struct nb_pending pending[NB_PENDING_MAX];
	size_t pending_count;
};

int nb_listener_open(struct nb_listener *listener, const struct nb_job *job,
		     struct nb_error *error);
/* Accept who knocks, as many as fit. */
void nb_listener_accept(struct nb_listener *listener);
/* Read from a pending. Fills *stream and returns its socket once its token is right; -1: not yet,
 * or a stranger who was sent away.
 */
int nb_listener_read(struct nb_listener *listener, size_t pending, const struct nb_job *job,
		     uint32_t *stream);
/* Send away who is late. */
void nb_listener_expire(struct nb_listener *listener, uint64_t now);
void nb_listener_close(struct nb_listener *listener);

/* Connect stream `index` to the job's receiver and show the token. Returns the socket or a negative
 * code. */
int nb_connect(const struct nb_job *job, uint32_t index, struct nb_error *error);

#endif
