/* SPDX-License-Identifier: MIT */
/* Offloads of an interface, one by one, as the kernel names them (ethtool(8) -k and -K,
 * netdev-features.rst). */
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

enum { BLOCKS_MAX = 8 };

static const char OPERATION[] = "features";

/* As struct ethtool_gfeatures and _sfeatures, with room. */
struct features {
	const char *interface;
	struct ethtool_gstrings *names;
	uint32_t count;
	struct {
		uint32_t cmd;
		uint32_t size;
		struct ethtool_get_features_block blocks[BLOCKS_MAX];
	} now;
};

struct feature_changes {
	uint32_t cmd;
	uint32_t size;
	struct ethtool_set_features_block blocks[BLOCKS_MAX];
};

static int has(uint32_t block, uint32_t index)
{
	return block >> index % 32 & 1;
}

static int open_features(struct features *features, const struct nb_target *target,
			 struct nb_error *error)
{
	int index;

	memset(features, 0, sizeof(*features));
	features->interface = nb_target_word(target, 0);
	index = nb_interface(features->interface, OPERATION, error);
	if (index < 0)
		return index;
	features->names = nb_ethtool_names(features->interface, ETH_SS_FEATURES, &features->count);
	if (!features->names)
		return nb_fail_device(error, OPERATION, features->interface,
				      "features that can be read");
	if (features->count > BLOCKS_MAX * 32)
		features->count = BLOCKS_MAX * 32;
	features->now.cmd = ETHTOOL_GFEATURES;
	features->now.size = (features->count + 31) / 32;
	if (!nb_ethtool(features->interface, &features->now))
		return 0;
	return nb_fail_device(error, OPERATION, features->interface, "features that can be read");
}

static void add_feature(const struct features *features, uint32_t index, FILE *text)
{
	const struct ethtool_get_features_block *block = &features->now.blocks[index / 32];
	int active = has(block->active, index), requested = has(block->requested, index);

	fprintf(text, "%.*s: %s", nb_ethtool_name_length(features->names, index),
		nb_ethtool_name(features->names, index), active ? "on" : "off");
	if (!has(block->available, index) || has(block->never_changed, index))
		fprintf(text, " [fixed]");
	else if (requested != active)
		fprintf(text, " [requested %s]", requested ? "on" : "off");
	fprintf(text, "\n");
}

static int get_features(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct features features;
	int status = open_features(&features, target, error);

	for (uint32_t i = 0; !status && i < features.count; i++)
		if (nb_ethtool_name_length(features.names, i))
			add_feature(&features, i, text);
	free(features.names);
	return status;
}

static uint32_t feature_named(const struct features *features, const char *name)
{
	uint32_t i = 0;

	while (i < features->count &&
	       strncmp(nb_ethtool_name(features->names, i), name, ETH_GSTRING_LEN) != 0)
		i++;
	return i;
}

/* "on", "off"; as it was read, what had been asked for: -1: neither. */
static int wanted(const struct nb_line *line)
{
	const char *value = line->value, *requested = strstr(value, "[requested ");
	size_t length;

	if (line->read && requested)
		value = requested + strlen("[requested ");
	length = strcspn(value, line->read ? " ]" : "");
	if (length == 2 && !memcmp(value, "on", 2))
		return 1;
	return length == 3 && !memcmp(value, "off", 3) ? 0 : -1;
}

static int add_change(const struct features *features, const struct nb_line *line,
		      struct feature_changes *changes, struct nb_error *error)
{
	uint32_t index = feature_named(features, line->name), bit = 1U << index % 32;
	int on = wanted(line);

	if (index == features->count)
		return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION,
			       "`ethtool -k` names those that it has", "%s has no feature '%s'",
			       features->interface, line->name);
	if (on < 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "a feature is on or off",
			       "'%s' for %s of %s", line->value, line->name, features->interface);
	/* The kernel refuses all changes when one of them is never possible; it ignores those of
	 * features that are fixed here. */
	if ((line->read && strstr(line->value, "[fixed]")) ||
	    has(features->now.blocks[index / 32].never_changed, index))
		return 0;
	changes->blocks[index / 32].valid |= bit;
	changes->blocks[index / 32].requested &= ~bit;
	changes->blocks[index / 32].requested |= on ? bit : 0;
	return 0;
}

static int set_features(const struct nb_target *target, const char *value, struct nb_error *error)
{
	struct features features;
	struct feature_changes changes = { .cmd = ETHTOOL_SFEATURES };
	int status = open_features(&features, target, error), more;
	struct nb_line line;

	changes.size = features.now.size;
	while (!status && (more = nb_next_line(&value, &line)) != 0)
		status = more > 0 ? add_change(&features, &line, &changes, error)
				  : nb_fail(error, NB_ERR_REQUEST, OPERATION,
					    "write NAME on or NAME off, one a line",
					    "a line for %s without a name and a state",
					    features.interface);
	if (!status && nb_ethtool(features.interface, &changes))
		status = nb_fail_device(error, OPERATION, features.interface,
					"features that can be changed");
	free(features.names);
	return status;
}

const struct nb_op nb_op_features = {
	.name = "features",
	.about = "offloads of an interface by the kernel's names: NAME on, or NAME off, one a line",
	.words = 1,
	.lines = 1,
	.named = 1,
	.get = get_features,
	.set = set_features,
};
