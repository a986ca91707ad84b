/* SPDX-License-Identifier: MIT */
/* The hellos that worker and controller exchange first; nb_fill_hello is in netbench.h. */
#ifndef NB_HELLO_H
#define NB_HELLO_H

#include "fail.h"
#include "wire.h"

/* The payload of this worker's hello: struct nb_hello, then its rows. */
void nb_hello_write(struct nb_writer *writer);
/* Whether a controller's hello fits this worker: 0, or a negative code with the error filled. */
int nb_hello_check(const unsigned char *payload, size_t length, struct nb_error *error);

#endif
