/* SPDX-License-Identifier: MIT */
/* Accounts are looked up by id(1) and getent(1): a static executable has no name service of its
 * own, so it would miss accounts that are not in /etc/passwd. */
#include "worker.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

enum { GROUPS_MAX = 256 };

static const char OPERATION[] = "run_as";
static const uint64_t LIMIT_NS = 8000000000;
static const uid_t NO_ID = (uid_t)-1; /* setresuid(2) and setresgid(2) would leave root's */

struct account {
	uid_t user;
	gid_t group;
	gid_t groups[GROUPS_MAX];
	size_t count;
	char home[256];
};

/* The account in lines of passwd(5), where one is the user's: whether it is. Closes the file. */
static int take_entry(FILE *file, const char *user, struct account *account)
{
	const struct passwd *entry;
	int found = 0;

	while (file && !found && (entry = fgetpwent(file)))
		if (!strcmp(entry->pw_name, user) && entry->pw_uid != NO_ID &&
		    entry->pw_gid != NO_ID) {
			found = 1;
			account->user = entry->pw_uid;
			account->group = entry->pw_gid;
			if (entry->pw_dir[0] != '/' ||
			    snprintf(account->home, sizeof(account->home), "%s", entry->pw_dir) >=
				    (int)sizeof(account->home))
				strcpy(account->home, "/");
		}
	if (file)
		fclose(file);
	return found;
}

static int ask(const char *program, const char *what, const char *user, char *text, size_t room)
{
	char words[300];
	int length = snprintf(words, sizeof(words), "%s%c%s%c--%c%s", program, 0, what, 0, 0, user);

	text[0] = 0;
	return length >= (int)sizeof(words) ||
	       nb_exec(words, (size_t)length, LIMIT_NS, text, room, NULL);
}

static int look_up(const char *user, struct account *account, struct nb_error *error)
{
	char text[4096], *at = text, *end;

	if (!take_entry(fopen("/etc/passwd", "re"), user, account) &&
	    (ask("getent", "passwd", user, text, sizeof(text)) || !text[0] ||
	     !take_entry(fmemopen(text, strlen(text), "r"), user, account)))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION,
			       "name an account of this host: `getent passwd` lists them",
			       "this host has no user '%.60s'", user);
	if (!ask("id", "-G", user, text, sizeof(text)))
		for (;; at = end) {
			gid_t group = (gid_t)strtoul(at, &end, 10);

			if (end == at)
				break;
			if (account->count == GROUPS_MAX)
				return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
					       "name an account of fewer groups",
					       "'%.60s' is in more than %d groups", user,
					       GROUPS_MAX);
			account->groups[account->count++] = group;
		}
	return account->count ? 0
			      : nb_fail(error, NB_ERR_SYSTEM, OPERATION, "try it by hand",
					"`id -G` printed '%.60s'", text);
}

/* Of root's environment nothing stays: also in memory, where the user could read it. */
static void enter_environment(const char *user, const struct account *account)
{
	nb_program_clear_environment();
	setenv("HOME", account->home, 1);
	setenv("USER", user, 1);
	setenv("LOGNAME", user, 1);
}

/* Keys that root's session holds are nobody else's: keyrings(7). Where the system call is missing
 * or forbidden, programs cannot ask for keys either. */
static int leave_keyring(void)
{
	static const int JOIN_SESSION_KEYRING = 1;

	return syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	       errno != EPERM;
}

int nb_become(const char *user, struct nb_error *error)
{
	struct account account = { .count = 0 };
	int status;

	if (!user[0])
		return 0;
	status = look_up(user, &account, error);
	if (status || (geteuid() == account.user && account.user))
		return status;
	enter_environment(user, &account);
	if (setgroups(account.count, account.groups) ||
	    setresgid(account.group, account.group, account.group) ||
	    setresuid(account.user, account.user, account.user) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || leave_keyring() ||
	    (chdir(account.home) && chdir("/")))
		return nb_fail_errno(error, OPERATION,
				     "log in as root or as that user, or leave run_as out",
				     "becoming the user '%.60s'", user);
	prctl(PR_SET_DUMPABLE, 1); /* else the files of /proc/self stay root's */
	return 0;
}
