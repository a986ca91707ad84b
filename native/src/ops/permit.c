/* SPDX-License-Identifier: MIT */
/* What a process does for its client: nothing that its duty, or its host, does not allow. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "around.h"
#include "client.h"

enum { ROOM = 8 << 10, WORDS = FNM_PATHNAME | FNM_PERIOD };

/* Without a file. Not `nfs`: an export lets other hosts read what only root may read here. */
static const char OF_SUDO[] =
	"setting mtu gso_max_size gro_max_size rings channels coalesce qdisc feature.*\n"
	"setting governor turbo irq_affinity rps busy_poll tcp_metrics perf energy\n"
	"sysctl net.\n";

static const char QUEUES[] = "/sys/class/net/*/queues/*/*";

/* Files, features and attributes of a link that a setting of another name changes. */
static const struct {
	const char *setting, *pattern;
} settings[] = {
	{ "governor", "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor" },
	{ "turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo" },
	{ "turbo", "/sys/devices/system/cpu/cpufreq/boost" },
	{ "irq_affinity", "/proc/irq/*/smp_affinity_list" },
	{ "rps", "/sys/class/net/*/queues/rx-*/rps_cpus" },
	{ "busy_poll", "/proc/sys/net/core/busy_*" },
	{ "tcp_metrics", "/proc/sys/net/ipv4/tcp_no_metrics_save" },
	{ "nfs", "/proc/fs/nfsd/v4_end_grace" },
	{ "nfs", "/run/netbench.nfsd-*/v4_end_grace" },
	{ "tso", "feature.tx-tcp*-segmentation" },
	{ "gso", "feature.tx-generic-segmentation" },
	{ "gro", "feature.rx-gro" },
	{ "lro", "feature.rx-lro" },
	{ "sg", "feature.tx-scatter-gather*" },
	{ "rx_checksum", "feature.rx-checksum" },
	{ "tx_checksum", "feature.tx-checksum-*" },
	{ "gso_max_size", "gso_ipv4_max_size" },
	{ "gro_max_size", "gro_ipv4_max_size" },
};

static int begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* 1: a line allows that name (NULL: there is a line of that keyword); 0: none does; or, of a line
 * that is none, its number, negative. */
static int search(const char *text, const char *keyword, const char *name)
{
	static const char BLANKS[] = " \t\r";
	char copy[ROOM], *rest = strcpy(copy, text), *line, *at, *first, *word;
	int found = 0, is_prefix = !strcmp(keyword, "sysctl");

	for (int number = 1; (line = strsep(&rest, "\n")); number++) {
		line[strcspn(line, "#")] = 0;
		first = strtok_r(line, BLANKS, &at);
		word = first ? strtok_r(NULL, BLANKS, &at) : NULL;
		if (first && (!word || (strcmp(first, "setting") && strcmp(first, "sysctl") &&
					strcmp(first, "interface") && strcmp(first, "boot"))))
			return -number;
		for (; word && !strcmp(first, keyword); word = strtok_r(NULL, BLANKS, &at))
			found |= !name ||
				 (is_prefix ? begins(name, word) : !fnmatch(word, name, WORDS));
	}
	return found;
}

/* Whether a line allows it by its name, or by that of the setting that changes `what`. Without a
 * line for interfaces every one is allowed. */
static int check(const char *text, const char *keyword, const char *name, const char *what,
		 struct nb_error *error)
{
	int found = search(text, keyword, name);

	if (!found && !fnmatch(QUEUES, what, WORDS))
		found = search(text, "setting", "channels"); /* which moves them along */
	for (size_t i = 0; !found && i < NB_LENGTH(settings); i++)
		if (!fnmatch(settings[i].pattern, what, WORDS))
			return check(text, "setting", settings[i].setting, "", error);
	if (!found && !strcmp(keyword, "interface"))
		found = !search(text, "interface", NULL);
	if (found > 0)
		return 0;
	if (found < 0)
		return nb_fail(error, NB_ERR_UNSUPPORTED, "allow",
			       "begin it with setting, sysctl, interface or boot",
			       "/etc/netbench/allow:%d allows nothing, and so nothing is allowed",
			       -found);
	return nb_fail(error, NB_ERR_UNSUPPORTED, "allow",
		       "leave it out, or ask who administers this host for that line",
		       "%s that allows `%s %.140s`",
		       text == OF_SUDO ? "a login by sudo needs /etc/netbench/allow with a line"
				       : "/etc/netbench/allow has no line",
		       keyword, name);
}

/* An interrupt is of the interface whose device, or the PCI device below a virtio one, has it. */
static int check_irq(const char *text, const char *file, unsigned long irq, struct nb_error *error)
{
	struct if_nameindex *links = if_nameindex();
	char path[PATH_MAX + 32], device[PATH_MAX];
	int found = 0;

	for (struct if_nameindex *link = links; !found && link && link->if_name; link++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/device", link->if_name);
		if (search(text, "interface", link->if_name) <= 0 || !realpath(path, device))
			continue;
		if (begins(strrchr(device, '/'), "/virtio"))
			*strrchr(device, '/') = 0;
		snprintf(path, sizeof(path), "%s/msi_irqs/%lu", device, irq);
		found = !access(path, F_OK);
	}
	if_freenameindex(links);
	snprintf(path, sizeof(path), "that has %s", file); /* no pattern matches that */
	return found ? 0 : check(text, "interface", path, "", error);
}

/* The interface that a path names, if any, must be one that may be changed. */
static int check_path(const char *text, const char *path, struct nb_error *error)
{
	unsigned long irq;
	char name[IFNAMSIZ];

	if (sscanf(path, "/proc/irq/%lu/", &irq) == 1)
		return check_irq(text, path, irq, error);
	return nb_link_of_path(path, name) ? check(text, "interface", name, "", error) : 0;
}

/* A file is `sysctl NAME`, `setting sysfs.PATH`, or `setting /PATH`, which only netbench names. */
static int check_file(const char *text, const char *path, struct nb_error *error)
{
	int is_sysctl = begins(path, "/proc/sys/"), status;
	char real[PATH_MAX], name[PATH_MAX];

	if (strstr(path, "/.."))
		return check(text, "setting", path, "", error);
	snprintf(name, sizeof(name), "%s", path + (is_sysctl ? strlen("/proc/sys/") : 0));
	for (char *at = name; is_sysctl && *at; at++) /* as in sysctl(8): a dot is a slash */
		*at = *at == '/' ? '.' : *at == '.' ? '/' : *at;
	if (begins(path, "/sys/"))
		snprintf(name, sizeof(name), "sysfs.%s", path + strlen("/sys/"));
	status = check(text, is_sysctl ? "sysctl" : "setting", name, path, error);
	if (!status)
		status = check_path(text, path, error);
	return status || !realpath(path, real) ? status : check_path(text, real, error);
}

static int is(const struct nb_op_request *request, const char *op)
{
	return !strcmp(request->op->name, op);
}

/* By the line for what an operation changes, and the one for the interface that it changes. */
static int check_change(const char *text, const struct nb_op_request *request,
			struct nb_error *error)
{
	const char *first = request->target.words, *name = request->op->name;
	struct nb_section_line moved = { .next = request->value };
	struct nb_line line;
	char feature[80];
	int status = 0;

	if (is(request, "neighbours")) {
		const char *what = nb_target_word(&request->target, 1);

		/* Around a change: only what that moves is written again. */
		if (request->hold && !strcmp(first, "file"))
			return check_file(text, what, error);
		if (request->hold && nb_section_op(first))
			return check(text, "interface", what, "", error);
		while (!status && moved.next && nb_section_next(&moved))
			status = check_change(text,
					      &(struct nb_op_request){ .op = moved.op,
								       .target = moved.target,
								       .value = moved.value },
					      error);
		return status;
	}
	if (is(request, "file") || is(request, "list"))
		return check_file(text, first, error);
	if (is(request, "boot"))
		return check(text, "boot", "yes", "", error);
	if (is(request, "exec"))
		name = "command";
	else if (is(request, "mount") || is(request, "export"))
		name = "nfs";
	else if (is(request, "meter_files") || is(request, "link"))
		name = nb_target_word(&request->target, is(request, "link"));
	status = if_nametoindex(first) ? check(text, "interface", first, "", error) : 0;
	if (status || !is(request, "features"))
		return status ? status : check(text, "setting", name, name, error);
	for (const char *at = request->value; !status && nb_next_line(&at, &line) > 0;) {
		snprintf(feature, sizeof(feature), "feature.%s", line.name);
		status = check(text, "setting", feature, feature, error);
	}
	return status;
}

/* The text of the file, which root alone can have written; where there is none, what holds then:
 * NULL is anything. */
static int read_file(char *room, int by_sudo, const char **text, struct nb_error *error)
{
	int fd = open("/etc/netbench/allow", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat folder, file;
	ssize_t got = -1;

	*text = fd >= 0 || errno != ENOENT ? room : by_sudo ? OF_SUDO : NULL;
	if (fd >= 0 && !lstat("/etc/netbench", &folder) && !folder.st_uid && !fstat(fd, &file) &&
	    !file.st_uid && !((folder.st_mode | file.st_mode) & (S_IWGRP | S_IWOTH)))
		got = read(fd, room, ROOM);
	if (fd >= 0)
		close(fd);
	if (*text == room && (got < 0 || got == ROOM)) /* a line that was cut could allow more */
		return nb_fail(error, NB_ERR_UNSUPPORTED, "allow",
			       "read it, as others may have written it; then chown root:root "
			       "/etc/netbench /etc/netbench/allow; chmod go-w /etc/netbench "
			       "/etc/netbench/allow",
			       "/etc/netbench/allow (of less than 8 KiB) and its folder must be "
			       "root's and writable by no other: nothing is allowed");
	room[got < 0 ? 0 : got] = 0;
	return 0;
}

static int is_public(const char *path)
{
	struct stat file;

	return nb_section_is_kernels(path) && !stat(path, &file) && file.st_mode & S_IROTH;
}

int nb_permit_helper(const struct nb_client *client, const struct nb_op_request *request,
		     struct nb_error *error)
{
	/* What is held is written again: of lines each needs permission then. */
	int changes = (request->value && !request->op->lasting) || is(request, "exec") ||
		      is(request, "boot") || (is(request, "neighbours") && request->hold);
	int is_file = is(request, "file") || is(request, "list"), status;
	char room[ROOM];
	const char *text;

	/* By sudo, a look at what not everybody may read needs what its change needs. */
	if (!changes && !(client->by_sudo && is_file && !is_public(request->target.words)))
		return 0;
	status = read_file(room, client->by_sudo, &text, error);
	return status || !text ? status : check_change(text, request, error);
}

int nb_permit_mover(const struct nb_client *client, const struct nb_op_request *request,
		    struct nb_error *error)
{
	(void)client;
	if (request->ask || !((request->value && !request->op->lasting) || request->undo.words ||
			      is(request, "boot")))
		return 0; /* a helper knows what is allowed */
	return nb_fail(error, NB_ERR_REQUEST, "operation", "send it to a helper",
		       "a mover does not change the host: %s %.60s", request->op->name,
		       request->target.words);
}
