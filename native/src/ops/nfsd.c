/* SPDX-License-Identifier: MIT */
#include "nfsd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../data_socket.h"
#include "nfsd_files.h"

enum {
	PORT = 2049,
	THREADS = 8,	 /* as rpc.nfsd(8) has it */
	GRACE = 10,	 /* seconds; the kernel takes no less */
	BLOCK = 1048576, /* most that a read may ask for */
};

/* What nfsd's files read before the start. */
struct saved {
	char versions[96];
	char grace[16];
	char block[16];
};

/* A socket that listens on this host's data address. Returns it, or a negative code. */
static int listen_here(const struct nb_nfsd *nfsd)
{
	union nb_address address;
	socklen_t length = nb_address_parse(&address, nfsd->target->address, PORT);
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), one = 1;
	int status, is_six = address.any.sa_family == AF_INET6;

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    (!is_six || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))) &&
	    !bind(fd, &address.any, length) && !listen(fd, 64))
		return fd;
	status = nb_fail_errno(nfsd->error, "export", "free TCP port 2049 of the sender",
			       "port %d of %s", PORT, nfsd->target->address);
	if (fd >= 0)
		close(fd);
	return status;
}

static int add_socket(const struct nb_nfsd *nfsd)
{
	int fd = listen_here(nfsd),
	    status = fd < 0 ? fd : nb_nfsd_write(nfsd, "portlist", "%d\n", fd);

	if (fd >= 0)
		close(fd); /* the kernel has its own hold on it */
	return status;
}

static int save(const struct nb_nfsd *nfsd, const struct saved *before)
{
	FILE *file = fopen(nfsd->saved, "we");
	int bad = !file ||
		  fprintf(file, "%s\n%s\n%s\n", before->versions, before->grace, before->block) < 0;

	if (file && fclose(file))
		bad = 1;
	return bad ? nb_nfsd_fail(nfsd, nfsd->saved) : 0;
}

/* Read what was saved; 0: nothing was, since nothing had been changed yet. What is not known yet,
 * as it failed early, is empty. */
static int load_saved(const struct nb_nfsd *nfsd, struct saved *before)
{
	FILE *file = fopen(nfsd->saved, "re");

	memset(before, 0, sizeof(*before));
	if (!file)
		return 0;
	if (fscanf(file, "%95[^\n]\n%15[^\n]\n%15[^\n]", before->versions, before->grace,
		   before->block) < 1)
		memset(before, 0, sizeof(*before));
	fclose(file);
	return 1;
}

/*
 * The kernel sizes its largest read by the memory that it has when it first starts. That size is
 * learned from a server that no client can use yet, since what the file reads before that, 0,
 * cannot be written again.
 */
static int allow_blocks(const struct nb_nfsd *nfsd, struct saved *saved)
{
	int status = add_socket(nfsd);

	if (status)
		return status;
	if (nb_nfsd_read(nfsd->place, "max_block_size", saved->block, sizeof(saved->block)))
		return nb_nfsd_fail(nfsd, "max_block_size");
	status = save(nfsd, saved);
	if (status)
		return status;
	status = nb_nfsd_write(nfsd, "threads", "0\n");
	if (status || atol(saved->block) >= BLOCK)
		return status;
	return nb_nfsd_write(nfsd, "max_block_size", "%d\n", BLOCK);
}

/* Versions 2 and 3 would need rpcbind(8) and mountd(8). */
static int configure(const struct nb_nfsd *nfsd)
{
	struct saved saved = { .block = "" };
	int status;

	if (nb_nfsd_read(nfsd->place, "versions", saved.versions, sizeof(saved.versions)) ||
	    nb_nfsd_read(nfsd->place, "nfsv4gracetime", saved.grace, sizeof(saved.grace)))
		return nb_nfsd_fail(nfsd, "the files of nfsd");
	if ((status = save(nfsd, &saved)) ||
	    (status = nb_nfsd_write(nfsd, "versions", "-2 -3\n")) ||
	    (status = nb_nfsd_write(nfsd, "nfsv4gracetime", "%d\n", GRACE)))
		return status;
	return allow_blocks(nfsd, &saved);
}

/* No client has anything to reclaim after a restart; a kernel without this file waits for GRACE. */
static void end_grace(const struct nb_nfsd *nfsd)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/v4_end_grace", nfsd->place);
	(void)nb_nfsd_write_path(path, "Y\n");
}

static int start(const struct nb_nfsd *nfsd)
{
	long long until = (long long)time(NULL) + 10LL * 365 * 24 * 3600;
	int status;

	if ((status = configure(nfsd)) || (status = add_socket(nfsd)) ||
	    (status = nb_nfsd_allow_clients(nfsd, until)) ||
	    (status = nb_nfsd_allow_folder(nfsd, until)) ||
	    (status = nb_nfsd_write(nfsd, "threads", "%d\n", THREADS)))
		return status;
	end_grace(nfsd);
	return 0;
}

static int restore_file(const struct nb_nfsd *nfsd, const char *name, const char *text)
{
	char now[96];

	if (!text[0] || (!nb_nfsd_read(nfsd->place, name, now, sizeof(now)) && !strcmp(now, text)))
		return 0;
	return nb_nfsd_write(nfsd, name, "%s\n", text);
}

static int restore_files(const struct nb_nfsd *nfsd)
{
	struct saved saved;
	int status;

	if (!load_saved(nfsd, &saved))
		return 0;
	if ((status = restore_file(nfsd, "versions", saved.versions)) ||
	    (status = restore_file(nfsd, "nfsv4gracetime", saved.grace)))
		return status;
	return restore_file(nfsd, "max_block_size", saved.block);
}

/* A server without a socket that is asked for no threads makes a socket first, at any address. */
static int end_threads(const struct nb_nfsd *nfsd)
{
	char port[64], threads[16];
	int is_idle = !nb_nfsd_read(nfsd->place, "portlist", port, sizeof(port)) && !port[0] &&
		      !nb_nfsd_read(nfsd->place, "threads", threads, sizeof(threads)) &&
		      !strcmp(threads, "0");

	return is_idle ? 0 : nb_nfsd_write(nfsd, "threads", "0\n");
}

static int stop(const struct nb_nfsd *nfsd)
{
	int status;

	if (nb_nfsd_is_mounted(nfsd) &&
	    ((status = nb_nfsd_flush(nfsd)) || (status = end_threads(nfsd)) ||
	     (status = restore_files(nfsd))))
		return status;
	return nb_nfsd_unmount(nfsd);
}

int nb_nfsd_start(const struct nb_export_target *target, struct nb_error *error)
{
	struct nb_nfsd nfsd = nb_nfsd_at(target, error);
	int status = nb_nfsd_mount(&nfsd);

	if (status)
		return status;
	status = start(&nfsd);
	if (status)
		nb_nfsd_stop(target, NULL);
	return status;
}

int nb_nfsd_stop(const struct nb_export_target *target, struct nb_error *error)
{
	struct nb_nfsd nfsd = nb_nfsd_at(target, error);

	return stop(&nfsd);
}

int nb_nfsd_runs(const struct nb_export_target *target)
{
	struct nb_nfsd nfsd = nb_nfsd_at(target, NULL);

	return nb_nfsd_is_mounted(&nfsd);
}

/* Each network namespace has a server of its own; /proc/fs/nfsd is that of the first one. */
static int in_first_namespace(void)
{
	struct stat ours, first;

	return stat("/proc/self/ns/net", &ours) || stat("/proc/1/ns/net", &first) ||
	       (ours.st_ino == first.st_ino && ours.st_dev == first.st_dev);
}

int nb_nfsd_runs_another(const struct nb_export_target *target)
{
	char threads[16];

	return in_first_namespace() && !nb_nfsd_runs(target) &&
	       !nb_nfsd_read("/proc/fs/nfsd", "threads", threads, sizeof(threads)) &&
	       strcmp(threads, "0") != 0;
}
