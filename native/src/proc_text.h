/* SPDX-License-Identifier: MIT */
/* A file of /proc that is read again and again: opened once, into a buffer made with it. */
#ifndef NB_PROC_TEXT_H
#define NB_PROC_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nb_proc_text {
	int fd;	    /* -1: not open */
	char *text; /* with its end */
	size_t room;
};

/* Open the file, make room, and read it once. 0, or -1 with errno. */
int nb_proc_open(struct nb_proc_text *file, const char *path);
/* Read the whole file, without an allocation: its text, or NULL where it could not be read, or has
 * outgrown its room. */
char *nb_proc_read(struct nb_proc_text *file);
void nb_proc_close(struct nb_proc_text *file);
/* The next whole number of this line, decimal or of another base: 1; 0: the line has no more. */
int nb_proc_number(char **at, int base, uint64_t *number);
/* The beginning of the next line, or NULL behind the last. */
char *nb_proc_next_line(char *at);

/* A short file that is read once, with its end: how long it is, at most room - 1; or -1 with errno,
 * and an empty text. */
ssize_t nb_read_file(const char *path, char *text, size_t room);

/* Whether the kernel has a file system, or a folder of that name among its modules of file systems.
 */
int nb_kernel_has(const char *filesystem, const char *folder);

#endif
