/* SPDX-License-Identifier: MIT */
#ifndef NB_QDISC_H
#define NB_QDISC_H

#include <stddef.h>

/*
 * Some kinds round the numbers that they are given (codel: times to 1024 ns). Move each number that
 * was aimed at by what it missed (attributes of 4 bytes). Returns whether there is anything to try
 * again.
 */
int nb_qdisc_aim(unsigned char *aim, const unsigned char *wanted, const unsigned char *got,
		 size_t size);

#endif
