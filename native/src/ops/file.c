/* SPDX-License-Identifier: MIT */
/* Files of /proc and /sys, and what is in their folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lasting.h"

static int read_whole(int fd, struct nb_text *text)
{
	ssize_t got = 1;

	while (got > 0 && text->used < text->room - 1) {
		got = read(fd, text->data + text->used, text->room - 1 - text->used);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			text->used += (size_t)got;
	}
	text->data[text->used] = 0;
	return got < 0 ? -1 : 0;
}

static int get_file(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	int fd = open(target->words, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int status = 0;

	if (fd < 0 || read_whole(fd, text))
		status = nb_fail_errno(
			error, "read file",
			"it does not exist on this host, or this user may not read it", "%s",
			target->words);
	if (fd >= 0)
		close(fd);
	/* A part of it would be restored in place of the whole. */
	if (!status && (text->used == text->room - 1 || memchr(text->data, 0, text->used)))
		status = nb_fail(
			error, NB_ERR_UNSUPPORTED, "read file", "name a file of /proc or /sys",
			"%s is not a text of less than %zu bytes", target->words, text->room - 1);
	return status;
}

static int write_whole(const char *path, const char *value, size_t size, struct nb_error *error)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return nb_fail_errno(error, "write file", "run as root, or leave this setting out",
				     "%s", path);
	do /* in one piece: the kernel's files take each write for a value */
		written = write(fd, value, size);
	while (written < 0 && errno == EINTR);
	if (!close(fd) && written == (ssize_t)size)
		return 0;
	return nb_fail_errno(error, "write file",
			     "choose another value: the kernel rejects this one", "'%.*s' to %s",
			     (int)(size < 80 ? size : 80), value, path);
}

static int set_file(const struct nb_target *target, const char *value, struct nb_error *error)
{
	int status = nb_lasting_check_file(target->words, value, error);

	return status ? status : write_whole(target->words, value, strlen(value), error);
}

/* The chosen word of a choice such as "always [madvise] never\n": its length; 0: the text is none.
 */
static size_t chosen(const char *text, const char **word)
{
	size_t line = strcspn(text, "\n"), length = 0, words = 0;

	if (text[line] && text[line + 1])
		return 0;
	for (const char *at = text, *end = text + line; at < end; words++) {
		size_t size = strcspn(at, " \t\n");

		if (size > 2 && at[0] == '[' && at[size - 1] == ']') {
			if (length)
				return 0;
			*word = at + 1;
			length = size - 2;
		}
		at += size + strspn(at + size, " \t");
	}
	return words > 1 ? length : 0;
}

/* Whether a file reads as this text, but for an end of line that the kernel took for a part of the
 * value. */
static int has_one_end_more(const struct nb_target *target, const char *text, size_t length)
{
	char now[256];
	struct nb_text read = { .data = now, .room = sizeof(now) };

	return !get_file(target, &read, NULL) && strcmp(now, text) != 0 &&
	       !strncmp(now, text, length);
}

static int restore_file(const struct nb_target *target, const char *text, struct nb_error *error)
{
	const char *word = text[0] ? text : "\n"; /* nothing at all is no value to the kernel */
	size_t length = chosen(text, &word);
	int status = write_whole(target->words, word, length ? length : strlen(word), error);

	length = length ? 0 : strlen(text);
	if (!status && length && text[length - 1] == '\n' &&
	    has_one_end_more(target, text, length - 1))
		status = write_whole(target->words, text, length - 1, error);
	return status;
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int get_list(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	struct dirent **entries;
	int count = scandir(target->words, &entries, is_entry, alphasort);

	if (count < 0)
		return nb_fail_errno(error, "list",
				     "it does not exist on this host, or this user may not read it",
				     "%s", target->words);
	for (int i = 0; i < count; i++) {
		nb_text_add(text, "%s\n", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

const struct nb_op nb_op_file = {
	.name = "file",
	.about = "read or write a file of /proc or /sys",
	.words = 1,
	.get = get_file,
	.set = set_file,
	.restore = restore_file,
};

const struct nb_op nb_op_list = {
	.name = "list", .about = "names in a folder, sorted", .words = 1, .get = get_list
};
