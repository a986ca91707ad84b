/* SPDX-License-Identifier: MIT */
/*
 * What is asked of a driver, and what is made of its answers: with a driver in this file in place
 * of lo's, since there is no device here that has all of it, and none that misbehaves.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "op_helper.h"

enum { FEATURES = 35, LINK_WORDS = 4 };

static const char LONG_NAME[ETH_GSTRING_LEN + 1] = "a-name-that-fills-all-of-its-roo";

static struct {
	int error; /* of everything that is asked; 0: none */
	struct ethtool_ringparam rings;
	size_t sets;
	uint32_t statistics;
	uint32_t grows; /* statistics that come between the question for names and the next one */
	struct ethtool_link_settings link;
	int link_words;
	struct ethtool_drvinfo driver;
	struct ethtool_get_features_block features[2];
	struct ethtool_set_features_block asked[2];
} device;

static void feature_name(uint32_t i, char *name)
{
	if (i == 1)
		memcpy(name, LONG_NAME, ETH_GSTRING_LEN);
	else if (i != 3) /* this kernel has no feature of that number */
		snprintf(name, ETH_GSTRING_LEN, "feature-%u", i);
}

static int tell_names(struct ethtool_gstrings *names)
{
	uint32_t count = names->string_set == ETH_SS_FEATURES ? FEATURES : device.statistics;

	if (names->string_set == ETH_SS_STATS)
		device.statistics += device.grows;
	names->len = count;
	for (uint32_t i = 0; i < count; i++) {
		char *name = (char *)names->data + (size_t)i * ETH_GSTRING_LEN;

		if (names->string_set == ETH_SS_FEATURES)
			feature_name(i, name);
		else
			snprintf(name, ETH_GSTRING_LEN, "counter %u", i);
	}
	return 0;
}

static int tell_statistics(struct ethtool_stats *numbers)
{
	numbers->n_stats = device.statistics;
	for (uint32_t i = 0; i < device.statistics; i++)
		numbers->data[i] = (uint64_t)i << 33;
	return 0;
}

static int tell_size(struct ethtool_sset_info *info)
{
	info->data[0] = info->sset_mask == 1ULL << ETH_SS_FEATURES ? FEATURES : device.statistics;
	return 0;
}

static int tell_link(struct ethtool_link_settings *link)
{
	int8_t words = link->link_mode_masks_nwords;

	*link = device.link;
	link->link_mode_masks_nwords =
		(int8_t)(words == device.link_words ? words : -device.link_words);
	if (words == device.link_words)
		memset(link + 1, 0xff, 3 * LINK_WORDS * sizeof(uint32_t));
	return 0;
}

static int take_rings(const struct ethtool_ringparam *rings)
{
	if (rings->rx_pending > device.rings.rx_max_pending) {
		errno = EINVAL;
		return -1;
	}
	device.rings = *rings;
	device.sets++;
	return 0;
}

static int take_features(const struct ethtool_sfeatures *changes)
{
	assert_int_equal(2, changes->size);
	memcpy(device.asked, changes->features, sizeof(device.asked));
	return ETHTOOL_F_WISH; /* a request that was not met is no failure */
}

static int answer(void *command)
{
	uint32_t number;

	memcpy(&number, command, sizeof(number));
	errno = device.error;
	if (device.error)
		return -1;
	switch (number) {
	case ETHTOOL_GRINGPARAM:
		memcpy(command, &device.rings, sizeof(device.rings));
		return 0;
	case ETHTOOL_SRINGPARAM:
		return take_rings(command);
	case ETHTOOL_GSSET_INFO:
		return tell_size(command);
	case ETHTOOL_GSTRINGS:
		return tell_names(command);
	case ETHTOOL_GSTATS:
		return tell_statistics(command);
	case ETHTOOL_GDRVINFO:
		memcpy(command, &device.driver, sizeof(device.driver));
		return 0;
	case ETHTOOL_GLINKSETTINGS:
		return tell_link(command);
	case ETHTOOL_GFEATURES:
		memcpy((char *)command + 2 * sizeof(uint32_t), device.features,
		       sizeof(device.features));
		return 0;
	case ETHTOOL_SFEATURES:
		return take_features(command);
	default:
		fail_msg("no handler for command %#x", number);
		return -1;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *given;

	va_start(args, request);
	given = va_arg(args, void *);
	va_end(args);
	if (request != SIOCETHTOOL)
		return (int)syscall(SYS_ioctl, fd, request, given);
	assert_string_equal("lo", ((struct ifreq *)given)->ifr_name);
	return answer(((struct ifreq *)given)->ifr_data);
}

static int renew(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	return 0;
}

static void rings_are_set_one_by_one(void **state)
{
	static const char before[] = "rx: 256\ntx: 128\nrx_max: 4096\ntx_max: 1024\n";

	(void)state;
	device.rings = (struct ethtool_ringparam){
		ETHTOOL_GRINGPARAM, 4096, 10, 20, 1024, 256, 1, 2, 128
	};
	assert_string_equal(before, op_get("rings lo"));
	op_set("rings lo", "rx 512\n");
	assert_int_equal(512, device.rings.rx_pending);
	assert_int_equal(128, device.rings.tx_pending);
	op_set("rings lo", "rx 512");
	assert_int_equal(1, device.sets); /* nothing to change: the driver is left alone */
	op_set("rings lo", before);
	assert_string_equal(before, op_get("rings lo"));
	op_must_fail("rings lo", "rx 5000", NB_ERR_SYSTEM, "ring sizes of lo");
	op_must_fail("rings lo", "rx_max 5000", NB_ERR_UNSUPPORTED, "cannot be set");
	op_must_fail("rings lo", "ry 5", NB_ERR_UNSUPPORTED, "'ry' of lo is not known");
	op_must_fail("rings lo", "rx -5", NB_ERR_REQUEST, "'-5' for rx of lo");
	op_must_fail("rings lo", "rx 4294967296", NB_ERR_REQUEST, "for rx of lo");
	op_must_fail("rings lo", "rx 5x", NB_ERR_REQUEST, "for rx of lo");
	op_must_fail("rings lo", "rx", NB_ERR_REQUEST, "without a name and a number");
	assert_string_equal(before, op_get("rings lo"));
}

static void what_a_driver_lacks_is_reported(void **state)
{
	static const char *const ops[] = { "rings lo", "coalesce lo", "channels lo", "features lo",
					   "statistics lo" };

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(ops); i++) {
		device.error = EOPNOTSUPP;
		op_must_fail(ops[i], NULL, NB_ERR_UNSUPPORTED, "lo has no ");
		device.error = EPERM;
		op_must_fail(ops[i], NULL, NB_ERR_SYSTEM, "of lo: Operation not permitted");
		assert_non_null(strstr(op_error.remedy, "root"));
	}
	device.error = EOPNOTSUPP;
	assert_string_equal("", op_get("driver lo")); /* it tells nothing, which is no failure */
}

static void statistics_are_whole_or_refused(void **state)
{
	(void)state;
	device.statistics = 3;
	assert_string_equal("counter 0: 0\ncounter 1: 8589934592\ncounter 2: 17179869184\n",
			    op_get("statistics lo"));
	device.grows = 1;
	op_must_fail("statistics lo", NULL, NB_ERR_SYSTEM, "statistics of its own");
	device.grows = 0;
	device.statistics = 0;
	assert_string_equal("", op_get("statistics lo"));
	device.statistics = 1 << 30;
	op_must_fail("statistics lo", NULL, NB_ERR_SYSTEM, "statistics of its own");
	device.statistics = 60000; /* more than a text holds */
	op_must_fail("statistics lo", NULL, NB_ERR_UNSUPPORTED, "is longer than");
}

static void a_device_is_described(void **state)
{
	(void)state;
	device.driver = (struct ethtool_drvinfo){ .driver = "mlx5",
						  .fw_version = "N/A",
						  .bus_info = "0000:01:00.0" };
	device.link = (struct ethtool_link_settings){ .speed = 100000, .duplex = DUPLEX_FULL };
	device.link_words = LINK_WORDS;
	assert_string_equal("driver: mlx5\nbus: 0000:01:00.0\nspeed: 100000\nduplex: full\n",
			    op_get("driver lo"));
	memset(device.driver.driver, 'd', sizeof(device.driver.driver));
	device.link.speed = (uint32_t)SPEED_UNKNOWN;
	device.link.duplex = DUPLEX_UNKNOWN;
	assert_string_equal("driver: dddddddddddddddddddddddddddddddd\nbus: 0000:01:00.0\nspeed: "
			    "unknown\n",
			    op_get("driver lo"));
	device.link_words = 0; /* as none would say it */
	assert_string_equal("driver: dddddddddddddddddddddddddddddddd\nbus: 0000:01:00.0\n",
			    op_get("driver lo"));
}

/* Feature 0 is on, 1 off though requested, 2 on and not requested, 33 on but fixed, 34 one that
 * never changes; all others off. */
static void lay_out_features(void)
{
	device.features[0] =
		(struct ethtool_get_features_block){ .available = 7, .requested = 3, .active = 5 };
	device.features[1] = (struct ethtool_get_features_block){
		.available = 4, .requested = 0, .active = 6, .never_changed = 4
	};
}

static void features_are_asked_for_as_they_were(void **state)
{
	char before[4096], line[64];

	(void)state;
	lay_out_features();
	strcpy(before, op_get("features lo"));
	snprintf(line, sizeof(line), "\n%s: off [requested on]\n", LONG_NAME);
	assert_memory_equal("feature-0: on\n", before, 14);
	assert_non_null(strstr(before, line));
	assert_non_null(
		strstr(before, "\nfeature-2: on [requested off]\nfeature-4: off [fixed]\n"));
	assert_non_null(strstr(before, "\nfeature-33: on [fixed]\nfeature-34: on [fixed]\n"));
	op_set("features lo", before);
	assert_int_equal(7, device.asked[0].valid);
	assert_int_equal(3, device.asked[0].requested);
	assert_int_equal(0, device.asked[1].valid);
	op_set("features lo", "feature-0 off\nfeature-33 off\nfeature-34 off");
	assert_int_equal(1, device.asked[0].valid);
	assert_int_equal(0, device.asked[0].requested);
	assert_int_equal(2, device.asked[1].valid); /* of one that never changes the kernel would
						       refuse everything */
	op_must_fail("features lo", "feature-3 on", NB_ERR_UNSUPPORTED, "no feature 'feature-3'");
	op_must_fail("features lo", "feature-0 on [requested off]", NB_ERR_REQUEST,
		     "for feature-0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rings_are_set_one_by_one, renew),
		cmocka_unit_test_setup(what_a_driver_lacks_is_reported, renew),
		cmocka_unit_test_setup(statistics_are_whole_or_refused, renew),
		cmocka_unit_test_setup(a_device_is_described, renew),
		cmocka_unit_test_setup(features_are_asked_for_as_they_were, renew),
	};

	return cmocka_run_group_tests_name("ethtool", tests, NULL, NULL);
}
