/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../program.h"

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
	signal(SIGXFSZ, SIG_IGN);
	umask(022);
	if (setgroups(0, NULL) || chdir("/"))
		return; /* what is left is root's own */
}

static unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

void nb_client_begin(struct nb_client *client, int in)
{
	struct stat made = { .st_uid = (uid_t)-1 };
	const char *user = getenv("SUDO_USER");

	/* A pipe or a socket belongs to the account that made it (fstat(2)): sshd and controllers
	 * make it as the user, so doas(1) and su(1), which say less than sudo, are known by it. */
	fstat(in, &made);
	*client = (struct nb_client){ .id = number_of("SUDO_UID", made.st_uid),
				      .group = number_of("SUDO_GID", made.st_gid) };
	if (!client->id) /* root by sudo from root */
		client->id = made.st_uid;
	client->by_sudo = client->id && !geteuid();
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
