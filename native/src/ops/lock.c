/* SPDX-License-Identifier: MIT */
/*
 * The lock of a host, which is a network namespace, or of its whole kernel: a record lock
 * (F_OFD_SETLK, fcntl_locking(2)) on a file in a folder that only this account can open, so no
 * other account can take it. The kernel releases it when its process ends, however it ends. The
 * file holds the name of the holder and its pid, by which one that is stopped can be ended. Beside
 * it each holder binds an abstract unix socket (unix(7)) with its name: a hint for other accounts,
 * which anybody can forge.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../clock.h"
#include "../wire.h"
#include "client.h"

enum { HOLDER_MAX = 60, ATTEMPTS = 1000, HINTS = 16 };

static const char OPERATION[] = "lock", NAMELESS[] = "unknown", HINT[] = "netbench.campaign.";
static char unlocked[HOLDER_MAX + 1]; /* the holder where this account has no place for a lock */

struct lock_request {
	const char *what; /* host, kernel */
	char file[64];
	char found[HOLDER_MAX + 1]; /* the holder; "": there is none */
	int pid;		    /* of the holder; 0: it has not written it yet */
	struct nb_error *error;
};

static int is_plain(char c)
{
	return c > ' ' && c <= '~';
}

/* A name of another process for people: what is no plain character is a question mark. */
static void copy_name(char *to, const char *from, size_t length)
{
	size_t i;

	for (i = 0; i < length && i < HOLDER_MAX; i++)
		to[i] = is_plain(from[i]) ? from[i] : '?';
	to[i] = 0;
}

static int fail_lock(const struct lock_request *request)
{
	return nb_fail_errno(request->error, OPERATION,
			     "look at /run/netbench/locks on that host, and at its `dmesg`",
			     "the lock of this %s", request->what);
}

/* Fill the name of the lock's file. 0, or a negative code. */
static int name_file(struct lock_request *request)
{
	struct stat own;

	if (!strcmp(request->what, "kernel")) {
		if (geteuid())
			return nb_fail(request->error, NB_ERR_SYSTEM, OPERATION,
				       "run as root there, or leave out settings of the whole "
				       "kernel",
				       "the lock of the kernel is root's");
		snprintf(request->file, sizeof(request->file), "kernel");
		return 0;
	}
	if (strcmp(request->what, "host") != 0)
		return nb_fail(request->error, NB_ERR_REQUEST, OPERATION, "lock host or kernel",
			       "unknown lock '%.40s'", request->what);
	if (stat("/proc/thread-self/ns/net", &own))
		return fail_lock(request);
	snprintf(request->file, sizeof(request->file), "host-%llu-%llu",
		 (unsigned long long)own.st_dev, (unsigned long long)own.st_ino);
	return 0;
}

static const char *const BELOW[] = { "netbench", "locks", NULL };

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

/* /tmp/netbench-UID, or, where another account was there first, a folder of this account's own
 * whose name begins so. */
static int enter_tmp(void)
{
	char own[32], made[64];
	const char *names[] = { own, "locks", NULL };
	int length = snprintf(own, sizeof(own), "netbench-%u", (unsigned int)geteuid());
	int fd = enter_all("/tmp", names, 0700);
	DIR *tmp = fd < 0 ? opendir("/tmp") : NULL;
	const struct dirent *entry;

	while (tmp && fd < 0 && (entry = readdir(tmp))) {
		names[0] = entry->d_name;
		if (!strncmp(names[0], own, (size_t)length) && names[0][length] == '.')
			fd = enter_all("/tmp", names, 0700);
	}
	if (tmp)
		closedir(tmp);
	snprintf(made, sizeof(made), "/tmp/%s.XXXXXX", own);
	if (fd >= 0 || !mkdtemp(made))
		return fd;
	names[0] = strrchr(made, '/') + 1;
	return enter_all("/tmp", names, 0700);
}

int nb_lock_folder(void)
{
	int fd = geteuid() ? -1 : enter_all("/run", BELOW, 0755);

	return fd < 0 ? enter_tmp() : fd;
}

int nb_lock_open(const char *name, int flags)
{
	int folder = nb_lock_folder(), fd;

	if (folder < 0)
		return -1;
	fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	close(folder);
	return fd;
}

/* Find the holder: 1 and its name; 0: there is none; -1 with errno. */
static int look(struct lock_request *request, int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char text[HOLDER_MAX + 24] = "", holder[HOLDER_MAX + 1] = "";

	request->found[0] = 0;
	request->pid = 0;
	if (fcntl(fd, F_OFD_GETLK, &lock))
		return -1;
	if (lock.l_type == F_UNLCK)
		return 0;
	if (pread(fd, text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%60[^ ] %d", holder, &request->pid) < 1)
		strcpy(holder, NAMELESS); /* it has not written it yet */
	copy_name(request->found, holder, strlen(holder));
	return 1;
}

/* 1: locked, for as long as this process lives; 0: another process has it; -1 with errno. */
static int lock_file(int fd, const char *holder)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char text[HOLDER_MAX + 24];
	int length = snprintf(text, sizeof(text), "%s %d", holder, (int)getpid());

	if (fcntl(fd, F_OFD_SETLK, &lock))
		return errno == EAGAIN || errno == EACCES ? 0 : -1;
	return ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length ? -1 : 1;
}

/* Tell other accounts. They may have bound the name, so nothing depends on it. */
static void give_hint(const char *holder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int length =
		snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s%s", HINT, holder);

	/* the descriptor stays open until the process ends */
	if (fd >= 0 &&
	    bind(fd, (struct sockaddr *)&address,
		 (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)length))
		close(fd);
}

/* One line for each hint of a holder in this network namespace, true or not. */
static int read_hints(FILE *text)
{
	FILE *file = fopen("/proc/thread-self/net/unix", "re");
	char name[HOLDER_MAX + 1], *line = NULL;
	size_t room = 0;

	for (int found = 0; file && found < HINTS && getline(&line, &room, file) > 0;) {
		const char *at = strchr(line, '@');

		line[strcspn(line, "\n")] = 0;
		if (!at || strncmp(at + 1, HINT, sizeof(HINT) - 1) != 0)
			continue;
		at += sizeof(HINT);
		copy_name(name, at, strlen(at));
		fprintf(text, "%s\n", name);
		found++;
	}
	free(line);
	if (file)
		fclose(file);
	return 0;
}

/* Lock, or find out who has. 1: locked; 0: `found` has; -1 with errno. */
static int take(struct lock_request *request, int fd, const char *holder)
{
	int taken = 0;

	for (int i = 0; !taken && i < ATTEMPTS; i++) {
		if (i)
			nb_sleep(1000000);
		taken = lock_file(fd, holder);
		if (!taken && look(request, fd) > 0 && strcmp(request->found, NAMELESS) != 0)
			return 0;
	}
	return taken;
}

static int set_lock(const struct nb_target *target, const char *holder, struct nb_error *error)
{
	struct lock_request request = { .what = nb_target_word(target, 0), .error = error };
	size_t length = 0;
	int status, fd, taken;

	while (is_plain(holder[length]))
		length++;
	if (!length || length > HOLDER_MAX || holder[length])
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "use a short word",
			       "'%.70s' is not a valid lock holder", holder);
	if ((status = name_file(&request)))
		return status;
	fd = nb_lock_open(request.file, O_CREAT);
	if (fd < 0) {
		if (!geteuid())
			return fail_lock(&request);
		strcpy(unlocked, holder); /* it has rights to nothing that a lock protects */
		give_hint(holder);
		return 0;
	}
	taken = take(&request, fd, holder);
	if (taken > 0) {
		give_hint(holder);
		return 0;
	}
	status = taken < 0 ? fail_lock(&request) : 0;
	close(fd);
	if (status || !strcmp(request.found, holder))
		return status;
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "wait until it is done, or stop it",
		       "locked by %s, process %d", request.found, request.pid);
}

static int get_lock(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct lock_request request = { .what = nb_target_word(target, 0), .error = error };
	int status = 0, fd;

	if (!strcmp(request.what, "hints"))
		return read_hints(text);
	if ((status = name_file(&request)))
		return status;
	fd = nb_lock_open(request.file, 0);
	if (fd < 0)
		strcpy(request.found, unlocked);
	else if (look(&request, fd) < 0)
		status = fail_lock(&request);
	if (fd >= 0)
		close(fd);
	if (!status && request.found[0])
		fprintf(text, "%s\n", request.found);
	if (!status && request.pid)
		fprintf(text, "%d\n", request.pid);
	return status;
}

const struct nb_op nb_op_lock = {
	.name = "lock",
	.about = "the lock of this host or its kernel, held until the worker ends: the holder and "
		 "its pid; hints: who says that it holds one",
	.words = 1,
	.lasting = 1,
	.get = get_lock,
	.set = set_lock,
};
