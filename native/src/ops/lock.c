/* SPDX-License-Identifier: MIT */
/* The lock of a host, which is a network namespace, or of its whole kernel: record locks
 * (F_OFD_SETLK, fcntl_locking(2)) on a file in a folder that only this account can open. Workers of
 * one campaign hold it together, under one name, each the byte of its pid, which the kernel
 * releases when the process ends, however it ends. The file has their name and pids, by which one
 * that is stopped can be ended. Beside it each binds an abstract unix socket (unix(7)) with its
 * name: a hint for other accounts, which anybody can forge. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../wire.h"
#include "client.h"

enum { HOLDER_MAX = 60, PIDS_MAX = 1 << 14, HINTS = 16 };
enum { FIRST_PID = 1 }; /* the byte before it is locked while who takes the lock reads and writes */

static const char OPERATION[] = "lock", HINT[] = "netbench.campaign.";

struct lock_request {
	const char *what; /* host, kernel */
	char file[64];
	char found[HOLDER_MAX + 1]; /* the holder; "": there is none */
	char pids[PIDS_MAX];	    /* of the holders, a line each */
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
			     "look at /run/netbench/locks, or /tmp, and `dmesg` there",
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
 * whose name begins so. That is used from then on: another account may remove its own again. */
static int enter_tmp(void)
{
	char own[64], made[sizeof(own) + 16];
	const char *names[] = { own, "locks", NULL };
	int length = snprintf(own, sizeof(own), "netbench-%u", (unsigned int)geteuid()), fd;
	DIR *tmp = opendir("/tmp");
	const struct dirent *entry;

	snprintf(made, sizeof(made), "/tmp/%s.XXXXXX", own);
	while (tmp && (entry = readdir(tmp))) {
		const char *name = entry->d_name;

		if (strncmp(name, own, (size_t)length) || name[length] != '.' ||
		    strlen(name) != strlen(made) - 5 || strcmp(name, own) < 0)
			continue;
		fd = enter(dirfd(tmp), name, 0700);
		if (fd >= 0)
			strcpy(own, name);
		close(fd);
	}
	if (tmp)
		closedir(tmp);
	fd = enter_all("/tmp", names, 0700);
	if (fd >= 0 || !mkdtemp(made))
		return fd;
	names[0] = strrchr(made, '/') + 1;
	return enter_all("/tmp", names, 0700);
}

int nb_lock_folder(void)
{
	int fd = geteuid() ? (errno = 0, -1) : enter_all("/run", BELOW, 0755);

	return fd < 0 && errno != ENOSPC && errno != EDQUOT ? enter_tmp() : fd;
}

int nb_lock_open(const char *name, int flags)
{
	static int kept = -1; /* locked: else systemd-tmpfiles(8) removes what is in it by age */
	int folder = nb_lock_folder(), fd;

	if (folder < 0)
		return -1;
	fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	if (kept < 0 && !flock(folder, LOCK_SH | LOCK_NB))
		kept = folder;
	else
		close(folder);
	return fd;
}

int nb_lock_byte(int fd, off_t at)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock);
}

int nb_lock_held(int fd, off_t at, off_t length)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = at, .l_len = length };

	return fcntl(fd, F_OFD_GETLK, &lock) ? -1 : lock.l_type != F_UNLCK;
}

/* Find the holders: 1, their name and pids; 0: there is none; -1 with errno. */
static int look(struct lock_request *request, int fd)
{
	char text[HOLDER_MAX + PIDS_MAX] = "", *rest = NULL, *word;
	int held = nb_lock_held(fd, FIRST_PID, 0);
	size_t length = 0;
	long pid;

	if (held <= 0)
		return held;
	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return -1;
	word = strtok_r(text, "\n", &rest);
	copy_name(request->found, word ? word : "?", word ? strlen(word) : 1);
	while ((word = strtok_r(NULL, "\n", &rest)) && length < PIDS_MAX - 32) {
		pid = strtol(word, NULL, 10);
		if (pid >= FIRST_PID && nb_lock_held(fd, pid, 1) > 0)
			length += (size_t)sprintf(request->pids + length, "%ld\n", pid);
	}
	return 1;
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

/* Lock, while this process lives: 1; 0: `found` has it, who may be `holder`; -1 with errno. The
 * file is written before the byte is locked, so a name is always of those who hold it. */
static int take(struct lock_request *request, int fd, const char *holder)
{
	struct flock gate = { .l_type = F_WRLCK, .l_len = FIRST_PID };
	char text[HOLDER_MAX + PIDS_MAX + 32];
	int own = (int)getpid(), held, length;

	if (fcntl(fd, F_OFD_SETLKW, &gate) || (held = look(request, fd)) < 0)
		return -1;
	if ((held && strcmp(request->found, holder) != 0) || nb_lock_held(fd, own, 1))
		return 0;
	length = snprintf(text, sizeof(text), "%s\n%s%d\n", holder, request->pids, own);
	if (pwrite(fd, text, (size_t)length, 0) != length || ftruncate(fd, length) ||
	    nb_lock_byte(fd, own))
		return -1;
	gate.l_type = F_UNLCK;
	return fcntl(fd, F_OFD_SETLK, &gate) ? -1 : 1;
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
	taken = fd < 0 ? -1 : take(&request, fd, holder);
	if (taken > 0) {
		give_hint(holder);
		return 0;
	}
	status = taken < 0 ? fail_lock(&request) : 0;
	close(fd);
	if (status || !strcmp(request.found, holder))
		return status;
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "wait until it is done, or stop it",
		       "locked by %s, process %d", request.found, atoi(request.pids));
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
	if (fd >= 0 && look(&request, fd) < 0)
		status = fail_lock(&request);
	close(fd);
	if (!status && request.found[0])
		fprintf(text, "%s\n%s", request.found, request.pids);
	return status;
}

const struct nb_op nb_op_lock = {
	.name = "lock",
	.about = "the lock of this host or its kernel, held until the worker ends: the holders' "
		 "name and pids; hints: who says that it holds one",
	.words = 1,
	.lasting = 1,
	.get = get_lock,
	.set = set_lock,
};
