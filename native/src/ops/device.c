/* SPDX-License-Identifier: MIT */
/* What a device says of itself: its driver and link, and its own counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ethtool.h"

/* The number of statistics may grow between two questions. */
enum { WORDS_MAX = 127, SPARE_NUMBERS = 4096 };

/* An ethtool_link_settings with room for all of its masks. */
union link_settings {
	struct ethtool_link_settings head;
	uint32_t room[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) + 3 * WORDS_MAX];
};

static void add_word(FILE *text, const char *key, const char *value, size_t room)
{
	int length = (int)strnlen(value, room);

	if (length && strncmp(value, "N/A", room) != 0)
		fprintf(text, "%s: %.*s\n", key, length, value);
}

/* The kernel tells how long its masks are when it is asked with none. Returns 0, or -1 with errno.
 */
static int read_link(const char *interface, union link_settings *link)
{
	int words;

	memset(link, 0, sizeof(*link));
	link->head.cmd = ETHTOOL_GLINKSETTINGS;
	if (nb_ethtool(interface, link))
		return -1;
	words = -link->head.link_mode_masks_nwords;
	if (words <= 0 || words > WORDS_MAX) {
		errno = EBADMSG;
		return -1;
	}
	memset(link, 0, sizeof(*link));
	link->head.cmd = ETHTOOL_GLINKSETTINGS;
	link->head.link_mode_masks_nwords = (int8_t)words;
	return nb_ethtool(interface, link);
}

static void add_link(FILE *text, const struct ethtool_link_settings *link)
{
	if (link->speed && link->speed < INT32_MAX && link->speed != UINT16_MAX)
		fprintf(text, "speed: %u\n", link->speed);
	else
		fprintf(text, "speed: unknown\n");
	if (link->duplex == DUPLEX_HALF || link->duplex == DUPLEX_FULL)
		fprintf(text, "duplex: %s\n", link->duplex == DUPLEX_FULL ? "full" : "half");
}

static int get_driver(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	int index = nb_interface(interface, "driver", error);
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	union link_settings link;

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
	if (!read_link(interface, &link))
		add_link(text, &link.head);
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
		names ? calloc(1, sizeof(*numbers) + (count + SPARE_NUMBERS) * sizeof(uint64_t))
		      : NULL;

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
