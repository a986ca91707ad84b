/* SPDX-License-Identifier: MIT */
#include "nfsd_cache.h"

#include <errno.h>
#include <linux/nfsd/export.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export_reader.h"

enum {
	FSID_NUM = 1,
	SQUASHED = NFSEXP_READONLY | NFSEXP_ROOTSQUASH | NFSEXP_ALLSQUASH | NFSEXP_FSID,
	WAY = NFSEXP_V4ROOT | NFSEXP_NOSUBTREECHECK
};

static const char DOMAIN_NAME[] = "netbench";
static const char *const caches[] = { "auth.unix.ip", "nfsd.export", "nfsd.fh" };

/* Write a line to one of the caches. */
__attribute__((format(printf, 4, 5))) static int write_line(const struct nb_nfsd *nfsd,
							    const struct nb_export_target *target,
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
		"%s to %s", target->folder, path);
}

/* One folder, `length` bytes of the path, with the number by which file handles name its export. */
static int allow_path(const struct nb_nfsd *nfsd, const struct nb_export_target *target,
		      size_t length, uint32_t number, unsigned int flags, long long until)
{
	struct nb_export_reader reader = nb_export_reader(target);
	unsigned char id[sizeof(number)];
	char path[NB_ESCAPED_PATH];
	int status;

	memcpy(id, &number, sizeof(id));
	nb_export_escape(path, target->folder, length);
	status = write_line(nfsd, target, "nfsd.export", "%s %s %lld %u %d %d %u\n", DOMAIN_NAME,
			    path, until, flags | SQUASHED, (int)reader.user, (int)reader.group,
			    number);
	if (status)
		return status;
	return write_line(nfsd, target, "nfsd.fh", "%s %d \\x%02x%02x%02x%02x %lld %s\n",
			  DOMAIN_NAME, FSID_NUM, id[0], id[1], id[2], id[3], until, path);
}

int nb_nfsd_allow_folder(const struct nb_nfsd *nfsd, const struct nb_export_target *target,
			 long long until)
{
	const char *folder = target->folder;
	size_t length = strlen(folder);
	uint32_t number = 0;
	int status = 0;

	/* Those above are only the way to it: of V4ROOT nothing but other exports can be seen. */
	if (length > 1)
		status = allow_path(nfsd, target, 1, number++, WAY, until);
	for (size_t at = 1; !status && at < length; at++)
		if (folder[at] == '/')
			status = allow_path(nfsd, target, at, number++, WAY, until);
	return status ? status : allow_path(nfsd, target, length, number, 0, until);
}

int nb_nfsd_allow_clients(const struct nb_nfsd *nfsd, const struct nb_export_target *target,
			  long long until)
{
	const char *at = target->clients, *client;
	size_t length;
	int status = 0;

	while (!status && (length = nb_export_next_client(&at, &client)) > 0)
		status = write_line(nfsd, target, "auth.unix.ip", "nfsd %.*s %lld %s\n",
				    (int)length, client, until, DOMAIN_NAME);
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
