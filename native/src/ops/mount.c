/* SPDX-License-Identifier: MIT */
/*
 * NFS mounts at a folder of their own, by mount(2) with the options that the kernel itself takes
 * (nfs(5)): no mount.nfs is needed. The value is the source, a line's end, and the options; `none`
 * is no mount, and no folder.
 */
#include <errno.h>
#include <mntent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../clock.h"
#include "../heartbeat.h"
#include "../kernel.h"
#include "op.h"

static const char OPERATION[] = "mount", NONE[] = "none";
static const uint64_t MOUNT_NS = 40000000000, UNMOUNT_NS = 5000000000;
static const struct timespec PAUSE = { .tv_nsec = 10000000 };

/* A call that waits for a server: its thread may outlive the wait for it, so that what it needs is
 * its own. */
struct mount_call {
	char *source; /* NULL: unmount */
	char *folder;
	char *options;
	int number; /* errno */
};

/* The mount at a folder that was made last, as "SOURCE OPTIONS"; "none". */
static int look(const char *folder, struct nb_text *text, struct nb_error *error)
{
	FILE *file = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;

	if (!file)
		return nb_fail_errno(error, OPERATION, "allow this user to read it",
				     "/proc/self/mounts");
	nb_text_add(text, "%s\n", NONE);
	while ((entry = getmntent(file))) {
		if (strcmp(entry->mnt_dir, folder) != 0)
			continue;
		text->used = 0;
		nb_text_add(text, "%s %s\n", entry->mnt_fsname, entry->mnt_opts);
	}
	endmntent(file);
	return 0;
}

static int get_mount(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	if (!nb_kernel_has("nfs4", "nfsv4") && !nb_kernel_has("nfs", "nfs"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "boot a kernel that has it (CONFIG_NFS_FS, CONFIG_NFS_V4), or "
			       "install its modules",
			       "this kernel has no NFS client");
	return look(target->words, text, error);
}

static void *run(void *given)
{
	struct mount_call *call = given;
	unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME;
	int status = call->source ? mount(call->source, call->folder, "nfs", flags, call->options)
				  : umount2(call->folder, MNT_FORCE | MNT_DETACH);

	call->number = status ? errno : 0;
	return NULL;
}

static void forget(struct mount_call *call)
{
	free(call->source);
	free(call->folder);
	free(call->options);
	free(call);
}

/* Run an call in a thread and wait for it, alive to the controller. Returns its errno; ETIMEDOUT:
 * it goes on by itself. */
static int run_in_thread(struct mount_call *call, uint64_t limit)
{
	uint64_t deadline = nb_now() + limit;
	pthread_t thread;
	int number = call->folder && (!call->source || call->options)
			     ? pthread_create(&thread, NULL, run, call)
			     : ENOMEM;

	if (number) {
		forget(call);
		return number;
	}
	while (pthread_tryjoin_np(thread, NULL)) {
		if (nb_now() > deadline) {
			pthread_detach(thread); /* what it was given is never freed: it may still
						   read that */
			return ETIMEDOUT;
		}
		nb_heartbeat();
		nanosleep(&PAUSE, NULL);
	}
	number = call->number;
	forget(call);
	return number;
}

static struct mount_call *new_mount_call(const char *source, size_t length, const char *folder,
					 const char *options)
{
	struct mount_call *call = calloc(1, sizeof(*call));

	if (call) {
		call->source = source ? strndup(source, length) : NULL;
		call->folder = strdup(folder);
		call->options = options ? strdup(options) : NULL;
	}
	return call;
}

/* Whether nothing is mounted there any more. */
static int is_gone(const char *folder)
{
	char now[512];
	struct nb_text text = { .data = now, .room = sizeof(now) };

	return !look(folder, &text, NULL) && !text.full && !strcmp(now, "none\n");
}

static int unmount(const char *folder, struct nb_error *error)
{
	struct mount_call *call = new_mount_call(NULL, 0, folder, NULL);
	int number = is_gone(folder) ? 0 : call ? run_in_thread(call, UNMOUNT_NS) : ENOMEM;

	/* The kernel takes leave of a server that may be gone too; the folder is free as soon as
	 * nothing is there. */
	if (number && !is_gone(folder)) {
		errno = number;
		return nb_fail_errno(
			error, "unmount",
			"stop the processes that use it, and unmount it by hand (umount -f -l)",
			"%s", folder);
	}
	if (rmdir(folder) && errno != ENOENT)
		return nb_fail_errno(error, "unmount", "remove it by hand (rmdir)", "the folder %s",
				     folder);
	return 0;
}

static const char *remedy_of(int number)
{
	switch (number) {
	case ECONNREFUSED:
	case ENOENT:
	case EACCES:
	case EPERM:
		return "see that the sender exports the file's folder to this host: the setting "
		       "nfs is for both, so write it "
		       "without sender. and receiver.";
	case EINVAL:
		return "use options of nfs(5) that this kernel knows";
	case EPROTONOSUPPORT:
		return "use another vers: the server offers others";
	default:
		return "look at the path between the data addresses, and what dmesg says on both "
		       "hosts";
	}
}

static int make(const char *folder, const char *source, size_t length, const char *options,
		struct nb_error *error)
{
	struct mount_call *call;
	int number;

	if (mkdir(folder, 0700))
		return nb_fail_errno(error, OPERATION,
				     "run as root, and remove a folder that is in the way",
				     "the folder %s", folder);
	call = new_mount_call(source, length, folder, options);
	number = call ? run_in_thread(call, MOUNT_NS) : ENOMEM;
	if (!number)
		return 0;
	if (number != ETIMEDOUT)
		rmdir(folder);
	errno = number;
	return nb_fail_errno(error, OPERATION, remedy_of(number), "%.*s with %.150s", (int)length,
			     source, options);
}

static int set_mount(const struct nb_target *target, const char *value, struct nb_error *error)
{
	size_t length = strcspn(value, "\n");

	if (length == strlen(NONE) && !strncmp(value, NONE, length))
		return unmount(target->words, error);
	if (!value[length])
		return nb_fail(error, NB_ERR_REQUEST, OPERATION,
			       "write the source, a newline, and the options",
			       "'%.70s' is not a mount request", value);
	if (!is_gone(target->words))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "unmount it (umount -f -l)",
			       "something is mounted at %s already", target->words);
	return make(target->words, value, length, value + length + 1, error);
}

const struct nb_op nb_op_mount = {
	.name = "mount",
	.about = "an NFS mount, read-only, at a folder that is made for it",
	.words = 1,
	.get = get_mount,
	.set = set_mount,
};
