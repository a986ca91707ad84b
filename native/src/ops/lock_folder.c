/* SPDX-License-Identifier: MIT */
#include "lock_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const BELOW[] = { "netbench", "locks", NULL };
static const char *const BELOW_HOME[] = { ".local", "state", "netbench", "locks", NULL };

/* Whether an open folder is this account's, and others cannot write it. */
static int is_own(int fd)
{
	struct stat found;

	return !fstat(fd, &found) && found.st_uid == geteuid() && !(found.st_mode & 022);
}

/* A folder within an open one, made if it is missing: its descriptor, or -1 with errno. */
static int enter(int parent, const char *name, mode_t mode)
{
	int fd;

	if (mkdirat(parent, name, mode) && errno != EEXIST)
		return -1;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || is_own(fd))
		return fd;
	close(fd);
	errno = EPERM;
	return -1;
}

/* The last of folders within each other; those before it may be read by others. */
static int enter_all(const char *base, const char *const *names, mode_t above)
{
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC), inner;

	for (; fd >= 0 && *names; names++) {
		inner = enter(fd, *names, names[1] ? above : 0700);
		close(fd);
		fd = inner;
	}
	return fd;
}

int nb_lock_folder(void)
{
	static const char *const places[] = { "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME" };
	char own[32];
	const char *const below_tmp[] = { own, "locks", NULL };
	int fd = geteuid() ? -1 : enter_all("/run", BELOW, 0755);

	for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		const char *base = getenv(places[i]);

		errno = ENOENT;
		if (base && base[0] == '/')
			fd = enter_all(base, i == 2 ? BELOW_HOME : BELOW, 0700);
	}
	snprintf(own, sizeof(own), "netbench-%u", (unsigned int)geteuid());
	return fd < 0 ? enter_all("/tmp", below_tmp, 0700) : fd;
}
