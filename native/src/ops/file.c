/* SPDX-License-Identifier: MIT */
/* Files of /proc and /sys, and what is in their folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "around.h"

extern const struct nb_op nb_op_file;

static int get_file(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	int fd = open(target->words, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char block[BUFSIZ];
	ssize_t got = fd < 0 ? -1 : 1;
	int is_text = 1, status = 0;

	while (got > 0) {
		do
			got = read(fd, block, sizeof(block));
		while (got < 0 && errno == EINTR);
		if (got > 0)
			fwrite(block, 1, (size_t)got, text);
		is_text = is_text && (got < 0 || !memchr(block, 0, (size_t)got)) &&
			  ftell(text) < NB_OP_TEXT;
		got = is_text ? got : 0;
	}
	if (got < 0)
		status = nb_fail_errno(
			error, "read file",
			"it does not exist on this host, or this user may not read it", "%s",
			target->words);
	if (fd >= 0)
		close(fd);
	/* A part of it would be restored in place of the whole. */
	return status || is_text ? status
				 : nb_fail(error, NB_ERR_UNSUPPORTED, "read file",
					   "name a file of /proc or /sys",
					   "%s is not a text of less than %d bytes", target->words,
					   NB_OP_TEXT - 1);
}

static int write_whole(const char *path, const char *value, size_t size, struct nb_error *error)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return nb_fail_errno(error, "write file",
				     "run as root (a container has /proc/sys read-only), or leave "
				     "this setting out",
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
	char *now = nb_op_read(&nb_op_file, target, NULL);
	int status = nb_lasting_check_file(target->words, value, error);

	if (!status && now) /* which undoing it writes */
		status = nb_lasting_check_file(target->words, now, error);
	free(now);
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
	char *now = nb_op_read(&nb_op_file, target, NULL);
	int has = now && strcmp(now, text) != 0 && !strncmp(now, text, length);

	free(now);
	return has;
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

static int get_list(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct dirent **entries;
	int count = scandir(target->words, &entries, is_entry, alphasort);

	if (count < 0)
		return nb_fail_errno(error, "list",
				     "it does not exist on this host, or this user may not read it",
				     "%s", target->words);
	for (int i = 0; i < count; i++) {
		fprintf(text, "%s\n", entries[i]->d_name);
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
