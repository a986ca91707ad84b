/* SPDX-License-Identifier: MIT */
#ifndef NB_KERNEL_H
#define NB_KERNEL_H

/* Whether the kernel knows a file system, or has a module of this name that brings it when it is
 * asked for. */
int nb_kernel_has(const char *filesystem, const char *module);

#endif
