/* SPDX-License-Identifier: MIT */
#include "export_reader.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NOBODY = 65534 };

/* Whether users other than the owner get to a file, through all folders above it. */
static int is_open_to_all(const char *file)
{
	char path[4096];
	struct stat found;

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path) || stat(path, &found) ||
	    !(found.st_mode & S_IROTH))
		return 0;
	for (char *end = strrchr(path, '/'); end && end > path; end = strrchr(path, '/')) {
		*end = 0;
		if (stat(path, &found) || !(found.st_mode & S_IXOTH))
			return 0;
	}
	return 1;
}

struct nb_export_reader nb_export_reader(const struct nb_export_target *target)
{
	struct nb_export_reader nobody = { NOBODY, NOBODY };
	struct stat found;

	if (stat(target->file, &found) || (!found.st_uid && is_open_to_all(target->file)))
		return nobody;
	return (struct nb_export_reader){ found.st_uid, found.st_gid };
}
