/* SPDX-License-Identifier: MIT */
/* ethtool's ioctl; and what a device says of itself by it: its driver and link, its own counters.
 */
#include "netlink.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A set may grow between the question for its size and the one for its names, or its numbers: the
 * kernel fills what it has by then. */
enum { SPARE = 4096, NAMES_MAX = 65536 };

int nb_ethtool(const char *interface, void *command)
{
	struct ifreq request = { .ifr_data = command };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), status, number;

	if (fd < 0)
		return -1;
	memcpy(request.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
	do
		status = ioctl(fd, SIOCETHTOOL, &request);
	while (status < 0 && errno == EINTR);
	number = errno;
	close(fd);
	errno = number;
	return status < 0 ? -1 : 0;
}

static int count_names(const char *interface, uint32_t set, uint32_t *count)
{
	union {
		struct ethtool_sset_info head;
		uint32_t room[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
	} info = { .head = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << set } };

	if (nb_ethtool(interface, &info))
		return -1;
	*count = info.room[sizeof(info.head) / sizeof(uint32_t)];
	if (info.head.sset_mask && *count <= NAMES_MAX)
		return 0;
	errno = info.head.sset_mask ? E2BIG : EOPNOTSUPP;
	return -1;
}

struct ethtool_gstrings *nb_ethtool_names(const char *interface, uint32_t set, uint32_t *count)
{
	struct ethtool_gstrings *names;

	if (count_names(interface, set, count))
		return NULL;
	names = calloc(1, sizeof(*names) + (size_t)(*count + SPARE) * ETH_GSTRING_LEN);
	if (!names)
		return NULL;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = set;
	names->len = *count;
	if (*count && nb_ethtool(interface, names)) {
		int number = errno;

		free(names);
		errno = number;
		return NULL;
	}
	if (names->len < *count)
		*count = names->len;
	return names;
}

const char *nb_ethtool_name(const struct ethtool_gstrings *names, uint32_t index)
{
	return (const char *)names->data + (size_t)index * ETH_GSTRING_LEN;
}

int nb_ethtool_name_length(const struct ethtool_gstrings *names, uint32_t index)
{
	return (int)strnlen(nb_ethtool_name(names, index), ETH_GSTRING_LEN);
}

static void add_word(FILE *text, const char *key, const char *value, size_t room)
{
	int length = (int)strnlen(value, room);

	if (length && strncmp(value, "N/A", room) != 0)
		fprintf(text, "%s: %.*s\n", key, length, value);
}

static int get_driver(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	int index = nb_interface(interface, "driver", error);
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	union {
		struct ethtool_link_settings head;
		char room[sizeof(struct ethtool_link_settings) + 3 * INT8_MAX * sizeof(uint32_t)];
	} link = { .head.cmd = ETHTOOL_GLINKSETTINGS };

	if (index < 0)
		return index;
	if (!nb_ethtool(interface, &driver)) {
		add_word(text, "driver", driver.driver, sizeof(driver.driver));
		add_word(text, "version", driver.version, sizeof(driver.version));
		add_word(text, "firmware", driver.fw_version, sizeof(driver.fw_version));
		add_word(text, "bus", driver.bus_info, sizeof(driver.bus_info));
	} else if (errno != EOPNOTSUPP) {
		return nb_fail_device(error, "driver", interface, "driver that tells its name");
	}
	/* The kernel tells how long its masks are when it is asked with none. */
	if (nb_ethtool(interface, &link) || link.head.link_mode_masks_nwords >= 0)
		return 0;
	link.head.cmd = ETHTOOL_GLINKSETTINGS;
	link.head.link_mode_masks_nwords = (int8_t)-link.head.link_mode_masks_nwords;
	if (nb_ethtool(interface, &link))
		return 0;
	if (link.head.speed && link.head.speed < INT32_MAX && link.head.speed != UINT16_MAX)
		fprintf(text, "speed: %u\n", link.head.speed);
	else
		fprintf(text, "speed: unknown\n");
	if (link.head.duplex == DUPLEX_HALF || link.head.duplex == DUPLEX_FULL)
		fprintf(text, "duplex: %s\n", link.head.duplex == DUPLEX_FULL ? "full" : "half");
	return 0;
}

static int get_statistics(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	int index = nb_interface(interface, "statistics", error), status = -1;
	uint32_t count;
	struct ethtool_gstrings *names =
		index < 0 ? NULL : nb_ethtool_names(interface, ETH_SS_STATS, &count);
	struct ethtool_stats *numbers =
		names ? calloc(1, sizeof(*numbers) + (count + SPARE) * sizeof(uint64_t)) : NULL;

	if (numbers) {
		numbers->cmd = ETHTOOL_GSTATS;
		numbers->n_stats = count;
		status = count ? nb_ethtool(interface, numbers) : 0;
	}
	if (!status && numbers->n_stats != count) { /* names and numbers do not belong together */
		errno = EBUSY;
		status = -1;
	}
	if (status && index >= 0)
		status = nb_fail_device(error, "statistics", interface, "statistics of its own");
	for (uint32_t i = 0; !status && i < count; i++)
		fprintf(text, "%.*s: %llu\n", nb_ethtool_name_length(names, i),
			nb_ethtool_name(names, i), (unsigned long long)numbers->data[i]);
	free(names);
	free(numbers);
	return index < 0 ? index : status;
}

const struct nb_op nb_op_driver = {
	.name = "driver",
	.about = "driver, firmware, bus and link of an interface",
	.words = 1,
	.get = get_driver,
};

const struct nb_op nb_op_statistics = {
	.name = "statistics",
	.about = "a device's own counters",
	.words = 1,
	.get = get_statistics,
};
