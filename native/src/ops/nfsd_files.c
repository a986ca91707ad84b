/* SPDX-License-Identifier: MIT */
#include "nfsd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct nb_nfsd nb_nfsd_at(const char *address, struct nb_error *error)
{
	struct nb_nfsd nfsd = { .error = error };

	snprintf(nfsd.place, sizeof(nfsd.place), "/run/netbench.nfsd-%.64s", address);
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
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", place, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, room - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = 0;
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
