/* SPDX-License-Identifier: MIT */
/* A folder, read-only, by NFSv4 over TCP from one address of this host to some others: by the
 * kernel's server of this network namespace, through its files (nfsd(7)) at a mount of their own.
 * The caches in which it looks up clients and exports are filled here, as mountd(8) does otherwise
 * (Documentation/filesystems/nfs/rpc-cache.rst). */
#include <errno.h>
#include <fcntl.h>
#include <linux/nfsd/export.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../data_socket.h"
#include "../proc_text.h"
#include "op.h"

enum {
	PORT = 2049,
	THREADS = 8,	 /* as rpc.nfsd(8) has it */
	BLOCK = 1048576, /* most that a read may ask for */
	VALUE = 96,	 /* of a file of nfsd's */
	ESCAPED_PATH = 4 * 4096 + 1,
};

enum {
	FSID_NUM = 1,
	SQUASHED = NFSEXP_READONLY | NFSEXP_ROOTSQUASH | NFSEXP_ALLSQUASH | NFSEXP_FSID,
	WAY = NFSEXP_V4ROOT | NFSEXP_NOSUBTREECHECK
};

enum { NOBODY = 65534 };

static const char OPERATION[] = "export", NONE[] = "none";
static const char DOMAIN_NAME[] = "netbench", RPC[] = "/proc/net/rpc";
static const char GRACE[] = "10"; /* seconds; the kernel takes no less */

struct target {
	const char *folder;
	const char *address; /* of this host, where the server listens */
	const char *clients; /* addresses, separated by spaces */
	const char *file;    /* the one that clients read, in the folder */
};

/* A path as the kernel writes it: white space and backslash as octal escapes. */
static void escape(char to[ESCAPED_PATH], const char *path, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (strchr(" \t\n\\", path[i]))
			to += sprintf(to, "\\%03o", (unsigned char)path[i]);
		else
			*to++ = path[i];
	}
	*to = 0;
}

struct nfsd {
	const struct target *target;
	char place[96];		/* where the files are mounted */
	char saved[104];	/* what they read before, for stop of a later worker */
	struct nb_error *error; /* where failures go; may be NULL */
};

/* Where the files are for a server at the address of a target. */
static struct nfsd at_address(const struct target *target, struct nb_error *error)
{
	struct nfsd nfsd = { .target = target, .error = error };

	snprintf(nfsd.place, sizeof(nfsd.place), "/run/netbench.nfsd-%.64s", target->address);
	snprintf(nfsd.saved, sizeof(nfsd.saved), "%s.was", nfsd.place);
	return nfsd;
}

static int fail(const struct nfsd *nfsd, const char *what)
{
	return nb_fail_errno(nfsd->error, OPERATION, "run as root, and look at `dmesg`", "%s",
			     what);
}

/* Read the first line of a file. 0, or -1 with errno. */
static int read_line(const char *place, const char *name, char *text, size_t room)
{
	char path[160];
	ssize_t got;

	snprintf(path, sizeof(path), "%s/%s", place, name);
	got = nb_read_file(path, text, room);
	text[strcspn(text, "\n")] = 0;
	return got < 0 ? -1 : 0;
}

/* Write a line in one piece. 0, or a negative code with the error filled. */
__attribute__((format(printf, 4, 5))) static int write_line(const struct nfsd *nfsd,
							    const char *place, const char *name,
							    const char *format, ...)
{
	char path[160], text[ESCAPED_PATH + 255];
	int fd, length, failed;
	va_list args;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", place, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	failed = fd < 0 || write(fd, text, (size_t)length) != length
			 ? nb_fail_errno(nfsd->error, OPERATION,
					 "run as root, export a folder of a file system that NFS "
					 "can serve (ext4, xfs, btrfs, tmpfs), and look at `dmesg`",
					 "%s to %s", nfsd->target->folder, path)
			 : 0;
	if (fd >= 0)
		close(fd);
	return failed;
}

static int is_mounted(const struct nfsd *nfsd)
{
	char text[8];

	return !read_line(nfsd->place, "threads", text, sizeof(text));
}

/* Mount them, which loads the kernel's module. */
static int mount_files(const struct nfsd *nfsd)
{
	if (is_mounted(nfsd))
		return nb_fail(nfsd->error, NB_ERR_REQUEST, OPERATION,
			       "run `netbench restore`: it removes what an earlier run left",
			       "%s is mounted already", nfsd->place);
	if ((mkdir(nfsd->place, 0700) && errno != EEXIST) ||
	    (unlink(nfsd->saved) && errno != ENOENT) || mount("nfsd", nfsd->place, "nfsd", 0, NULL))
		return fail(nfsd, nfsd->place);
	return 0;
}

static int unmount_files(const struct nfsd *nfsd)
{
	if (is_mounted(nfsd) && umount(nfsd->place))
		return fail(nfsd, nfsd->place);
	if ((unlink(nfsd->saved) && errno != ENOENT) || (rmdir(nfsd->place) && errno != ENOENT))
		return fail(nfsd, nfsd->place);
	return 0;
}

/* One folder, `length` bytes of the path, with the number by which file handles name its export.
 * All users of all clients read as the owner of the exported file, or as nobody if that is root. */
static int allow_path(const struct nfsd *nfsd, size_t length, uint32_t number, unsigned int flags,
		      long long until)
{
	struct stat found;
	int owned = !stat(nfsd->target->file, &found) && found.st_uid;
	unsigned char id[sizeof(number)];
	char path[ESCAPED_PATH];
	int status;

	memcpy(id, &number, sizeof(id));
	escape(path, nfsd->target->folder, length);
	status = write_line(nfsd, RPC, "nfsd.export/channel", "%s %s %lld %u %d %d %u\n",
			    DOMAIN_NAME, path, until, flags | SQUASHED,
			    owned ? (int)found.st_uid : NOBODY, owned ? (int)found.st_gid : NOBODY,
			    number);
	if (status)
		return status;
	return write_line(nfsd, RPC, "nfsd.fh/channel", "%s %d \\x%02x%02x%02x%02x %lld %s\n",
			  DOMAIN_NAME, FSID_NUM, id[0], id[1], id[2], id[3], until, path);
}

/* Of the folders above an exported one only the way to it is visible. */
static int allow_folder(const struct nfsd *nfsd, long long until)
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

/* Clients first: they make the domain that folders name. */
static int allow_clients(const struct nfsd *nfsd, long long until)
{
	const char *at = nfsd->target->clients;
	int status = 0;

	for (at += strspn(at, " "); !status && *at; at += strspn(at, " ")) {
		int length = (int)strcspn(at, " ");

		status = write_line(nfsd, RPC, "auth.unix.ip/channel", "nfsd %.*s %lld %s\n",
				    length, at, until, DOMAIN_NAME);
		at += length;
	}
	return status;
}

/* Whether the folder is exported by this server. */
static int is_allowed(const struct target *target)
{
	FILE *file = fopen("/proc/net/rpc/nfsd.export/content", "re");
	char wanted[ESCAPED_PATH + 32], *line = NULL;
	size_t room = 0, length;
	int found = 0;

	escape(wanted, target->folder, strlen(target->folder));
	length = strlen(wanted);
	length += (size_t)snprintf(wanted + length, 32, "\t%s(", DOMAIN_NAME);
	while (file && !found && getline(&line, &room, file) > 0)
		found = !strncmp(line, wanted, length);
	free(line);
	if (file)
		fclose(file);
	return found;
}

static int flush(const struct nfsd *nfsd)
{
	static const char *const caches[] = { "auth.unix.ip/flush", "nfsd.export/flush",
					      "nfsd.fh/flush" };
	int status = 0;

	for (size_t i = 0; !status && i < NB_LENGTH(caches); i++)
		status = write_line(nfsd, RPC, caches[i], "%lld\n", (long long)time(NULL));
	return status;
}

/* A socket that listens on this host's data address. Returns it, or a negative code. */
static int listen_here(const struct nfsd *nfsd)
{
	union nb_address address;
	socklen_t length = nb_address_parse(&address, nfsd->target->address, PORT);
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), one = 1;
	int status, is_six = address.any.sa_family == AF_INET6;

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    (!is_six || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))) &&
	    !bind(fd, &address.any, length) && !listen(fd, 64))
		return fd;
	status = nb_fail_errno(nfsd->error, OPERATION, "free TCP port 2049 of the sender",
			       "port %d of %s", PORT, nfsd->target->address);
	if (fd >= 0)
		close(fd);
	return status;
}

static int add_socket(const struct nfsd *nfsd)
{
	int fd = listen_here(nfsd),
	    status = fd < 0 ? fd : write_line(nfsd, nfsd->place, "portlist", "%d\n", fd);

	if (fd >= 0)
		close(fd); /* the kernel has its own hold on it */
	return status;
}

/* Note what a file reads for the stop, perhaps of a later worker. */
static int note(const struct nfsd *nfsd, const char *name, char was[VALUE])
{
	FILE *file = read_line(nfsd->place, name, was, VALUE) ? NULL : fopen(nfsd->saved, "ae");
	int bad = !file || fprintf(file, "%s %s\n", name, was) < 0;

	if (file && fclose(file))
		bad = 1;
	return bad ? fail(nfsd, nfsd->saved) : 0;
}

static int change(const struct nfsd *nfsd, const char *name, const char *to)
{
	char was[VALUE];
	int status = note(nfsd, name, was);

	return status ? status : write_line(nfsd, nfsd->place, name, "%s\n", to);
}

/* The kernel sizes its largest read by the memory that it has when it first starts. That size is
 * learned from a server that no client can use yet, since what the file reads before that, 0,
 * cannot be written again. */
static int allow_blocks(const struct nfsd *nfsd)
{
	static const char FILE_NAME[] = "max_block_size";
	char was[VALUE];
	int status;

	if ((status = add_socket(nfsd)) || (status = note(nfsd, FILE_NAME, was)) ||
	    (status = write_line(nfsd, nfsd->place, "threads", "0\n")))
		return status;
	return atol(was) >= BLOCK ? 0 : write_line(nfsd, nfsd->place, FILE_NAME, "%d\n", BLOCK);
}

/* No client has anything to reclaim after a restart; a kernel without this file, or one that does
 * not take it yet, waits for GRACE. */
static void end_grace(const struct nfsd *nfsd)
{
	struct nfsd quiet = { .target = nfsd->target };

	write_line(&quiet, nfsd->place, "v4_end_grace", "Y\n");
}

static int start(const struct nfsd *nfsd)
{
	long long until = (long long)time(NULL) + 10LL * 365 * 24 * 3600;
	int status;

	/* Versions 2 and 3 would need rpcbind(8) and mountd(8). */
	if ((status = change(nfsd, "versions", "-2 -3")) ||
	    (status = change(nfsd, "nfsv4gracetime", GRACE)) || (status = allow_blocks(nfsd)) ||
	    (status = add_socket(nfsd)) || (status = allow_clients(nfsd, until)) ||
	    (status = allow_folder(nfsd, until)) ||
	    (status = write_line(nfsd, nfsd->place, "threads", "%d\n", THREADS)))
		return status;
	end_grace(nfsd);
	return 0;
}

static int restore_files(const struct nfsd *nfsd)
{
	FILE *file = fopen(nfsd->saved, "re");
	char name[32], was[VALUE], now[VALUE];
	int status = 0;

	while (!status && file && fscanf(file, "%31s %95[^\n]", name, was) == 2)
		if (read_line(nfsd->place, name, now, sizeof(now)) || strcmp(now, was) != 0)
			status = write_line(nfsd, nfsd->place, name, "%s\n", was);
	if (file)
		fclose(file);
	return status;
}

/* A server without a socket that is asked for no threads makes a socket first, at any address. */
static int end_threads(const struct nfsd *nfsd)
{
	char port[64], threads[16];
	int is_idle = !read_line(nfsd->place, "portlist", port, sizeof(port)) && !port[0] &&
		      !read_line(nfsd->place, "threads", threads, sizeof(threads)) &&
		      !strcmp(threads, "0");

	return is_idle ? 0 : write_line(nfsd, nfsd->place, "threads", "0\n");
}

/* Nothing to stop is no error. */
static int stop_server(const struct target *target, struct nb_error *error)
{
	struct nfsd nfsd = at_address(target, error);
	int status;

	if (is_mounted(&nfsd) && ((status = flush(&nfsd)) || (status = end_threads(&nfsd)) ||
				  (status = restore_files(&nfsd))))
		return status;
	return unmount_files(&nfsd);
}

/* Whatever a failed start has changed is restored. */
static int start_server(const struct target *target, struct nb_error *error)
{
	struct nfsd nfsd = at_address(target, error);
	int status = mount_files(&nfsd);

	if (status)
		return status;
	status = start(&nfsd);
	if (status)
		stop_server(target, NULL);
	return status;
}

static int runs(const struct target *target)
{
	struct nfsd nfsd = at_address(target, NULL);

	return is_mounted(&nfsd);
}

/* Each network namespace has a server of its own; /proc/fs/nfsd is that of the first one. */
static int in_first_namespace(void)
{
	struct stat ours, first;

	return stat("/proc/self/ns/net", &ours) || stat("/proc/1/ns/net", &first) ||
	       (ours.st_ino == first.st_ino && ours.st_dev == first.st_dev);
}

/* Whether a server runs in this network namespace that is not the worker's own. */
static int runs_another(const struct target *target)
{
	char threads[16];

	return in_first_namespace() && !runs(target) &&
	       !read_line("/proc/fs/nfsd", "threads", threads, sizeof(threads)) &&
	       strcmp(threads, "0") != 0;
}

static struct target target_of(const struct nb_target *target)
{
	return (struct target){ .folder = nb_target_word(target, 0),
				.address = nb_target_word(target, 1),
				.clients = nb_target_word(target, 2),
				.file = nb_target_word(target, 3) };
}

static int set_export(const struct nb_target *words, const char *value, struct nb_error *error)
{
	struct target target = target_of(words);

	return strncmp(value, NONE, strlen(NONE)) != 0 ? start_server(&target, error)
						       : stop_server(&target, error);
}

static int get_export(const struct nb_target *words, FILE *text, struct nb_error *error)
{
	struct target target = target_of(words);

	if (strlen(target.folder) >= 4096 || target.folder[0] != '/')
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "name a folder from / on",
			       "'%.70s' cannot be exported", target.folder);
	if (!nb_kernel_has("nfsd", "nfsd"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "boot a kernel that has it (CONFIG_NFSD, CONFIG_NFSD_V4), or "
			       "install its module",
			       "this kernel has no NFS server");
	if (runs_another(&target))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "stop it for the campaign (systemctl stop nfs-server)",
			       "this host runs an NFS server already");
	fprintf(text, "%s\n", !runs(&target) ? NONE : is_allowed(&target) ? "exported" : "broken");
	return 0;
}

const struct nb_op nb_op_export = {
	.name = "export",
	.about = "a folder by NFS, read-only, from an address of this host to others, who read as "
		 "the owner of a file in it: exported, or none",
	.words = 4,
	.get = get_export,
	.set = set_export,
};
