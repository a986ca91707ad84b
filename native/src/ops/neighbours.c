/* SPDX-License-Identifier: MIT */
/* What the kernel may change along with something: of a file of /proc/sys its folder and its
 * family's conf/, of one of a block device's queue/ or an interface's bridge/ (...) that folder, of
 * an interface its numbers, offloads and parameters, queues/ and conf/, and the same of the
 * interfaces above it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "around.h"

enum { ROUNDS = 4, KEYS = 65536 };

static const char NET[] = "/proc/sys/net", VM[] = "/proc/sys/vm";

static void add_around_file(FILE *text, const char *path)
{
	static const char *const first[] = { "/all", "/default", "" };
	int length = (int)(strrchr(path, '/') - path);
	char folder[PATH_MAX], name[IFNAMSIZ], *queue;

	if (nb_link_of_path(path, name) && strcmp(name, "default") != 0)
		nb_section_links(text, name, 0);
	snprintf(folder, sizeof(folder), "%.*s", length, path);
	if (!strncmp(path, "/proc/sys/", strlen("/proc/sys/"))) {
		nb_section_folder(text, folder, 0);
		if (sscanf(path, "/proc/sys/net/%15[^/]", name) != 1 ||
		    strncmp(name, "ipv", 3) != 0)
			return;
		/* Before all of conf/: to write these moves the others. */
		for (size_t i = 0; i < NB_LENGTH(first); i++) {
			snprintf(folder, sizeof(folder), "%s/%s/conf%s", NET, name, first[i]);
			nb_section_folder(text, folder, *first[i] ? 0 : NB_SECTION_DEEP);
		}
		return;
	}
	queue = strstr(folder, "/queue");
	if (queue && (!queue[6] || queue[6] == '/')) {
		queue[6] = 0;
		nb_section_folder(text, folder, NB_SECTION_DEEP);
	} else if (!strncmp(path, "/sys/kernel/mm/", strlen("/sys/kernel/mm/"))) {
		nb_section_folder(text, folder, 0);
		nb_section_folder(text, VM, 0); /* min_free_kbytes follows khugepaged */
	} else if (nb_link_of_path(path, name) && strcmp(strrchr(folder, '/') + 1, name) != 0 &&
		   !strstr(folder, "/queues/")) {
		nb_section_folder(text, folder, 0);
	}
}

/* Behind a line. */
static const char *after(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

/* The section of a text with that header, which is looked for from `from` on first; NULL. */
static const char *section(const char *text, const char *from, const char *header)
{
	size_t length = strcspn(header, "\n");

	for (int round = 0; round < 2; round++, from = text)
		for (const char *at = from ? from : text; *at; at = after(at))
			if (!strncmp(at, header, length) && (!at[length] || at[length] == '\n'))
				return at;
	return NULL;
}

/* The line of a section that begins so, up to one of `ends`; NULL. */
static const char *find(const char *section, const char *wanted, size_t length, const char *ends)
{
	const char *at = section ? after(section) : "";

	for (; *at == ' '; at = after(at))
		if (!strncmp(at, wanted, length) && strchr(ends, at[length]))
			return at;
	return NULL;
}

/* Lines that are the same in two other texts, or gone in both, or differ there; where there is only
 * one, those that have their section and name there. */
static void keep(const char *text, const char *one, const char *other, int same, FILE *kept)
{
	const char *header = "", *written = "", *in_one = NULL, *in_other = NULL;

	for (; *text; text = after(text)) {
		size_t name = 1 + strcspn(text + 1, " \n");
		const char *then = find(in_one, text, name, " \n"), *there;

		if (*text != ' ') {
			header = text;
			in_one = section(one, in_one, header);
			in_other = other ? section(other, in_other, header) : NULL;
			continue;
		}
		there = other ? find(in_other, text, name, " \n") : then;
		if (same != (then && there ? !strncmp(then, there, strcspn(then, "\n") + 1)
					   : other && then == there) ||
		    (!same && !there))
			continue;
		if (written != header)
			fprintf(kept, "%.*s\n", (int)strcspn(header, "\n"), header);
		written = header;
		fprintf(kept, "%.*s\n", (int)strcspn(text, "\n"), text);
	}
}

static void add_only(FILE *text, const char *keys)
{
	for (const char *at = keys; *at;) {
		const char *header = at;
		char *now, *wanted;

		for (at = after(at); *at == ' ';)
			at = after(at);
		now = nb_section_read(header);
		wanted = strndup(header, (size_t)(at - header));
		if (now && wanted)
			keep(now, wanted, NULL, 1, text);
		free(now);
		free(wanted);
	}
}

static int get_neighbours(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *of = nb_target_word(target, 0), *what = nb_target_word(target, 1);

	if (strlen(what) > KEYS)
		return nb_fail(error, NB_ERR_REQUEST, "neighbours", "ask for less at a time",
			       "a target of %zu bytes", strlen(what));
	if (!strcmp(of, "only")) {
		add_only(text, what);
	} else if (!strcmp(of, "all")) {
		nb_section_folder(text, NET, NB_SECTION_DEEP);
		nb_section_folder(text, VM, NB_SECTION_DEEP);
		nb_section_links(text, "all", 1);
	} else if (!strcmp(of, "file")) {
		if (what[0] == '/')
			add_around_file(text, what);
	} else if (nb_section_op(of)) {
		nb_section_links(text, what, 0);
	}
	return 0;
}

/* Write what differs and is still there, until nothing does: some of it moves with the rest, or
 * cannot be written before the rest is. */
static int restore_neighbours(const struct nb_target *target, const char *saved,
			      struct nb_error *error)
{
	size_t differing = 1;
	int status = 0, failed;

	(void)target;
	for (int round = 0; differing && round < ROUNDS; round++) {
		struct nb_section_line at = { .next = saved };
		const char *read = NULL;
		char *now = NULL;

		differing = 0;
		status = 0;
		while (nb_section_next(&at)) {
			if (read != at.header) {
				free(now);
				now = nb_section_read(at.header);
				read = at.header;
			}
			if (!now || find(now, at.line, at.length, "\n") ||
			    !find(now, at.line, at.name, " "))
				continue;
			differing++;
			failed = nb_op_restore(at.op, &at.target, at.value, error);
			status = failed ? failed : status;
		}
		free(now);
	}
	return status;
}

const struct nb_op nb_op_neighbours = {
	.name = "neighbours",
	.about = "what may change along with the target of an operation (`file PATH`, `link "
		 "INTERFACE`, ...); `all` of the network; `only` some lines of it",
	.words = 2,
	.lines = 1,
	.get = get_neighbours,
	.set = restore_neighbours,
	.restore = restore_neighbours,
	.keep = keep,
};
