/* SPDX-License-Identifier: MIT */
#include "nfsd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nfsd/export.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../proc_text.h"

enum {
	FSID_NUM = 1,
	SQUASHED = NFSEXP_READONLY | NFSEXP_ROOTSQUASH | NFSEXP_ALLSQUASH | NFSEXP_FSID,
	WAY = NFSEXP_V4ROOT | NFSEXP_NOSUBTREECHECK
};

static const char DOMAIN_NAME[] = "netbench";
static const char *const caches[] = { "auth.unix.ip", "nfsd.export", "nfsd.fh" };

struct nb_nfsd nb_nfsd_at(const struct nb_export_target *target, struct nb_error *error)
{
	struct nb_nfsd nfsd = { .target = target, .error = error };

	snprintf(nfsd.place, sizeof(nfsd.place), "/run/netbench.nfsd-%.64s", target->address);
	snprintf(nfsd.saved, sizeof(nfsd.saved), "%s.was", nfsd.place);
	return nfsd;
}

int nb_nfsd_fail(const struct nb_nfsd *nfsd, const char *what)
{
	return nb_fail_errno(nfsd->error, "export", "run as root, and look at `dmesg`", "%s", what);
}

int nb_nfsd_read(const char *place, const char *name, char *text, size_t room)
{
	char path[160];
	ssize_t got;

	snprintf(path, sizeof(path), "%s/%s", place, name);
	got = nb_read_file(path, text, room);
	text[strcspn(text, "\n")] = 0;
	return got < 0 ? -1 : 0;
}

int nb_nfsd_write_path(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(text),
		written = fd >= 0 ? write(fd, text, (size_t)length) : -1;
	int number = errno;

	if (fd >= 0)
		close(fd);
	errno = number;
	return written == length ? 0 : -1;
}

int nb_nfsd_write(const struct nb_nfsd *nfsd, const char *name, const char *format, ...)
{
	char path[160], text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", nfsd->place, name);
	return nb_nfsd_write_path(path, text) ? nb_nfsd_fail(nfsd, path) : 0;
}

int nb_nfsd_is_mounted(const struct nb_nfsd *nfsd)
{
	char text[8];

	return !nb_nfsd_read(nfsd->place, "threads", text, sizeof(text));
}

int nb_nfsd_mount(const struct nb_nfsd *nfsd)
{
	if (nb_nfsd_is_mounted(nfsd))
		return nb_fail(nfsd->error, NB_ERR_REQUEST, "export",
			       "run `netbench restore`: it removes what an earlier run left",
			       "%s is mounted already", nfsd->place);
	if ((mkdir(nfsd->place, 0700) && errno != EEXIST) ||
	    mount("nfsd", nfsd->place, "nfsd", 0, NULL))
		return nb_nfsd_fail(nfsd, nfsd->place);
	return 0;
}

int nb_nfsd_unmount(const struct nb_nfsd *nfsd)
{
	if (nb_nfsd_is_mounted(nfsd) && umount(nfsd->place))
		return nb_nfsd_fail(nfsd, nfsd->place);
	if ((unlink(nfsd->saved) && errno != ENOENT) || (rmdir(nfsd->place) && errno != ENOENT))
		return nb_nfsd_fail(nfsd, nfsd->place);
	return 0;
}

/* Write a line to one of the caches. */
__attribute__((format(printf, 3, 4))) static int write_line(const struct nb_nfsd *nfsd,
							    const char *cache, const char *format,
							    ...)
{
	char path[64], text[NB_ESCAPED_PATH + 255];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "/proc/net/rpc/%s/channel", cache);
	errno = ENAMETOOLONG;
	if (length < (int)sizeof(text) && !nb_nfsd_write_path(path, text))
		return 0;
	return nb_fail_errno(
		nfsd->error, "export",
		"export a folder of a file system that NFS can serve (ext4, xfs, btrfs, tmpfs)",
		"%s to %s", nfsd->target->folder, path);
}

/* One folder, `length` bytes of the path, with the number by which file handles name its export. */
static int allow_path(const struct nb_nfsd *nfsd, size_t length, uint32_t number,
		      unsigned int flags, long long until)
{
	struct nb_export_reader reader = nb_export_reader(nfsd->target);
	unsigned char id[sizeof(number)];
	char path[NB_ESCAPED_PATH];
	int status;

	memcpy(id, &number, sizeof(id));
	nb_export_escape(path, nfsd->target->folder, length);
	status = write_line(nfsd, "nfsd.export", "%s %s %lld %u %d %d %u\n", DOMAIN_NAME, path,
			    until, flags | SQUASHED, (int)reader.user, (int)reader.group, number);
	if (status)
		return status;
	return write_line(nfsd, "nfsd.fh", "%s %d \\x%02x%02x%02x%02x %lld %s\n", DOMAIN_NAME,
			  FSID_NUM, id[0], id[1], id[2], id[3], until, path);
}

int nb_nfsd_allow_folder(const struct nb_nfsd *nfsd, long long until)
{
	const char *folder = nfsd->target->folder;
	size_t length = strlen(folder);
	uint32_t number = 0;
	int status = 0;

	/* Those above are only the way to it: of V4ROOT nothing but other exports can be seen. */
	if (length > 1)
		status = allow_path(nfsd, 1, number++, WAY, until);
	for (size_t at = 1; !status && at < length; at++)
		if (folder[at] == '/')
			status = allow_path(nfsd, at, number++, WAY, until);
	return status ? status : allow_path(nfsd, length, number, 0, until);
}

int nb_nfsd_allow_clients(const struct nb_nfsd *nfsd, long long until)
{
	const char *at = nfsd->target->clients, *client;
	size_t length;
	int status = 0;

	while (!status && (length = nb_export_next_client(&at, &client)) > 0)
		status = write_line(nfsd, "auth.unix.ip", "nfsd %.*s %lld %s\n", (int)length,
				    client, until, DOMAIN_NAME);
	return status;
}

int nb_nfsd_is_allowed(const struct nb_export_target *target)
{
	FILE *file = fopen("/proc/net/rpc/nfsd.export/content", "re");
	char wanted[NB_ESCAPED_PATH + 32], *line = NULL;
	size_t room = 0, length;
	int found = 0;

	nb_export_escape(wanted, target->folder, strlen(target->folder));
	length = strlen(wanted);
	length += (size_t)snprintf(wanted + length, 32, "\t%s(", DOMAIN_NAME);
	while (file && !found && getline(&line, &room, file) > 0)
		found = !strncmp(line, wanted, length);
	free(line);
	if (file)
		fclose(file);
	return found;
}

int nb_nfsd_flush(const struct nb_nfsd *nfsd)
{
	char path[64], text[24];

	snprintf(text, sizeof(text), "%lld\n", (long long)time(NULL));
	for (size_t i = 0; i < NB_LENGTH(caches); i++) {
		snprintf(path, sizeof(path), "/proc/net/rpc/%s/flush", caches[i]);
		if (nb_nfsd_write_path(path, text))
			return nb_nfsd_fail(nfsd, path);
	}
	return 0;
}
