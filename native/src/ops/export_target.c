/* SPDX-License-Identifier: MIT */
#include "export_target.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NOBODY = 65534 };

struct nb_export_target nb_export_target(const struct nb_target *target)
{
	return (struct nb_export_target){ .folder = nb_target_word(target, 0),
					  .address = nb_target_word(target, 1),
					  .clients = nb_target_word(target, 2),
					  .file = nb_target_word(target, 3) };
}

size_t nb_export_next_client(const char **at, const char **client)
{
	size_t length;

	*client = *at + strspn(*at, " ");
	length = strcspn(*client, " ");
	*at = *client + length;
	return length;
}

void nb_export_escape(char *to, const char *path, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (strchr(" \t\n\\", path[i]))
			to += sprintf(to, "\\%03o", (unsigned char)path[i]);
		else
			*to++ = path[i];
	}
	*to = 0;
}

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
