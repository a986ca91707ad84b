/* SPDX-License-Identifier: MIT */
/* Not by syslog(3), which waits for ever where the system's logger is stopped: an undo must not. */
#include "audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LINE_ROOM = 2560, TEXT_SHOWN = 240 };

/* In quotes, cut: what a terminal obeys is shown as `?`, and a quote in it ends nothing. */
static void add_quoted(struct nb_text *line, const char *name, const char *text, size_t length)
{
	length -= length && text[length - 1] == '\n';
	nb_text_add(line, "%s'", name);
	for (size_t i = 0; i < length && i < TEXT_SHOWN; i++) {
		char byte = text[i] ? text[i] : ' ';

		nb_text_add(line, byte == '\'' || byte == '\\' ? "\\%c" : "%c",
			    byte < ' ' || byte > '~' ? '?' : byte);
	}
	nb_text_add(line, length > TEXT_SHOWN ? "...'" : "'");
}

void nb_audit(const struct nb_client *client, const struct nb_deed *deed)
{
	static const struct sockaddr_un logger = { AF_UNIX, "/dev/log" };
	const char *before = deed->before, *after = deed->after;
	char data[LINE_ROOM];
	struct nb_text line = { .data = data, .room = sizeof(data) };
	time_t now = time(NULL);
	struct tm parts;
	size_t from = before && after ? nb_text_differs(before, after) : 0;
	int fd;

	if (!client)
		return;
	line.used = strftime(data, sizeof(data), "<85>%b %e %H:%M:%S", localtime_r(&now, &parts));
	nb_text_add(&line, " netbench[%d]: ", (int)getpid());
	add_quoted(&line, "campaign=", client->campaign, strlen(client->campaign));
	add_quoted(&line, " user=", client->user, strlen(client->user));
	nb_text_add(&line, " %s %s ", deed->verb, deed->op->name);
	add_quoted(&line, "", deed->target->words, deed->target->length);
	if (before)
		add_quoted(&line, " old ", before + from, strlen(before + from));
	if (after)
		add_quoted(&line, " new ", after + from, strlen(after + from));
	if (deed->error)
		add_quoted(&line, " failed ", deed->error->message, strlen(deed->error->message));
	nb_text_add(&line, "\n");
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sendto(fd, data, line.used - 1, 0, (const struct sockaddr *)&logger, sizeof(logger)) <
	    0) {
		close(fd);
		fd = open("/var/log/netbench.log",
			  O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			  0600);
		if (write(fd, data + strlen("<85>"), line.used - strlen("<85>")) < 0)
			line.used = 0; /* there is no log */
	}
	close(fd);
}
