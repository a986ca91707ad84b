/* SPDX-License-Identifier: MIT */
/* Not by syslog(3), which waits for ever where the system's logger is stopped: an undo must not. */
#include "audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1600, TEXT_SHOWN = 400, FILE_MAX_BYTES = 16 << 20 };

static const char LOGGER[] = "/dev/log", LOG_FILE[] = "/var/log/netbench.log",
		  OLD_LOG_FILE[] = "/var/log/netbench.log.1";

/* A text or words in quotes, as far as there is room: what a terminal obeys is shown as `?`, and
 * a quote in it ends nothing. */
static void add_quoted(struct nb_text *line, const char *text, size_t length)
{
	nb_text_add(line, "'");
	for (size_t i = 0; i < length && i < TEXT_SHOWN; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '\'' || byte == '\\')
			nb_text_add(line, "\\");
		nb_text_add(line, "%c", !byte ? ' ' : byte < ' ' || byte > '~' ? '?' : byte);
	}
	nb_text_add(line, length > TEXT_SHOWN ? "...'" : "'");
}

static int has_line(const char *text, const char *wanted, size_t length)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strcspn(text, "\n") == length && !strncmp(text, wanted, length))
			return 1;
	return 0;
}

/* The lines of a text that the other one has not. */
static void add_lines(struct nb_text *line, const char *text, const char *other)
{
	int shown = 0;

	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t length = strcspn(at, "\n");

		if (other && has_line(other, at, length))
			continue;
		nb_text_add(line, shown++ ? ", " : "");
		add_quoted(line, at, length);
	}
	if (!shown)
		add_quoted(line, text, strcspn(text, "\n"));
}

static void add_deed(struct nb_text *line, const struct nb_client *client,
		     const struct nb_deed *deed)
{
	nb_text_add(line, "campaign=");
	add_quoted(line, client->campaign, strlen(client->campaign));
	nb_text_add(line, " user=");
	add_quoted(line, client->user, strlen(client->user));
	nb_text_add(line, " %s %s ", deed->verb, deed->op->name);
	add_quoted(line, deed->target->words, deed->target->length);
	if (deed->before) {
		nb_text_add(line, " old ");
		add_lines(line, deed->before, deed->after);
	}
	if (deed->after) {
		nb_text_add(line, " new ");
		add_lines(line, deed->after, deed->before);
	}
	if (deed->error) {
		nb_text_add(line, " failed ");
		add_quoted(line, deed->error->message, strlen(deed->error->message));
	}
}

static int send_to_logger(const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char stamp[32], packet[LINE_MAX_BYTES + 96];
	time_t now = time(NULL);
	struct tm parts;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), length, sent;

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, LOGGER, sizeof(LOGGER));
	strftime(stamp, sizeof(stamp), "%b %e %H:%M:%S", localtime_r(&now, &parts));
	length = snprintf(packet, sizeof(packet), "<%d>%s netbench[%d]: %s",
			  LOG_AUTHPRIV | LOG_NOTICE, stamp, (int)getpid(), text);
	sent = !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	       send(fd, packet, (size_t)length, MSG_NOSIGNAL) == length;
	close(fd);
	return sent ? 0 : -1;
}

static int open_file(void)
{
	return open(LOG_FILE, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		    0600);
}

/* The file; one that is full becomes the old one. */
static int open_file_with_room(void)
{
	int fd = open_file();
	struct stat opened, named;

	if (fd < 0 || fstat(fd, &opened) || opened.st_size < FILE_MAX_BYTES)
		return fd;
	/* Another helper may have been faster. */
	if (!lstat(LOG_FILE, &named) && named.st_ino == opened.st_ino)
		rename(LOG_FILE, OLD_LOG_FILE);
	close(fd);
	return open_file();
}

static void append_to_file(const char *text)
{
	int fd = open_file_with_room();
	char stamp[32], line[LINE_MAX_BYTES + 64];
	time_t now = time(NULL);
	struct tm parts;
	int length;
	ssize_t ignored;

	if (fd < 0)
		return;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
	length = snprintf(line, sizeof(line), "%s netbench[%d]: %s\n", stamp, (int)getpid(), text);
	ignored = write(fd, line, (size_t)length);
	(void)ignored;
	close(fd);
}

void nb_audit(const struct nb_client *client, const struct nb_deed *deed)
{
	char data[LINE_MAX_BYTES] = "";
	struct nb_text line = { .data = data, .room = sizeof(data) };

	if (!client)
		return;
	add_deed(&line, client, deed);
	if (send_to_logger(data))
		append_to_file(data);
}
