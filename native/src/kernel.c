/* SPDX-License-Identifier: MIT */
/* What the kernel that runs can do, by filesystems(5) and the indices of its modules
 * (modules.dep(5), modules.builtin). */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* The last word of a line of /proc/filesystems, or of a line of an index the module: of
 * "kernel/fs/nfs/nfs.ko.xz: kernel/..." nfs. */
static int names(char *line, const char *wanted, int is_index)
{
	char *word;

	line[strcspn(line, is_index ? ":\n" : "\n")] = 0;
	word = strrchr(line, is_index ? '/' : '\t');
	word = word ? word + 1 : line;
	if (is_index)
		return !strncmp(word, wanted, strlen(wanted)) &&
		       !strncmp(word + strlen(wanted), ".ko", 3);
	return !strcmp(word, wanted);
}

static int has_line(const char *path, const char *wanted, int is_index)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	while (file && !found && getline(&line, &room, file) > 0)
		found = names(line, wanted, is_index);
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
	int found = has_line("/proc/filesystems", filesystem, 0);

	for (size_t i = 0; !found && i < sizeof(indices) / sizeof(*indices) && !uname(&name); i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s", name.release, indices[i]);
		found = has_line(path, module, 1);
	}
	return found;
}
