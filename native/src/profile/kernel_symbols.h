/* SPDX-License-Identifier: MIT */
/* The kernel's functions by address, as /proc/kallsyms has them: modules and BPF programs
 * included. */
#ifndef NB_KERNEL_SYMBOLS_H
#define NB_KERNEL_SYMBOLS_H

#include "../fail.h"

struct nb_kernel_symbol {
	uint64_t address;
	const char *name; /* behind a blank its module, as [module] */
	char type;	  /* as nm(1) has it */
};

struct nb_kernel_symbols {
	char *text; /* that the names are in */
	struct nb_kernel_symbol *symbols;
	size_t count; /* 0: this account does not see them (kernel.kptr_restrict) */
};

/* Read them; to be freed in either case. 0, or a negative code with the error filled. */
int nb_kernel_symbols_read(struct nb_kernel_symbols *symbols, const char *path,
			   struct nb_error *error);
void nb_kernel_symbols_free(struct nb_kernel_symbols *symbols);
/* The function that an address is in, or NULL. */
const struct nb_kernel_symbol *nb_kernel_symbol(const struct nb_kernel_symbols *symbols,
						uint64_t address);

#endif
