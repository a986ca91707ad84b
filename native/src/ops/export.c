/* SPDX-License-Identifier: MIT */
/*
 * A folder, read-only, by NFS to some addresses. Where a server runs, it is asked by exportfs(8);
 * what is ours there has a number (fsid=) by which it is known again. Else there is a server of the
 * worker's own: the kernel's (nfsd), told by its files what it else asks of mountd(8)
 * (Documentation/filesystems/nfs/rpc-cache.rst, nfsd(7)), by NFSv4 over TCP at this host's data
 * address alone. Of the folders above only the way to it is seen.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nfsd/export.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../kernel.h"
#include "../ops.h"
#include "../source.h"
#include "../tool.h"

enum {
	PORT = 2049,
	THREADS = 8, /* as rpc.nfsd(8) has it */
	GRACE = 10,  /* seconds; the kernel takes no less */
	FSID_NUM = 1,
	BLOCK = 1048576, /* most that a read may ask for */
	NOBODY = 65534,
};

static const char OPERATION[] = "export", NONE[] = "none", DOMAIN_NAME[] = "netbench";
static const char *const caches[] = { "auth.unix.ip", "nfsd.export", "nfsd.fh" };

/* Where things are. Errors of steps go to `error`. */
struct server {
	const char *folder;
	const char *address;
	const char *clients; /* separated by spaces */
	char place[96];	     /* the files of nfsd */
	char was[104];	     /* what they read before, for whoever puts it back */
	struct nb_error *error;
};

/* What is put back: texts of nfsd's files. */
struct before {
	char versions[96];
	char grace[16];
	char block[16];
};

static struct server server_of(const struct nb_target *target, struct nb_error *error)
{
	struct server server = { .folder = nb_target_word(target, 0),
				 .address = nb_target_word(target, 1),
				 .clients = nb_target_word(target, 2),
				 .error = error };

	snprintf(server.place, sizeof(server.place), "/run/netbench.nfsd-%.64s", server.address);
	snprintf(server.was, sizeof(server.was), "%s.was", server.place);
	return server;
}

static int fail(const struct server *server, const char *what)
{
	return nb_fail_errno(server->error, OPERATION, "run as root, and see what dmesg says", "%s",
			     what);
}

/* Read the first line of a file of nfsd. Returns 0, or -1 with errno. */
static int read_file(const struct server *server, const char *name, char *text, size_t room)
{
	char path[160];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", server->place, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, room - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return got < 0 ? -1 : 0;
}

static int write_text(const char *path, const char *text)
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

__attribute__((format(printf, 3, 4))) static int write_file(const struct server *server,
							    const char *name, const char *format,
							    ...)
{
	char path[160], text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", server->place, name);
	return write_text(path, text) ? fail(server, path) : 0;
}

/* A line for one of the kernel's caches. */
__attribute__((format(printf, 3, 4))) static int tell(const struct server *server,
						      const char *cache, const char *format, ...)
{
	char path[64], text[4 * 4096 + 256];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "/proc/net/rpc/%s/channel", cache);
	errno = ENAMETOOLONG;
	if (length < (int)sizeof(text) && !write_text(path, text))
		return 0;
	return nb_fail_errno(
		server->error, OPERATION,
		"export a folder of a file system that NFS can serve (ext4, xfs, btrfs, tmpfs)",
		"%s to %s", server->folder, path);
}

/* A path as the caches read and show it: what separates words there as \ooo. */
static void escape(char *to, const char *path, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (strchr(" \t\n\\", path[i]))
			to += sprintf(to, "\\%03o", (unsigned char)path[i]);
		else
			*to++ = path[i];
	}
	*to = 0;
}

/* One folder, `length` bytes of the path, with the number by which file handles name its export. */
static int tell_folder(const struct server *server, size_t length, uint32_t number,
		       unsigned int flags, long long until)
{
	unsigned char id[sizeof(number)];
	char path[4 * 4096 + 1];
	int status;

	memcpy(id, &number, sizeof(id));
	escape(path, server->folder, length);
	status = tell(server, "nfsd.export", "%s %s %lld %u %d %d %u\n", DOMAIN_NAME, path, until,
		      flags | NFSEXP_READONLY | NFSEXP_NOSUBTREECHECK | NFSEXP_FSID, NOBODY, NOBODY,
		      number);
	if (!status)
		status = tell(server, "nfsd.fh", "%s %d \\x%02x%02x%02x%02x %lld %s\n", DOMAIN_NAME,
			      FSID_NUM, id[0], id[1], id[2], id[3], until, path);
	return status;
}

/* The folder, and as ways to it (NFSEXP_V4ROOT) those above. */
static int tell_folders(const struct server *server, long long until)
{
	size_t length = strlen(server->folder);
	uint32_t number = 0;
	int status = length > 1 ? tell_folder(server, 1, number++, NFSEXP_V4ROOT, until) : 0;

	for (size_t at = 1; !status && at < length; at++)
		if (server->folder[at] == '/')
			status = tell_folder(server, at, number++, NFSEXP_V4ROOT, until);
	return status ? status : tell_folder(server, length, number, 0, until);
}

static int tell_clients(const struct server *server, long long until)
{
	int status = 0;

	for (const char *at = server->clients; !status && *(at += strspn(at, " "));) {
		size_t length = strcspn(at, " ");

		status = tell(server, "auth.unix.ip", "nfsd %.*s %lld %s\n", (int)length, at, until,
			      DOMAIN_NAME);
		at += length;
	}
	return status;
}

static int forget_all(const struct server *server)
{
	char path[64], text[24];

	snprintf(text, sizeof(text), "%lld\n", (long long)time(NULL));
	for (size_t i = 0; i < NB_LENGTH(caches); i++) {
		snprintf(path, sizeof(path), "/proc/net/rpc/%s/flush", caches[i]);
		if (write_text(path, text))
			return fail(server, path);
	}
	return 0;
}

/* A socket that listens on this host's data address. Returns it, or a negative code. */
static int listen_here(const struct server *server)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int is_six = strchr(server->address, ':') != NULL, one = 1, status = -1;
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd >= 0 &&
	    inet_pton(is_six ? AF_INET6 : AF_INET, server->address,
		      is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr) == 1 &&
	    !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    (!is_six || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))))
		status = is_six ? bind(fd, (struct sockaddr *)&six, sizeof(six))
				: bind(fd, (struct sockaddr *)&four, sizeof(four));
	if (!status && !listen(fd, 64))
		return fd;
	status = nb_fail_errno(server->error, OPERATION, "free TCP port 2049 of the sender",
			       "port %d of %s", PORT, server->address);
	if (fd >= 0)
		close(fd);
	return status;
}

static int give_socket(const struct server *server)
{
	int fd = listen_here(server),
	    status = fd < 0 ? fd : write_file(server, "portlist", "%d\n", fd);

	if (fd >= 0)
		close(fd); /* the kernel has its own hold on it */
	return status;
}

static int keep(const struct server *server, const struct before *before)
{
	FILE *file = fopen(server->was, "we");
	int bad = !file ||
		  fprintf(file, "%s\n%s\n%s\n", before->versions, before->grace, before->block) < 0;

	if (file && fclose(file))
		bad = 1;
	return bad ? fail(server, server->was) : 0;
}

/* What was kept; 0 where nothing was, since nothing had been changed yet. */
static int kept(const struct server *server, struct before *before)
{
	FILE *file = fopen(server->was, "re");

	memset(before, 0, sizeof(*before));
	if (!file)
		return 0;
	if (fgets(before->versions, sizeof(before->versions), file) &&
	    fgets(before->grace, sizeof(before->grace), file))
		(void)fgets(before->block, sizeof(before->block),
			    file); /* not known yet when it failed early */
	fclose(file);
	before->versions[strcspn(before->versions, "\n")] = 0;
	before->grace[strcspn(before->grace, "\n")] = 0;
	before->block[strcspn(before->block, "\n")] = 0;
	return 1;
}

/*
 * The kernel sizes its largest read by the memory that it has when it first starts. That size is
 * learned from a server that nobody can use yet, since what the file reads before that, 0, cannot
 * be written again.
 */
static int allow_blocks(const struct server *server, struct before *before)
{
	int status = give_socket(server);

	if (!status && read_file(server, "max_block_size", before->block, sizeof(before->block)))
		status = fail(server, "max_block_size");
	if (!status)
		status = keep(server, before);
	if (!status)
		status = write_file(server, "threads", "0\n");
	if (!status && atol(before->block) < BLOCK)
		status = write_file(server, "max_block_size", "%d\n", BLOCK);
	return status;
}

static int start(const struct server *server)
{
	struct before before = { .block = "" };
	long long until = (long long)time(NULL) + 10LL * 365 * 24 * 3600;
	int status;

	if (read_file(server, "versions", before.versions, sizeof(before.versions)) ||
	    read_file(server, "nfsv4gracetime", before.grace, sizeof(before.grace)))
		return fail(server, "the files of nfsd");
	status = keep(server, &before);
	if (!status) /* versions 2 and 3 would need rpcbind(8) and mountd(8) */
		status = write_file(server, "versions", "-2 -3\n");
	if (!status)
		status = write_file(server, "nfsv4gracetime", "%d\n", GRACE);
	if (!status)
		status = allow_blocks(server, &before);
	if (!status)
		status = give_socket(server);
	if (!status) /* which makes the domain that the others name */
		status = tell_clients(server, until);
	if (!status)
		status = tell_folders(server, until);
	if (!status)
		status = write_file(server, "threads", "%d\n", THREADS);
	if (!status) { /* nobody has anything to reclaim; a kernel that does not take this waits */
		char path[160];

		snprintf(path, sizeof(path), "%s/v4_end_grace", server->place);
		(void)write_text(path, "Y\n");
	}
	return status;
}

static int put_text(const struct server *server, const char *name, const char *text)
{
	char now[96];

	if (!text[0] || (!read_file(server, name, now, sizeof(now)) && !strcmp(now, text)))
		return 0;
	return write_file(server, name, "%s\n", text);
}

static int put_back(const struct server *server)
{
	struct before before;
	int status;

	if (!kept(server, &before))
		return 0;
	status = put_text(server, "versions", before.versions);
	if (!status)
		status = put_text(server, "nfsv4gracetime", before.grace);
	return status ? status : put_text(server, "max_block_size", before.block);
}

static int is_mounted(const struct server *server)
{
	char text[8];

	return !read_file(server, "threads", text, sizeof(text));
}

static int leave(const struct server *server)
{
	if (is_mounted(server) && umount(server->place))
		return fail(server, server->place);
	if ((unlink(server->was) && errno != ENOENT) || (rmdir(server->place) && errno != ENOENT))
		return fail(server, server->place);
	return 0;
}

/* Asked for no threads, a server that has no socket makes one first, at an address that may be
 * another's. */
static int end_threads(const struct server *server)
{
	char port[64], threads[16];
	int is_idle = !read_file(server, "portlist", port, sizeof(port)) && !port[0] &&
		      !read_file(server, "threads", threads, sizeof(threads)) &&
		      !strcmp(threads, "0");

	return is_idle ? 0 : write_file(server, "threads", "0\n");
}

static int stop(const struct server *server)
{
	int status = 0;

	if (is_mounted(server)) {
		status = forget_all(server);
		if (!status)
			status = end_threads(server);
		if (!status)
			status = put_back(server);
	}
	return status ? status : leave(server);
}

/* The folder with the files of nfsd; mounting it brings the kernel's module. */
static int enter(const struct server *server)
{
	if (is_mounted(server))
		return nb_fail(server->error, NB_ERR_REQUEST, OPERATION,
			       "`netbench restore` puts back what is left", "%s is there already",
			       server->place);
	if ((mkdir(server->place, 0700) && errno != EEXIST) ||
	    mount("nfsd", server->place, "nfsd", 0, NULL))
		return fail(server, server->place);
	return 0;
}

static int start_own(const struct server *server)
{
	struct server quiet = *server;
	int status = enter(server);

	quiet.error = NULL;
	if (status)
		return status;
	status = start(server);
	if (status)
		stop(&quiet);
	return status;
}

/* Whether what the system mounted in /proc/fs/nfsd can be of our network namespace, each of which
 * has its own servers. */
static int in_first_namespace(void)
{
	struct stat ours, first;

	return stat("/proc/self/ns/net", &ours) || stat("/proc/1/ns/net", &first) ||
	       (ours.st_ino == first.st_ino && ours.st_dev == first.st_dev);
}

/* Whether a server runs that is not ours. */
static int runs_another(const struct server *server)
{
	struct server system = { .place = "/proc/fs/nfsd" };
	char threads[16];

	return in_first_namespace() && !is_mounted(server) &&
	       !read_file(&system, "threads", threads, sizeof(threads)) &&
	       strcmp(threads, "0") != 0;
}

/* The number of our exports of a folder: none that an administrator would think of. */
static unsigned int number_of(const char *folder)
{
	return (unsigned int)(nb_digest(NB_DIGEST_START, folder, strlen(folder)) & 0x3fffffff) |
	       0x40000000;
}

/* Run exportfs with these words, separated by NUL. 0, or negative. */
static int exportfs(const struct server *server, const char *words, size_t length, char *output,
		    size_t room)
{
	static const uint64_t limit = 8000000000;
	int status = nb_exec(words, length, limit, output, room, server->error);

	if (status > 0)
		return nb_fail(server->error, NB_ERR_SYSTEM, OPERATION,
			       "try it by hand: exportfs -v", "exportfs: %.150s", output);
	return status;
}

/* The entry of a client in what `exportfs -s` lists, "FOLDER  CLIENT(OPTIONS)": its options, or
 * NULL. */
static const char *entry_of(const char *list, const char *folder, const char *client, size_t length)
{
	size_t width = strlen(folder);

	for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + width;

		if (strncmp(line, folder, width) != 0 || (*at != ' ' && *at != '\t'))
			continue;
		at += strspn(at, " \t");
		if (!strncmp(at, client, length) && at[length] == '(')
			return at + length;
	}
	return NULL;
}

static int is_ours(const char *options, unsigned int number)
{
	char wanted[32];
	const char *at;

	snprintf(wanted, sizeof(wanted), "fsid=%u,", number);
	at = strstr(options, wanted);
	return at && at < options + strcspn(options, "\n");
}

/* What the server that runs exports, one a line, for free(); NULL with the error filled. */
static char *list_exports(const struct server *server)
{
	static const char words[] = "exportfs\0-s";
	char *list = malloc(NB_OP_TEXT);

	if (!list)
		nb_fail(server->error, NB_ERR_MEMORY, OPERATION, "free some memory",
			"no memory for a list");
	if (list && exportfs(server, words, sizeof(words) - 1, list, NB_OP_TEXT)) {
		free(list);
		list = NULL;
	}
	return list;
}

/* Add an export to a client, or take it away. */
static int change_export(const struct server *server, const char *client, size_t length, int adds)
{
	char words[4096 + 256], output[512];
	int is_six = memchr(client, ':', length) != NULL, used;

	if (adds)
		used = snprintf(
			words, sizeof(words),
			"exportfs%c-o%cro,no_subtree_check,no_root_squash,insecure,fsid=%u%c", 0, 0,
			number_of(server->folder), 0);
	else
		used = snprintf(words, sizeof(words), "exportfs%c-u%c", 0, 0);
	used += snprintf(words + used, sizeof(words) - (size_t)used, "%s%.*s%s:%s",
			 is_six ? "[" : "", (int)length, client, is_six ? "]" : "", server->folder);
	return exportfs(server, words, (size_t)used, output, sizeof(output));
}

/*
 * Ask the server that runs for what it does not export to a client yet (`adds`), or to take back
 * what it was asked for. What others have exported stays as it is.
 */
static int ask_server(const struct server *server, int adds)
{
	char *list = list_exports(server), folder[4 * 4096 + 1];
	int status = list ? 0 : -NB_ERR_SYSTEM;

	escape(folder, server->folder, strlen(server->folder));
	for (const char *at = server->clients; !status && *(at += strspn(at, " "));) {
		size_t length = strcspn(at, " ");
		const char *entry = entry_of(list, folder, at, length);

		if (adds ? !entry : entry && is_ours(entry, number_of(server->folder)))
			status = change_export(server, at, length, adds);
		at += length;
	}
	free(list);
	return status;
}

/* 1: the server that runs exports the folder to all clients; 0: it does not; or negative. */
static int serves_all(const struct server *server)
{
	char *list = list_exports(server), folder[4 * 4096 + 1];
	int all = list ? 1 : -NB_ERR_SYSTEM;

	escape(folder, server->folder, strlen(server->folder));
	for (const char *at = server->clients; all > 0 && *(at += strspn(at, " "));) {
		size_t length = strcspn(at, " ");

		all = entry_of(list, folder, at, length) != NULL;
		at += length;
	}
	free(list);
	return all;
}

static int set_export(const struct nb_target *target, const char *value, struct nb_error *error)
{
	struct server server = server_of(target, error);
	int adds = strncmp(value, NONE, strlen(NONE)) != 0;

	if (runs_another(&server))
		return ask_server(&server, adds);
	return adds ? start_own(&server) : stop(&server);
}

/* Whether the kernel's table of exports holds the folder for us. */
static int is_exported(const struct server *server)
{
	FILE *file = fopen("/proc/net/rpc/nfsd.export/content", "re");
	char wanted[4 * 4096 + 32], *line = NULL;
	size_t room = 0, length;
	int found = 0;

	escape(wanted, server->folder, strlen(server->folder));
	length = strlen(wanted);
	length += (size_t)snprintf(wanted + length, 32, "\t%s(", DOMAIN_NAME);
	while (file && !found && getline(&line, &room, file) > 0)
		found = !strncmp(line, wanted, length);
	free(line);
	if (file)
		fclose(file);
	return found;
}

static int get_export(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	struct server server = server_of(target, error);
	int all = 0;

	if (strlen(server.folder) >= 4096 || server.folder[0] != '/')
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "name a folder from / on",
			       "'%.70s' cannot be exported", server.folder);
	if (!nb_kernel_has("nfsd", "nfsd"))
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "boot a kernel that has it (CONFIG_NFSD, CONFIG_NFSD_V4), or "
			       "install its module",
			       "this kernel has no NFS server");
	if (is_mounted(&server))
		all = is_exported(&server);
	else if (runs_another(&server))
		all = serves_all(&server);
	if (all < 0)
		return all;
	nb_text_add(text, "%s\n", all ? "exported" : is_mounted(&server) ? "broken" : NONE);
	return 0;
}

const struct nb_op nb_op_export = {
	.name = "export",
	.about = "a folder by NFS, read-only, from an address of this host to others: exported, or "
		 "none",
	.words = 3,
	.get = get_export,
	.set = set_export,
};
