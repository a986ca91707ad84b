/* SPDX-License-Identifier: MIT */
/* The processes that were sampled: their names, and what is mapped where in them. */
#ifndef NB_PROFILE_PROCESSES_H
#define NB_PROFILE_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

struct nb_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t offset; /* in the file */
	char *name;	 /* a path, or as [vdso] */
};

struct nb_process {
	uint32_t pid;
	char name[32];
	struct nb_mapping *mappings; /* executable ones, in order */
	size_t count;
};

struct nb_processes {
	struct nb_process *processes;
	size_t count;
	size_t room;
};

enum { NB_PROCESSES_MAX = 4096 };

/* The index of a process, whose name and mappings are read when it is first asked for;
 * NB_PROCESSES_MAX where there are too many or no memory. */
size_t nb_process_index(struct nb_processes *processes, uint32_t pid);
/* The mapping that an address is in, or NULL. */
const struct nb_mapping *nb_process_mapping(const struct nb_process *process, uint64_t address);
void nb_processes_free(struct nb_processes *processes);

#endif
