/* SPDX-License-Identifier: MIT */
/* What a method, a meter or an operation declares about itself; the hello is made of it. */
#ifndef NB_ROWS_H
#define NB_ROWS_H

#include "netbench.h"

/* One option, counter, proof or read-back, as its owner declares it. `offset` and `room` are of
 * options of every run only. */
struct nb_field {
	const char *name;
	const char *about;
	const char *words;
	uint32_t flags;
	uint8_t type; /* 0: NB_COUNT */
	uint8_t unit;
	uint8_t per;
	uint64_t minimum;
	uint64_t maximum; /* 0: no bound */
	size_t offset;
	size_t room; /* of text */
};

#define NB_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A number that could not be read: the controller leaves it out. */
#define NB_MISSING UINT64_MAX

/* Row ids, by what they describe; NB_NO_ROW if there is none. */
uint16_t nb_row_of_option(size_t index);
uint16_t nb_row_of_readback(size_t index);
uint16_t nb_row_of_method(const void *method);
uint16_t nb_row_of_op_argument(size_t index);
uint16_t nb_row_of_proof(const void *method, size_t index);
uint16_t nb_row_of_counter(const void *meter, size_t index);

/* The row with that id, or NULL. */
const struct nb_row *nb_row(uint32_t id);

#endif
