/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "../program.h"

enum { TEXT_SHOWN = 240 };

static void lift_limits(void)
{
	static const __rlimit_resource_t limits[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS,
						      RLIMIT_DATA, RLIMIT_STACK };
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (getrlimit(limits[i], &limit))
			continue;
		limit.rlim_max = RLIM_INFINITY;
		if (limits[i] != RLIMIT_STACK)
			limit.rlim_cur = RLIM_INFINITY;
		setrlimit(limits[i], &limit); /* where it fails, the limit is the system's */
	}
}

static void isolate(void)
{
	nb_program_clear_environment();
	lift_limits();
	umask(022);
	if (setgroups(0, NULL))
		return; /* what is left is root's own */
}

/* The account that made the anonymous pipe or the socket (fstat(2)): sshd and controllers make it
 * as the user, so doas(1) and su(1), which say less than sudo, are known by it. Everything else may
 * be root's and still hold what any account wrote, such as /proc/PID/cmdline of a setuid program.
 */
static struct stat find_maker(int in)
{
	static const long PIPES = 0x50495045; /* PIPEFS_MAGIC */
	struct stat made;
	struct statfs place;

	if (fstat(in, &made) || fstatfs(in, &place) ||
	    !(S_ISSOCK(made.st_mode) || (S_ISFIFO(made.st_mode) && place.f_type == PIPES) ||
	      (S_ISCHR(made.st_mode) && made.st_rdev == makedev(1, 3)))) /* null(4) is empty */
		made.st_uid = made.st_gid = (uid_t)-1;
	return made;
}

static unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

static uid_t account;

uid_t nb_client_account(void)
{
	return account;
}

void nb_client_begin(struct nb_client *client, int in)
{
	struct stat made = find_maker(in);
	const char *doas = getenv("DOAS_USER"), *user;
	int no_sudo = (doas && strcmp(doas, "root") != 0) || number_of("PKEXEC_UID", 0);

	/* doas(1) and pkexec(1) say that they were there: their user cannot take that back, but may
	 * have said what sudo says. */
	if (!made.st_uid && no_sudo)
		made.st_uid = made.st_gid = (uid_t)-1;
	user = no_sudo ? NULL : getenv("SUDO_USER");
	*client = (struct nb_client){ .id = made.st_uid };
	if (!no_sudo)
		client->id = number_of("SUDO_UID", made.st_uid);
	if (!client->id) /* root by sudo from root */
		client->id = made.st_uid;
	client->by_sudo = client->id && !geteuid();
	account = client->id;
	if (!user && !client->by_sudo)
		user = getenv("USER");
	if (user)
		snprintf(client->user, sizeof(client->user), "%s", user);
	else
		snprintf(client->user, sizeof(client->user), "uid %u",
			 (unsigned int)(client->by_sudo ? client->id : getuid()));
	if (client->by_sudo)
		isolate();
}

/* In quotes, its middle cut: what a terminal obeys is shown as `?`, and a quote in it ends nothing.
 */
static void add_quoted(FILE *line, const char *name, const char *text, size_t length)
{
	length -= length && text[length - 1] == '\n';
	fprintf(line, "%s'", name);
	for (size_t i = 0; i < length; i++) {
		char byte;

		if (length > TEXT_SHOWN && i == TEXT_SHOWN / 2) {
			fprintf(line, "...");
			i = length - TEXT_SHOWN / 2;
		}
		byte = text[i] ? text[i] : ' ';
		if (byte == '\'' || byte == '\\')
			fputc('\\', line);
		fputc(byte < ' ' || byte > '~' ? '?' : byte, line);
	}
	fputc('\'', line);
}

/* Not by syslog(3), which waits for ever where the system's logger is stopped: an undo must not. */
static void log_line(const char *line, size_t length)
{
	static const struct sockaddr_un logger = { AF_UNIX, "/dev/log" };
	const struct sockaddr *to = (const struct sockaddr *)&logger;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sendto(fd, line, length - 1, 0, to, sizeof(logger)) < 0) {
		close(fd);
		fd = open("/var/log/netbench.log",
			  O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			  0600);
		if (write(fd, line + strlen("<85>"), length - strlen("<85>")) < 0)
			length = 0; /* there is no log */
	}
	close(fd);
}

void nb_audit(const struct nb_client *client, const struct nb_deed *deed)
{
	const char *before = deed->before, *after = deed->after;
	size_t from = before && after ? nb_text_differs(before, after) : 0, length;
	time_t now = time(NULL);
	struct tm parts;
	char stamp[32], *text;
	FILE *line = client ? open_memstream(&text, &length) : NULL;

	if (!line)
		return;
	strftime(stamp, sizeof(stamp), "%b %e %H:%M:%S", localtime_r(&now, &parts));
	fprintf(line, "<85>%s netbench[%d]: ", stamp, (int)getpid());
	add_quoted(line, "campaign=", client->campaign, strlen(client->campaign));
	add_quoted(line, " user=", client->user, strlen(client->user));
	fprintf(line, " %s %s ", deed->verb, deed->op->name);
	add_quoted(line, "", deed->target->words, deed->target->length);
	if (before)
		add_quoted(line, " old ", before + from, strlen(before + from));
	if (after)
		add_quoted(line, " new ", after + from, strlen(after + from));
	if (deed->error)
		add_quoted(line, " failed ", deed->error->message, strlen(deed->error->message));
	fprintf(line, "\n");
	if (!fclose(line))
		log_line(text, length);
	free(text);
}
