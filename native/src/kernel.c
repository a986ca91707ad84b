/* SPDX-License-Identifier: MIT */
/* What the kernel that runs can do, by filesystems(5) and the indices of its modules
 * (modules.dep(5), modules.builtin). */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

typedef int (*matches)(char *line, const char *wanted);

static int names(char *line, const char *filesystem)
{
	char *word = strrchr(line, '\t');

	return !strcmp(word ? word + 1 : line, filesystem);
}

/* "kernel/fs/nfs/nfs.ko.xz: kernel/..." is the module nfs. */
static int holds(char *line, const char *module)
{
	char *base;

	line[strcspn(line, ":")] = 0;
	base = strrchr(line, '/');
	base = base ? base + 1 : line;
	return !strncmp(base, module, strlen(module)) && !strncmp(base + strlen(module), ".ko", 3);
}

static int has_line(const char *path, matches match, const char *wanted)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	while (file && !found && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = 0;
		found = match(line, wanted);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

int nb_kernel_has(const char *filesystem, const char *module)
{
	static const char *const indices[] = { "modules.dep", "modules.builtin" };
	struct utsname name;
	char path[160];
	int found = has_line("/proc/filesystems", names, filesystem);

	for (size_t i = 0; !found && i < sizeof(indices) / sizeof(*indices) && !uname(&name); i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s", name.release, indices[i]);
		found = has_line(path, holds, module);
	}
	return found;
}
