/* SPDX-License-Identifier: MIT */
/* Data connections: listening with a token at the door, connecting, socket options and what the
 * kernel made of them. */
#ifndef NB_LINK_H
#define NB_LINK_H

#include "job.h"

enum { NB_GUESTS_MAX = 64, NB_GREETING_BYTES = NB_TOKEN_BYTES + 8 };

/* A connection that has not shown its token yet. */
struct nb_guest {
	int socket;
	uint64_t deadline;
	size_t got;
	unsigned char greeting[NB_GREETING_BYTES];
};

struct nb_door {
	int socket; /* listening; -1: shut */
	uint64_t port;
	uint64_t rejected_connections;
	struct nb_guest guests[NB_GUESTS_MAX];
	size_t guests_count;
};

int nb_door_open(struct nb_door *door, const struct nb_job *job, struct nb_error *error);
/* Accept who knocks, as many as fit. */
void nb_door_accept(struct nb_door *door);
/* Read from a guest. Fills *stream and returns its socket once its token is right; -1: not yet, or
 * a stranger who was sent away.
 */
int nb_door_hear(struct nb_door *door, size_t guest, const struct nb_job *job, uint32_t *stream);
/* Send away who is late. */
void nb_door_expire(struct nb_door *door, uint64_t now);
void nb_door_close(struct nb_door *door);

/* Connect stream `index` to the job's receiver and show the token. Returns the socket or a negative
 * code. */
int nb_connect(const struct nb_job *job, uint32_t index, struct nb_error *error);

#endif
