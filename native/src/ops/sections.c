/* SPDX-License-Identifier: MIT */
#include "around.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE = NB_SECTION_VALUE, PATH_SHOWN = 1024 };

static const char *const numbers[] = { "mtu",	       "txqueuelen",	    "gso_max_size",
				       "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size" };

extern const struct nb_op nb_op_file, nb_op_link, nb_op_qdisc, nb_op_features, nb_op_rings,
	nb_op_coalesce, nb_op_channels;

static const struct nb_op *const kinds[] = { &nb_op_file,     &nb_op_link,  &nb_op_qdisc,
					     &nb_op_features, &nb_op_rings, &nb_op_coalesce,
					     &nb_op_channels };
enum { PARAMETERS = 3 }; /* from here on a text has a line "NAME: VALUE" for each */

const struct nb_op *nb_section_op(const char *header)
{
	size_t length = strcspn(header, ": \n");

	for (size_t i = 0; i < NB_LENGTH(kinds); i++)
		if (strlen(kinds[i]->name) == length && !memcmp(kinds[i]->name, header, length))
			return kinds[i];
	return NULL;
}

static void add_file(FILE *text, int folder, const char *name)
{
	char value[VALUE];
	struct stat status;
	ssize_t length = -1;
	int fd;

	/* To read the first one acts, and the other moves by itself. */
	if (!strcmp(name, "stat_refresh") || !strcmp(name, "ns_last_pid") ||
	    fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
	    !(status.st_mode & S_IWUSR) || !(status.st_mode & S_IROTH))
		return;
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd >= 0) {
		length = read(fd, value, sizeof(value) - 1);
		close(fd);
	}
	if (length > 0 && value[length - 1] == '\n')
		length--;
	if (length < 0 || length == VALUE - 1 || memchr(value, '\n', (size_t)length) ||
	    memchr(value, 0, (size_t)length))
		return;
	value[length] = 0;
	fprintf(text, " %s %s\n", name, value);
}

static int is_entry(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int nb_section_is_kernels(const char *path)
{
	int sysfs = !strncmp(path, "/sys/", 5);
	struct stat file, top;

	return (sysfs || !strncmp(path, "/proc/sys/", 10) || !strncmp(path, "/proc/irq/", 10)) &&
	       strlen(path) < PATH_SHOWN && !strstr(path, "/.") && !strstr(path, "//") &&
	       !stat(path, &file) && !stat(sysfs ? "/sys" : "/proc", &top) &&
	       file.st_dev == top.st_dev;
}

void nb_section_folder(FILE *text, const char *path, int depth)
{
	struct dirent **entries;
	int count = nb_section_is_kernels(path) ? scandir(path, &entries, is_entry, alphasort) : -1;
	int folder = count < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char child[PATH_MAX];

	if (folder >= 0)
		fprintf(text, "file:%u %s\n", nb_link_index(path), path);
	for (int i = 0; folder >= 0 && i < count; i++)
		if (entries[i]->d_type == DT_REG)
			add_file(text, folder, entries[i]->d_name);
	if (folder >= 0)
		close(folder);
	for (int i = 0; i < count; i++) {
		if (depth && entries[i]->d_type == DT_DIR &&
		    snprintf(child, sizeof(child), "%s/%s", path, entries[i]->d_name) <
			    (int)sizeof(child))
			nb_section_folder(text, child, depth - 1);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* What an operation reads of an interface, as a section; nothing where it has no such thing. */
static void add_read(FILE *text, const struct nb_op *op, const char *interface)
{
	struct nb_target target = { interface, strlen(interface) };
	char *read = nb_op_read(op, &target, NULL);

	if (read)
		fprintf(text, "%s:%u %s\n", op->name, nb_link_index(interface), interface);
	for (const char *at = read; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
		int length = (int)strcspn(at, "\n"), name = (int)strcspn(at, ": \n");
		int skip = name + (at[name] == ':');

		skip += at[skip] == ' ';
		fprintf(text, " %.*s %.*s\n", name, at, length - skip, at + skip);
	}
	free(read);
}

static void add_numbers(FILE *text, const char *interface)
{
	char words[IFNAMSIZ + 64];

	fprintf(text, "link:%u %s\n", nb_link_index(interface), interface);
	for (size_t i = 0; i < NB_LENGTH(numbers); i++) {
		int length = snprintf(words, sizeof(words), "%s%c%s", interface, 0, numbers[i]);
		struct nb_target target = { words, (size_t)length };
		char *read = nb_op_read(&nb_op_link, &target, NULL);

		if (read)
			fprintf(text, " %s %s", numbers[i], read);
		free(read);
	}
}

static void add_link(FILE *text, const char *name, int wide)
{
	char path[PATH_MAX];

	add_numbers(text, name);
	/* Steering; the limits of bytes below each queue move by themselves. */
	snprintf(path, sizeof(path), "/sys/class/net/%s/queues", name);
	nb_section_folder(text, path, 1);
	for (size_t i = PARAMETERS; i < NB_LENGTH(kinds); i++)
		add_read(text, kinds[i], name);
	if (wide) {
		add_read(text, &nb_op_qdisc, name);
		return; /* its conf/ is below /proc/sys/net */
	}
	for (int six = 0; six < 2; six++) {
		snprintf(path, sizeof(path), "/proc/sys/net/ipv%d/conf/%s", six ? 6 : 4, name);
		nb_section_folder(text, path, 0);
	}
}

void nb_section_links(FILE *text, const char *interface, int wide)
{
	size_t count;
	struct nb_link *links = nb_links(interface, &count);

	for (size_t i = 0; i < count; i++)
		if (wide || strcmp(interface, "all") != 0)
			add_link(text, links[i].name, wide);
	nb_lasting_add(text, links, count, wide);
	free(links);
}

/* What a header is of, by the name that its interface has now; 0: it has gone. */
static int find_of(const char *header, char now[PATH_MAX])
{
	unsigned int index;
	char of[PATH_MAX];

	return sscanf(header, "%*[a-z]:%u %4095[^\n]", &index, of) == 2 &&
	       !nb_link_follow(index, of, now);
}

char *nb_section_read(const char *header)
{
	const struct nb_op *op = nb_section_op(header);
	char *read = NULL, *named = NULL, of[PATH_MAX];
	size_t length;
	FILE *text = open_memstream(&read, &length);

	if (!text)
		return NULL;
	if (find_of(header, of)) {
		if (op == &nb_op_file)
			nb_section_folder(text, of, 0);
		else if (op == &nb_op_link && strlen(of) < IFNAMSIZ)
			add_numbers(text, of);
		else if (op && strlen(of) < IFNAMSIZ)
			add_read(text, op, of);
	}
	fclose(text);
	if (!read || !*read)
		return read;
	if (asprintf(&named, "%.*s%s", (int)strcspn(header, "\n"), header,
		     read + strcspn(read, "\n")) < 0)
		named = NULL;
	free(read);
	return named;
}

int nb_section_next(struct nb_section_line *at)
{
	while (*at->next) {
		const char *line = at->line = at->next, *value;
		int length = (int)strcspn(line, "\n"), name = (int)strcspn(line, " \n"), named,
		    room;

		at->next += length + (line[length] == '\n');
		if (*line != ' ') {
			at->header = line;
			at->op = find_of(line, at->of) ? nb_section_op(line) : NULL;
			continue;
		}
		name = (int)strcspn(++line, " \n");
		value = line + name + (line[name] == ' '); /* "": a name alone */
		if (!at->op || at->op == &nb_op_qdisc)
			continue;
		at->length = (size_t)length;
		at->name = (size_t)name + 1;
		named = at->op == &nb_op_file || at->op == &nb_op_link;
		at->target.words = at->words;
		at->target.length =
			(size_t)snprintf(at->words, sizeof(at->words), "%s%c%.*s", at->of,
					 at->op == &nb_op_link ? 0 : '/', named ? name : 0, line) -
			!named;
		room = snprintf(at->value, sizeof(at->value), "%.*s%s%.*s\n", named ? 0 : name,
				line, named ? "" : ": ", (int)strcspn(value, "\n"), value);
		if (at->target.length >= sizeof(at->words) - 1 || room >= (int)sizeof(at->value))
			continue;
		at->words[at->target.length] = 0;
		return 1;
	}
	return 0;
}
