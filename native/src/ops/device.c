/* SPDX-License-Identifier: MIT */
/* What a device says of itself: its driver and link, and its own counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ethtool.h"

enum { WORDS_MAX = 127, ATTEMPTS = 5, SPARE_NUMBERS = 4096 };

static const char *const ports[] = {
	"twisted pair", "aui", "mii", "fibre", "bnc", "direct attach"
};

/* An ethtool_link_settings with room for all of its masks. */
union link_settings {
	struct ethtool_link_settings head;
	uint32_t room[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) + 3 * WORDS_MAX];
};

static void add_word(struct nb_text *text, const char *key, const char *value, size_t room)
{
	int length = (int)strnlen(value, room);

	if (length && strncmp(value, "N/A", room) != 0)
		nb_text_add(text, "%s: %.*s\n", key, length, value);
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

static void add_link(struct nb_text *text, const struct ethtool_link_settings *link)
{
	if (link->speed && link->speed < INT32_MAX && link->speed != UINT16_MAX)
		nb_text_add(text, "speed: %u\n", link->speed);
	else
		nb_text_add(text, "speed: unknown\n");
	if (link->duplex == DUPLEX_HALF || link->duplex == DUPLEX_FULL)
		nb_text_add(text, "duplex: %s\n", link->duplex == DUPLEX_FULL ? "full" : "half");
	if (link->port < NB_LENGTH(ports))
		nb_text_add(text, "port: %s\n", ports[link->port]);
	else if (link->port == PORT_NONE || link->port == PORT_OTHER)
		nb_text_add(text, "port: %s\n", link->port == PORT_NONE ? "none" : "other");
	if (link->autoneg == AUTONEG_DISABLE || link->autoneg == AUTONEG_ENABLE)
		nb_text_add(text, "autoneg: %s\n", link->autoneg == AUTONEG_ENABLE ? "on" : "off");
}

static int get_driver(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
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

/* Returns 1: names and numbers do not belong together, since their number has just changed; 0, or
 * -1 with errno. */
static int try_statistics(const char *interface, struct nb_text *text)
{
	uint32_t count;
	struct ethtool_gstrings *names = nb_ethtool_names(interface, ETH_SS_STATS, &count);
	struct ethtool_stats *numbers =
		names ? calloc(1, sizeof(*numbers) + (count + SPARE_NUMBERS) * sizeof(uint64_t))
		      : NULL;
	int status = -1, number;

	if (numbers) {
		numbers->cmd = ETHTOOL_GSTATS;
		numbers->n_stats = count;
		status = count ? nb_ethtool(interface, numbers) : 0;
		if (!status && (numbers->n_stats != count || names->len != count))
			status = 1;
	}
	for (uint32_t i = 0; !status && i < count; i++)
		nb_text_add(text, "%.*s: %llu\n", nb_ethtool_name_length(names, i),
			    nb_ethtool_name(names, i), (unsigned long long)numbers->data[i]);
	number = errno;
	free(names);
	free(numbers);
	errno = number;
	return status;
}

static int get_statistics(const struct nb_target *target, struct nb_text *text,
			  struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	int index = nb_interface(interface, "statistics", error), status = 1;

	if (index < 0)
		return index;
	for (int i = 0; i < ATTEMPTS && status > 0; i++)
		status = try_statistics(interface, text);
	if (status > 0)
		errno = EBUSY;
	return status ? nb_fail_device(error, "statistics", interface, "statistics of its own") : 0;
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
