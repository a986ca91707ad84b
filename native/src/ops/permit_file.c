/* SPDX-License-Identifier: MIT */
#include "permit_file.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../field.h"

static const char OPERATION[] = "allow", SYSCTL[] = "/proc/sys/", SYSFS[] = "/sys/";

/* Files of settings that have a name of their own. */
static const struct {
	const char *setting;
	const char *pattern;
} files[] = {
	{ "governor", "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor" },
	{ "turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo" },
	{ "turbo", "/sys/devices/system/cpu/cpufreq/boost" },
	{ "irq_affinity", "/proc/irq/*/smp_affinity_list" },
	{ "rps", "/sys/class/net/*/queues/rx-*/rps_cpus" },
	{ "busy_poll", "/proc/sys/net/core/busy_read" },
	{ "busy_poll", "/proc/sys/net/core/busy_poll" },
	{ "tcp_metrics", "/proc/sys/net/ipv4/tcp_no_metrics_save" },
};

/* Files that a helper reads besides those of settings; none holds a secret. */
static const char *const readable[] = { "/proc/self/stat", "/proc/fs/nfsd/v4_end_grace",
					"/run/netbench.nfsd-*/v4_end_grace" };

static int is_below(const char *path, const char *folder)
{
	return !strncmp(path, folder, strlen(folder));
}

static int is_plain(const char *path)
{
	return !strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

int nb_permit_is_readable(const char *path)
{
	for (size_t i = 0; i < NB_LENGTH(readable); i++)
		if (!fnmatch(readable[i], path, FNM_PATHNAME | FNM_PERIOD))
			return 1;
	return 0;
}

static int is_kernels(const char *path)
{
	return is_below(path, SYSCTL) || is_below(path, SYSFS) || is_below(path, "/proc/irq/");
}

int nb_permit_place(const char *path, int changes, struct nb_error *error)
{
	char real[PATH_MAX];

	if (!changes && nb_permit_is_readable(path))
		return 0;
	if (is_kernels(path) && (is_plain(path) || !changes) &&
	    (!realpath(path, real) || is_kernels(real)))
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, OPERATION,
		       "name a file below /proc/sys or /sys, without `..`",
		       "a helper stays below the kernel's own files: %.120s is not", path);
}

/* The name of a sysctl as sysctl(8) writes it: a dot of an interface's name is a slash. */
static struct nb_need sysctl_of(const char *path)
{
	struct nb_need made = nb_need("sysctl", path + strlen(SYSCTL));

	for (char *at = made.name; *at; at++)
		*at = *at == '/' ? '.' : *at == '.' ? '/' : *at;
	return made;
}

/*
 * The file of /sys that a path leads to, as far as that matters: an entry of a class or a bus is a
 * link to its device, and keeps its name; every other link is followed.
 */
static struct nb_need sysfs_of(const char *path)
{
	char real[PATH_MAX], entry[PATH_MAX], base[PATH_MAX];
	struct nb_need as_written = nb_need("sysfs", path + strlen(SYSFS)), made;
	int depth = is_below(path, "/sys/class/") ? 4 : is_below(path, "/sys/bus/") ? 6 : 0;
	const char *rest = path;

	if (!realpath(path, real) || !is_below(real, SYSFS))
		return as_written; /* there is nothing to change */
	for (int i = 0; i < depth && rest; i++)
		rest = strchr(rest + 1, '/');
	made = nb_need("sysfs", real + strlen(SYSFS));
	if (!depth || !rest)
		return strcmp(real, path) ? made : as_written;
	snprintf(entry, sizeof(entry), "%.*s", (int)(rest - path), path);
	if (!realpath(entry, base) || strncmp(real, base, strlen(base)) != 0 ||
	    strcmp(real + strlen(base), rest) != 0)
		return made;
	return as_written;
}

/* The interface whose file it is, written into room for IFNAMSIZ bytes and more; or "". */
static void interface_of(const char *path, char *interface, size_t room)
{
	static const char *const folders[] = { "/sys/class/net/", "/proc/sys/net/ipv4/conf/",
					       "/proc/sys/net/ipv6/conf/",
					       "/proc/sys/net/ipv4/neigh/",
					       "/proc/sys/net/ipv6/neigh/" };

	interface[0] = 0;
	for (size_t i = 0; i < NB_LENGTH(folders); i++)
		if (is_below(path, folders[i])) {
			const char *name = path + strlen(folders[i]);

			snprintf(interface, room, "%.*s", (int)strcspn(name, "/"), name);
		}
}

static const char *setting_of(const char *path)
{
	for (size_t i = 0; i < NB_LENGTH(files); i++)
		if (!fnmatch(files[i].pattern, path, FNM_PATHNAME | FNM_PERIOD))
			return files[i].setting;
	return NULL;
}

int nb_permit_file(const struct nb_allow *allow, const char *path, struct nb_error *error)
{
	const char *setting = setting_of(path);
	struct nb_need any[2];
	size_t count = 0;
	char interface[64];
	int status;

	if (setting)
		any[count++] = nb_need("setting", setting);
	if (is_below(path, SYSCTL))
		any[count++] = sysctl_of(path);
	else if (is_below(path, SYSFS) && !setting)
		any[count++] = sysfs_of(path);
	if (!count)
		any[count++] = nb_need("setting", path);
	status = nb_allow_any(allow, any, count, error);
	interface_of(path, interface, sizeof(interface));
	return status ? status : nb_allow_interface(allow, interface, error);
}
