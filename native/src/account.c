/* SPDX-License-Identifier: MIT */
/*
 * Accounts are looked up by id(1) and getent(1): a static executable has no name service of its
 * own, so it would miss accounts that are not in /etc/passwd.
 */
#include "account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

enum { GROUPS_MAX = 256 };

static const char OPERATION[] = "run_as";
static const uint64_t LIMIT_NS = 8000000000;

struct account {
	uid_t user;
	gid_t group; /* the first of its groups */
	gid_t groups[GROUPS_MAX];
	size_t count;
	char home[256];
};

/* Read whole numbers, separated by white space, into `numbers`; how many there are, 0 where the
 * text is something else. */
static size_t read_numbers(const char *text, gid_t *numbers, size_t room)
{
	size_t count = 0;
	char *end;

	for (text += strspn(text, " \n"); *text; text = end + strspn(end, " \n")) {
		unsigned long number = strtoul(text, &end, 10);

		if (end == text || count == room || number >= (gid_t)-1)
			return 0;
		numbers[count++] = (gid_t)number;
	}
	return count;
}

/* The numbers that `id OPTION USER` prints, `room` at most. */
static int ask_id(const char *option, const char *user, gid_t *numbers, size_t room, size_t *count,
		  struct nb_error *error)
{
	char words[300], text[4096];
	int length = snprintf(words, sizeof(words), "id%c%s%c--%c%s", 0, option, 0, 0, user);
	int status = length < (int)sizeof(words)
			     ? nb_exec(words, (size_t)length, LIMIT_NS, text, sizeof(text), error)
			     : 1;

	if (status > 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION,
			       "name an account of this host: `getent passwd` lists them",
			       "this host has no user '%.60s'", user);
	*count = status ? 0 : read_numbers(text, numbers, room);
	return status || *count ? status
				: nb_fail(error, NB_ERR_SYSTEM, OPERATION, "try it by hand",
					  "`id %s` printed '%.60s'", option, text);
}

static int look_up(const char *user, struct account *account, struct nb_error *error)
{
	size_t one;
	int status = ask_id("-u", user, &account->user, 1, &one, error);

	if (!status)
		status = ask_id("-g", user, &account->group, 1, &one, error);
	return status ? status
		      : ask_id("-G", user, account->groups, GROUPS_MAX, &account->count, error);
}

/* The home in lines of passwd(5), where one is the user's: whether it is. Closes the file. */
static int take_home(FILE *file, const char *user, struct account *account)
{
	const struct passwd *entry;
	int found = 0;

	while (file && !found && (entry = fgetpwent(file)))
		found = !strcmp(entry->pw_name, user) && entry->pw_dir[0] == '/' &&
			snprintf(account->home, sizeof(account->home), "%s", entry->pw_dir) <
				(int)sizeof(account->home);
	if (file)
		fclose(file);
	return found;
}

/* The user's home: of /etc/passwd, else what getent(1) says, else "/". */
static void find_home(const char *user, struct account *account)
{
	char text[4096], words[300];
	int length;

	if (take_home(fopen("/etc/passwd", "re"), user, account))
		return;
	length = snprintf(words, sizeof(words), "getent%cpasswd%c%s", 0, 0, user);
	if (length >= (int)sizeof(words) ||
	    nb_exec(words, (size_t)length, LIMIT_NS, text, sizeof(text), NULL) || !text[0] ||
	    !take_home(fmemopen(text, strlen(text), "r"), user, account))
		strcpy(account->home, "/");
}

/* Of root's environment nothing stays but the language: also in memory, where the user could read
 * it. */
static void enter_environment(const char *user, const struct account *account)
{
	char language[64];
	const char *set = getenv("LANG");
	int has_language = set && strlen(set) < sizeof(language);

	if (has_language)
		strcpy(language, set);
	nb_program_clear_environment();
	if (has_language)
		setenv("LANG", language, 1);
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
	struct account account;
	int status;

	if (!user[0])
		return 0;
	status = look_up(user, &account, error);
	if (status || (geteuid() == account.user && account.user))
		return status;
	find_home(user, &account);
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
