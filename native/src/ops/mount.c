/* SPDX-License-Identifier: MIT */
/* NFS mounts at a folder of their own, by mount(8) with the options that the kernel itself takes
 * (nfs(5)): no mount.nfs is needed. The value is the source, a line's end, and the options; `none`
 * is no mount, and no folder. */
#include <errno.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guard.h"
#include "../proc_text.h"
#include "op.h"

static const char OPERATION[] = "mount", NONE[] = "none";
static const uint64_t MOUNT_NS = 40000000000, UNMOUNT_NS = 5000000000;

/* The mount at a folder that was made last, as "SOURCE OPTIONS" for free(), or NULL in *found. */
static int look(const char *folder, char **found, struct nb_error *error)
{
	FILE *file = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;

	*found = NULL;
	if (!file)
		return nb_fail_errno(error, OPERATION, "allow this user to read it",
				     "/proc/self/mounts");
	while ((entry = getmntent(file))) {
		if (strcmp(entry->mnt_dir, folder) != 0)
			continue;
		free(*found);
		if (asprintf(found, "%s %s", entry->mnt_fsname, entry->mnt_opts) < 0)
			*found = NULL;
	}
	endmntent(file);
	return 0;
}

static int get_mount(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	char *found;
	int status;

	if (!nb_kernel_has("nfs4", "nfs"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "boot a kernel that has it (CONFIG_NFS_FS, CONFIG_NFS_V4), or "
			       "install its modules",
			       "this kernel has no NFS client");
	status = look(target->words, &found, error);
	if (!status)
		fprintf(text, "%s\n", found ? found : NONE);
	free(found);
	return status;
}

static int is_gone(const char *folder)
{
	char *found;
	int is = !look(folder, &found, NULL) && !found;

	free(found);
	return is;
}

static int unmount(const char *folder, struct nb_error *error)
{
	char words[4200], output[512];
	int length = snprintf(words, sizeof(words), "umount%c-f%c-l%c--%c%s", 0, 0, 0, 0, folder);
	int status = is_gone(folder) ? 0
				     : nb_exec(words, (size_t)length, UNMOUNT_NS, output,
					       sizeof(output), error);

	/* The kernel takes leave of a server that may be gone too; the folder is free as soon as
	 * nothing is there. */
	if (status && !is_gone(folder))
		return status < 0
			       ? status
			       : nb_fail(error, NB_ERR_SYSTEM, "unmount",
					 "stop the processes that use it, and unmount it by hand "
					 "(umount -f -l)",
					 "%s: %.150s", folder, output);
	if (rmdir(folder) && errno != ENOENT)
		return nb_fail_errno(error, "unmount", "remove it by hand (rmdir)", "the folder %s",
				     folder);
	return 0;
}

/* Ours are the last of the options, which mount(8) gives the word: the campaign's cannot take them
 * back. */
static int make(const char *folder, const char *source, size_t length, const char *options,
		struct nb_error *error)
{
	char words[8192], output[512];
	int used =
		snprintf(words, sizeof(words),
			 "mount%c-i%c-t%cnfs%c-o%c%s,ro,nosuid,nodev,noexec,noatime%c--%c%.*s%c%s",
			 0, 0, 0, 0, 0, options, 0, 0, (int)length, source, 0, folder);
	int status;

	if (used >= (int)sizeof(words))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "use fewer options",
			       "a mount request of %d bytes", used);
	/* An empty one is what a worker left that was killed. */
	if (mkdir(folder, 0700) && (errno != EEXIST || rmdir(folder) || mkdir(folder, 0700)))
		return nb_fail_errno(error, OPERATION,
				     "run as root, and remove a folder that is in the way",
				     "the folder %s", folder);
	status = nb_exec(words, (size_t)used, MOUNT_NS, output, sizeof(output), error);
	if (!status)
		return 0;
	rmdir(folder);
	return status < 0
		       ? status
		       : nb_fail(error, NB_ERR_SYSTEM, OPERATION,
				 "see that the sender exports the file's folder to this host (the "
				 "setting nfs is for both, so write it without sender. and "
				 "receiver.), and use options of nfs(5) that this kernel knows",
				 "%.*s: %.200s", (int)length, source, output);
}

static int set_mount(const struct nb_target *target, const char *value, struct nb_error *error)
{
	size_t length = strcspn(value, "\n");

	if (length == strlen(NONE) && !strncmp(value, NONE, length))
		return unmount(target->words, error);
	if (!value[length] || !memmem(value, length, ":/", 2))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION,
			       "write the source (HOST:/FOLDER), a newline, and the options",
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
