/* SPDX-License-Identifier: MIT */
#ifndef NB_KERNEL_H
#define NB_KERNEL_H

/* Whether the kernel has a file system, or a module of this name that provides it. */
int nb_kernel_has(const char *filesystem, const char *module);

#endif
