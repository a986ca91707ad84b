/* SPDX-License-Identifier: MIT */
#include "export_target.h"

#include <stdio.h>
#include <string.h>

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
