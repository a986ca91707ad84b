/* SPDX-License-Identifier: MIT */
#include "proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { ROOM = 16 << 20 }; /* pages that no text comes to are never touched */

/* A seq_file gives a page or so a call. */
static ssize_t read_all(const struct nb_proc_text *file)
{
	size_t used = 0;
	ssize_t got;

	while ((got = pread(file->fd, file->text + used, file->room - 1 - used, (off_t)used)) > 0)
		used += (size_t)got;
	if (got < 0)
		return -1;
	if (used == file->room - 1) {
		errno = E2BIG;
		return -1;
	}
	file->text[used] = 0;
	return (ssize_t)used;
}

int nb_proc_open(struct nb_proc_text *file, const char *path)
{
	*file = (struct nb_proc_text){ .fd = open(path, O_RDONLY | O_CLOEXEC),
				       .text = malloc(ROOM),
				       .room = ROOM };
	return file->fd < 0 || !file->text || read_all(file) < 0 ? -1 : 0;
}

char *nb_proc_read(struct nb_proc_text *file)
{
	return file->fd >= 0 && read_all(file) >= 0 ? file->text : NULL;
}

void nb_proc_close(struct nb_proc_text *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->text);
	*file = (struct nb_proc_text){ .fd = -1 };
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

int nb_proc_number(char **at, int base, uint64_t *number)
{
	char *from = *at;
	uint64_t value = 0;

	while (*from == ' ' || *from == '\t')
		from++;
	if (digit_of(*from) >= base)
		return 0;
	for (; digit_of(*from) < base; from++)
		value = value * (uint64_t)base + (uint64_t)digit_of(*from);
	*at = from;
	*number = value;
	return 1;
}

char *nb_proc_next_line(char *at)
{
	at = strchr(at, '\n');
	return at && at[1] ? at + 1 : NULL;
}

ssize_t nb_read_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), number;
	ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);

	number = errno;
	if (fd >= 0)
		close(fd);
	errno = number;
	text[length > 0 ? length : 0] = 0;
	return length;
}

int nb_kernel_has(const char *filesystem, const char *folder)
{
	char text[4096], line[40], path[160];
	struct utsname name;

	snprintf(line, sizeof(line), "\t%s\n", filesystem);
	if (nb_read_file("/proc/filesystems", text, sizeof(text)) > 0 && strstr(text, line))
		return 1;
	if (uname(&name))
		return 0;
	snprintf(path, sizeof(path), "/lib/modules/%s/kernel/fs/%s", name.release, folder);
	return !access(path, F_OK);
}
