/* SPDX-License-Identifier: MIT */
/* What workers of a campaign hold on this kernel, and have undone: a file beside its lock, an
 * int32_t for each change by its number, which is its scope: 0, the pid of who holds it, negative
 * once that undoes all it holds, UNDONE, or FAILED. Hosts of one kernel share it, as they have one
 * stack. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock.h"
#include "../proc_text.h"
#include "../wire.h"
#include "client.h"

static const char OPERATION[] = "undone";

enum { UNDONE = INT32_MIN, FAILED, CHANGES = 1 << 20, BATCH = 1024 };
enum { LOGS = 16 }; /* of an account that is not root, 4 MiB each: /run is root's */
/* Where the byte is that a process which may hold something keeps locked (F_OFD_SETLK,
 * fcntl_locking(2)) as long as it lives, by its pid. */
static const off_t LIVES = (off_t)1 << 40;
enum { TURN_NS = 10000000, TURNS = 5000 };

static int log_file = -1;

/* 0, or negative: there is no room. What is there already has some. */
static int note(uint32_t scope, int32_t what)
{
	errno = EFBIG;
	if (log_file >= 0 && (scope >= CHANGES || pwrite(log_file, &what, sizeof(what),
							 (off_t)(sizeof(what) * scope)) < 0))
		return -1;
	return 0;
}

static int fail_log(struct nb_error *error)
{
	return nb_fail_errno(error, OPERATION,
			     "look at /run/netbench/locks on that host, and for room there",
			     "what was undone there");
}

int nb_note_held(uint32_t scope, struct nb_error *error)
{
	return note(scope, (int32_t)getpid()) ? fail_log(error) : 0;
}

void nb_note_leaving(uint32_t scope)
{
	note(scope, -(int32_t)getpid());
}

void nb_note_undone(uint32_t scope, int failed)
{
	note(scope, failed ? FAILED : UNDONE);
}

/* The next entries of a log from a number on: how many. */
static size_t read_from(int fd, uint32_t scope, int32_t entries[BATCH])
{
	ssize_t got =
		pread(fd, entries, BATCH * sizeof(*entries), (off_t)(sizeof(*entries) * scope));

	return got > 0 ? (size_t)got / sizeof(*entries) : 0;
}

int nb_log_has(pid_t pid)
{
	return log_file >= 0 && pid > 0 && nb_lock_held(log_file, LIVES + pid, 1) > 0;
}

/* How much from a scope on other processes hold, or held when they died; *stay: one of them does
 * not undo it, 1: yet, 2: it is dead. `text`: the pids of those that live, one a line, some more
 * than once. */
static size_t held_from(int fd, uint32_t scope, int *stay, FILE *text)
{
	int32_t entries[BATCH], pid, last = 0;
	size_t held = 0, count;
	int lives;

	*stay = 0;
	for (; (count = read_from(fd, scope, entries)); scope += (uint32_t)count)
		for (size_t i = 0; i < count; i++) {
			pid = entries[i] > FAILED ? abs(entries[i]) : 0;
			if (!pid || pid == (int32_t)getpid())
				continue;
			lives = nb_lock_held(fd, LIVES + pid, 1) > 0;
			*stay = !lives || *stay > 1 ? 2 : *stay | (entries[i] > 0);
			held++;
			if (text && lives && pid != last)
				fprintf(text, "%d\n", last = pid);
		}
	return held;
}

int nb_await_turn(uint32_t scope, int *tries)
{
	size_t before = 0, now;
	int stay, looks = 0;

	while (log_file >= 0 && *tries > 0 && (now = held_from(log_file, scope + 1, &stay, NULL))) {
		looks = now == before ? looks + 1 : 0;
		*tries -= looks ? stay : 0;
		if (looks > TURNS)
			*tries = 0;
		before = now;
		nb_heartbeat();
		nb_sleep(TURN_NS);
	}
	return log_file < 0 || *tries > 0;
}

/* The name of a campaign's log, by the 32 digits that its journal is known by. 0, or a negative
 * code. */
static int name_log(const struct nb_target *target, char name[64], struct nb_error *error)
{
	const char *campaign = nb_target_word(target, 0);

	snprintf(name, 64, "undone-%u-%.32s", (unsigned int)nb_client_account(), campaign);
	return strlen(campaign) == 32 && strspn(campaign, "0123456789abcdef") == 32
		       ? 0
		       : nb_fail(error, NB_ERR_REQUEST, OPERATION, NB_SAME_VERSION,
				 "'%.40s' is no campaign", campaign);
}

/* Numbers from one on that were undone, "FIRST LAST" a line; or `holders`: of processes. */
static int get_undone(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	uint32_t scope = (uint32_t)strtoul(nb_target_word(target, 1), NULL, 10), first = scope;
	int32_t entries[BATCH];
	char name[64];
	int status = name_log(target, name, error), fd = status ? -1 : nb_lock_open(name, 0);
	size_t count;
	int stay;

	if (!status && fd < 0 && errno != ENOENT && !geteuid())
		return fail_log(error);
	if (fd >= 0 && !strcmp(nb_target_word(target, 1), "holders")) {
		held_from(fd, 0, &stay, text);
		if (log_file < 0)
			log_file = dup(fd); /* these may have to be ended */
	} else {
		for (; fd >= 0 && (count = read_from(fd, scope, entries)); scope += (uint32_t)count)
			for (uint32_t i = 0; i < count; i++) {
				if (entries[i] == UNDONE)
					continue;
				if (first < scope + i)
					fprintf(text, "%u %u\n", first, scope + i - 1);
				first = scope + i + 1;
			}
		if (first < scope)
			fprintf(text, "%u %u\n", first, scope - 1);
	}
	close(fd);
	return status;
}

/* A log of one that lives: -1; of one that has died: 1; of that one that was begun, no more, is
 * removed: 0. */
static int is_left(int folder, const char *name, struct stat *of)
{
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int lives = fd < 0 || fstat(fd, of) || nb_lock_held(fd, LIVES, 0) > 0;

	close(fd);
	return lives ? -1 : of->st_size > (off_t)sizeof(int32_t) || unlinkat(folder, name, 0);
}

/* Of an account's logs, "undone-UID-CAMPAIGN", LOGS remain, the newest of those that have died, of
 * which one that goes has `restore` put back all. 0, or 1 with errno: more live. */
static int make_room(int folder, const char *name)
{
	size_t own = strlen(name) - 32, logs = 0;
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left;
	DIR *listed = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	struct stat of, least = { 0 };
	char oldest[64] = "";

	while (listed && (entry = readdir(listed))) {
		left = strncmp(entry->d_name, name, own) ? 0 : is_left(folder, entry->d_name, &of);
		logs += left != 0;
		if (left > 0 && (!*oldest || of.st_mtime < least.st_mtime)) {
			least = of;
			snprintf(oldest, sizeof(oldest), "%.63s", entry->d_name);
		}
	}
	if (listed)
		closedir(listed);
	errno = EDQUOT;
	return logs > LOGS && (!*oldest || (unlinkat(folder, oldest, 0) && errno != ENOENT));
}

static int set_undone(const struct nb_target *target, const char *value, struct nb_error *error)
{
	char name[64];
	int status = name_log(target, name, error), folder = status ? -1 : nb_lock_folder();
	int failed = *value == '-', is_new;

	if (status)
		return status;
	if (folder < 0)
		return fail_log(error);
	is_new = faccessat(folder, name, F_OK, 0);
	close(log_file);
	log_file = -1;
	if (!strcmp(value, "end")) {
		status = unlinkat(folder, name, 0) && errno != ENOENT ? fail_log(error) : 0;
	} else if ((log_file = nb_lock_open(name, O_CREAT)) < 0 ||
		   nb_lock_byte(log_file, LIVES + getpid()) ||
		   (is_new && nb_client_account() && make_room(folder, name)) ||
		   /* `begin` is 0: who shares the log sees that it is there. */
		   note((uint32_t)strtoul(value + failed, NULL, 10), failed ? FAILED : UNDONE)) {
		status = fail_log(error);
		if (is_new) {
			close(log_file);
			unlinkat(folder, name, 0);
			log_file = -1;
		}
	}
	close(folder);
	return status;
}

const struct nb_op nb_op_undone = {
	.name = OPERATION,
	.about = "scopes from a number on that workers of a campaign have undone on this kernel, "
		 "or `holders`, processes that hold some; takes `begin`, `end`, a number, or "
		 "-number of what is changed again",
	.words = 2,
	.lasting = 1,
	.get = get_undone,
	.set = set_undone,
};
