/* SPDX-License-Identifier: MIT */
#include "allow.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 65536, LINE_MAX_BYTES = 1024 };

static const char FOLDER[] = "/etc/netbench", FILE_NAME[] = "/etc/netbench/allow",
		  OPERATION[] = "allow", BLANKS[] = " \t\r";

/* Without a file. Not `nfs`: an export lets other hosts read what only root may read here. */
static const char OF_SUDO[] =
	"setting mtu gso_max_size gro_max_size rings channels coalesce qdisc feature.*\n"
	"setting governor turbo irq_affinity rps busy_poll tcp_metrics\n"
	"sysctl net.\n"
	"meters *\n";

/* A line: its keyword and the words behind it, each with its end. */
struct line {
	unsigned int number;
	char text[LINE_MAX_BYTES];
	size_t length; /* of all words with their ends; 0: a blank line */
};

static const char *const keywords[] = { "setting", "sysctl",  "sysfs",	"interface", "command",
					"boot",	   "profile", "meters", NULL };

static int split(const char *begin, size_t length, struct line *line)
{
	const char *at = begin, *end = begin + length;

	line->length = 0;
	while (at < end) {
		size_t blanks = strspn(at, BLANKS), size;

		at += blanks;
		size = strcspn(at, " \t\r\n");
		if (at >= end || !size || *at == '#')
			break;
		if (line->length + size + 1 >= sizeof(line->text))
			return -1;
		memcpy(line->text + line->length, at, size);
		line->length += size;
		line->text[line->length++] = 0;
		at += size;
	}
	return 0;
}

/* The next line that is not blank: 1; 0: there is none; -1: one that is too long. */
static int next_line(const char **at, struct line *line)
{
	while (**at) {
		size_t length = strcspn(*at, "\n");
		int status = split(*at, length, line);

		line->number++;
		*at += length;
		*at += **at == '\n';
		if (status || line->length)
			return status ? -1 : 1;
	}
	return 0;
}

static const char *next_word(const struct line *line, const char *word)
{
	const char *after = word + strlen(word) + 1;

	return after < line->text + line->length ? after : NULL;
}

static int is_known(const struct line *line)
{
	size_t i = 0;

	while (keywords[i] && strcmp(keywords[i], line->text) != 0)
		i++;
	return keywords[i] && next_word(line, line->text);
}

static int check_lines(const char *text, struct nb_error *error)
{
	struct line line = { 0 };
	int status;

	while ((status = next_line(&text, &line)) > 0 && is_known(&line))
		;
	if (!status)
		return 0;
	return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
		       "begin it with setting, sysctl, sysfs, interface, command, boot, profile or "
		       "meters, and "
		       "write what is allowed behind",
		       "%s:%u is not a line of this file, so nothing is allowed", FILE_NAME,
		       line.number);
}

static int refuse_file(const char *name, const char *why, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
		       "chown root:root /etc/netbench /etc/netbench/allow; chmod go-w "
		       "/etc/netbench /etc/netbench/allow",
		       "%s %s, so nothing is allowed", name, why);
}

static int check_owner(const char *name, const struct stat *status, struct nb_error *error)
{
	if (status->st_uid)
		return refuse_file(name, "is not root's", error);
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return refuse_file(name, "can be written by others than root", error);
	return 0;
}

static int read_text(int fd, struct nb_allow *allow, struct nb_error *error)
{
	size_t used = 0;
	ssize_t got;

	allow->text = malloc(TEXT_MAX);
	if (!allow->text)
		return nb_fail(error, NB_ERR_MEMORY, OPERATION, "free some memory", "no memory");
	while ((got = read(fd, allow->text + used, TEXT_MAX - 1 - used)) > 0)
		used += (size_t)got;
	allow->text[used] = 0;
	if (got < 0 || used == TEXT_MAX - 1 || strlen(allow->text) != used)
		return refuse_file(FILE_NAME, "cannot be read as a text of less than 64 KiB",
				   error);
	return check_lines(allow->text, error);
}

static int read_file(struct nb_allow *allow, struct nb_error *error)
{
	int fd = open(FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), status;
	struct stat folder, file;

	if (fd < 0)
		return refuse_file(FILE_NAME, "cannot be opened, or is a symbolic link", error);
	if (lstat(FOLDER, &folder) || fstat(fd, &file) || !S_ISDIR(folder.st_mode) ||
	    !S_ISREG(file.st_mode))
		status = refuse_file(FILE_NAME, "is not a file in a folder", error);
	else
		status = check_owner(FOLDER, &folder, error);
	if (!status)
		status = check_owner(FILE_NAME, &file, error);
	if (!status)
		status = read_text(fd, allow, error);
	close(fd);
	return status;
}

int nb_allow_read(struct nb_allow *allow, int by_sudo, struct nb_error *error)
{
	struct stat ignored;

	*allow = (struct nb_allow){ .name = FILE_NAME, .is_file = 1 };
	if (!lstat(FILE_NAME, &ignored) || errno != ENOENT)
		return read_file(allow, error);
	allow->name = "a login by sudo to a host without /etc/netbench/allow";
	allow->is_file = 0;
	allow->text = by_sudo ? strdup(OF_SUDO) : NULL;
	return by_sudo && !allow->text
		       ? nb_fail(error, NB_ERR_MEMORY, OPERATION, "free some memory", "no memory")
		       : 0;
}

/* A command is allowed with exactly these words; behind a last word `*`, with any. */
static int matches_command(const struct line *line, const char *word, const struct nb_need *need)
{
	const char *asked = need->name, *end = need->name + need->length;

	for (; word; word = next_word(line, word)) {
		if (!strcmp(word, "*") && !next_word(line, word))
			return 1;
		if (asked >= end || strcmp(word, asked) != 0)
			return 0;
		asked += strlen(asked) + 1;
	}
	return asked >= end;
}

static int matches_word(const char *word, const struct nb_need *need)
{
	if (!strcmp(need->keyword, "sysctl") || !strcmp(need->keyword, "sysfs"))
		return !strncmp(need->name, word, strlen(word));
	return !fnmatch(word, need->name, 0);
}

static int matches(const struct line *line, const struct nb_need *need)
{
	const char *word = next_word(line, line->text);

	if (!strcmp(need->keyword, "command"))
		return matches_command(line, word, need);
	while (word && !matches_word(word, need))
		word = next_word(line, word);
	return word != NULL;
}

int nb_allow_has(const struct nb_allow *allow, const char *keyword)
{
	struct line line = { 0 };
	const char *at = allow->text;

	while (at && next_line(&at, &line) > 0)
		if (!strcmp(line.text, keyword))
			return 1;
	return 0;
}

/* How much a line has in common with what is needed: 0 with another keyword. */
static size_t nearness(const struct line *line, const struct nb_need *need)
{
	size_t most = 0;

	if (strcmp(line->text, need->keyword) != 0)
		return 0;
	for (const char *word = next_word(line, line->text); word; word = next_word(line, word)) {
		size_t same = 0;

		while (word[same] && word[same] == need->name[same])
			same++;
		most = same > most ? same : most;
	}
	return most + 1;
}

static void show_words(char *to, size_t room, const char *words, size_t length)
{
	size_t used = 0;

	for (; used + 1 < length && used + 1 < room; used++)
		to[used] = (char)(words[used] ? words[used] : ' ');
	to[used] = 0;
}

static int refuse(const struct nb_allow *allow, const struct nb_need *need, struct nb_error *error)
{
	struct line line = { 0 }, nearest = { 0 };
	char asked[120], has[60] = "", where[16] = "";
	size_t most = 0;

	for (const char *at = allow->text; next_line(&at, &line) > 0;) {
		size_t near = nearness(&line, need);

		if (near > most)
			nearest = line;
		most = near > most ? near : most;
	}
	show_words(asked, sizeof(asked), need->name,
		   need->length ? need->length : strlen(need->name) + 1);
	if (most && allow->is_file) {
		snprintf(where, sizeof(where), ":%u", nearest.number);
		show_words(has, sizeof(has), nearest.text, nearest.length);
	}
	return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
		       allow->is_file
			       ? "leave it out, or ask who administers this host for that "
				 "line in /etc/netbench/allow"
			       : "leave it out, connect as root, or ask who administers this "
				 "host for that line in /etc/netbench/allow",
		       "%s%s does not allow `%s %s`%s%s%s", allow->name, where, need->keyword,
		       asked, *has ? ", only `" : "", has, *has ? "`" : "");
}

int nb_allow_any(const struct nb_allow *allow, const struct nb_need *needs, size_t count,
		 struct nb_error *error)
{
	struct line line = { 0 };
	const char *at = allow->text;

	if (!at)
		return 0;
	while (next_line(&at, &line) > 0)
		for (size_t i = 0; i < count; i++)
			if (!strcmp(line.text, needs[i].keyword) && matches(&line, &needs[i]))
				return 0;
	return refuse(allow, &needs[count - 1], error);
}

struct nb_need nb_need(const char *keyword, const char *name)
{
	struct nb_need made = { .keyword = keyword };

	size_t length = strlen(name);

	memcpy(made.name, name, length < sizeof(made.name) ? length : sizeof(made.name) - 1);
	return made;
}

int nb_allow_interface(const struct nb_allow *allow, const char *name, struct nb_error *error)
{
	struct nb_need wanted = nb_need("interface", name);

	if (!name[0] || !nb_allow_has(allow, "interface"))
		return 0;
	return nb_allow_any(allow, &wanted, 1, error);
}
