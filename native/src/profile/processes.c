/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPINGS_MAX = 1024, LINE = 4608 };

static FILE *open_proc(uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return fopen(path, "re");
}

static void read_name(struct nb_process *process)
{
	FILE *file = process->pid ? open_proc(process->pid, "comm") : NULL;

	snprintf(process->name, sizeof(process->name), process->pid ? "[exited]" : "swapper");
	if (!file)
		return;
	if (fgets(process->name, sizeof(process->name), file))
		process->name[strcspn(process->name, "\n")] = 0;
	fclose(file);
}

static void add_mapping(struct nb_process *process, const struct nb_mapping *mapping)
{
	struct nb_mapping *more;

	if (process->count == MAPPINGS_MAX)
		return;
	more = realloc(process->mappings, (process->count + 1) * sizeof(*more));
	if (!more)
		return;
	process->mappings = more;
	more += process->count;
	*more = *mapping;
	more->name = strdup(mapping->name);
	process->count += more->name != NULL;
}

/* Lines of maps, proc_pid_maps(5): "begin-end perms offset device inode   path". */
static void read_mappings(struct nb_process *process)
{
	FILE *file = process->pid ? open_proc(process->pid, "maps") : NULL;
	char line[LINE], permissions[8];
	struct nb_mapping mapping;
	int path;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		path = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n",
			   &mapping.begin, &mapping.end, permissions, &mapping.offset, &path) < 4)
			continue;
		mapping.name = path && line[path] ? line + path : "[anonymous]";
		if (permissions[2] == 'x')
			add_mapping(process, &mapping);
	}
	if (file)
		fclose(file);
}

size_t nb_process_index(struct nb_processes *processes, uint32_t pid)
{
	struct nb_process *made;

	for (size_t i = 0; i < processes->count; i++)
		if (processes->processes[i].pid == pid)
			return i;
	if (processes->count == processes->room) {
		size_t room = processes->room ? 2 * processes->room : 64;

		made = room > NB_PROCESSES_MAX
			       ? NULL
			       : realloc(processes->processes, room * sizeof(*made));
		if (!made)
			return NB_PROCESSES_MAX;
		processes->processes = made;
		processes->room = room;
	}
	made = &processes->processes[processes->count];
	*made = (struct nb_process){ .pid = pid };
	read_name(made);
	read_mappings(made);
	return processes->count++;
}

const struct nb_mapping *nb_process_mapping(const struct nb_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->count; i++)
		if (address >= process->mappings[i].begin && address < process->mappings[i].end)
			return &process->mappings[i];
	return NULL;
}

void nb_processes_free(struct nb_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		for (size_t j = 0; j < processes->processes[i].count; j++)
			free(processes->processes[i].mappings[j].name);
		free(processes->processes[i].mappings);
	}
	free(processes->processes);
	*processes = (struct nb_processes){ 0 };
}
