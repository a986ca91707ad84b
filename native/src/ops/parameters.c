/* SPDX-License-Identifier: MIT */
/* Numbers of a device: rings, coalescing, channels. Each is a struct of ethtool's ioctl, and its
 * fields by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"

enum { COMMAND_ROOM = 128 };

struct parameter {
	const char *name;
	size_t offset;
	int maximum; /* what the device can do: only read */
};

struct family {
	const char *name;
	const char *what;
	uint32_t get;
	uint32_t set;
	const struct parameter *parameters; /* end with a NULL name */
};

#define RING(name, field) { name, offsetof(struct ethtool_ringparam, field##_pending), 0 }
#define RING_MAX(name, field)                                                                      \
	{ name "_max", offsetof(struct ethtool_ringparam, field##_max_pending), 1 }
#define COALESCE(name, field) { name, offsetof(struct ethtool_coalesce, field), 0 }
#define CHANNEL(name) { #name, offsetof(struct ethtool_channels, name##_count), 0 }
#define CHANNEL_MAX(name) { #name "_max", offsetof(struct ethtool_channels, max_##name), 1 }

static const struct family rings = {
	.name = "rings",
	.what = "ring sizes",
	.get = ETHTOOL_GRINGPARAM,
	.set = ETHTOOL_SRINGPARAM,
	.parameters =
		(const struct parameter[]){
			RING("rx", rx),
			RING("tx", tx),
			RING_MAX("rx", rx),
			RING_MAX("tx", tx),
			{ 0 },
		},
};

static const struct family coalesce = {
	.name = "coalesce",
	.what = "coalescing",
	.get = ETHTOOL_GCOALESCE,
	.set = ETHTOOL_SCOALESCE,
	.parameters =
		(const struct parameter[]){
			COALESCE("rx_usecs", rx_coalesce_usecs),
			COALESCE("rx_frames", rx_max_coalesced_frames),
			COALESCE("rx_usecs_irq", rx_coalesce_usecs_irq),
			COALESCE("rx_frames_irq", rx_max_coalesced_frames_irq),
			COALESCE("tx_usecs", tx_coalesce_usecs),
			COALESCE("tx_frames", tx_max_coalesced_frames),
			COALESCE("tx_usecs_irq", tx_coalesce_usecs_irq),
			COALESCE("tx_frames_irq", tx_max_coalesced_frames_irq),
			COALESCE("adaptive_rx", use_adaptive_rx_coalesce),
			COALESCE("adaptive_tx", use_adaptive_tx_coalesce),
			{ 0 },
		},
};

static const struct family channels = {
	.name = "channels",
	.what = "channels",
	.get = ETHTOOL_GCHANNELS,
	.set = ETHTOOL_SCHANNELS,
	.parameters =
		(const struct parameter[]){
			CHANNEL(rx),
			CHANNEL(tx),
			CHANNEL(other),
			CHANNEL(combined),
			CHANNEL_MAX(rx),
			CHANNEL_MAX(tx),
			CHANNEL_MAX(other),
			CHANNEL_MAX(combined),
			{ 0 },
		},
};

/* Any of the three structs: all are u32, the command first. */
union command {
	uint32_t numbers[COMMAND_ROOM / sizeof(uint32_t)];
	struct ethtool_ringparam rings;
	struct ethtool_coalesce coalesce;
	struct ethtool_channels channels;
};
_Static_assert(sizeof(union command) == COMMAND_ROOM, "every field is within the numbers");

static uint32_t *number(union command *command, const struct parameter *parameter)
{
	return &command->numbers[parameter->offset / sizeof(uint32_t)];
}

static int read_family(const struct family *family, const char *interface, union command *command,
		       struct nb_error *error)
{
	int index = nb_interface(interface, family->name, error);

	memset(command, 0, sizeof(*command));
	if (index < 0)
		return index;
	command->numbers[0] = family->get;
	return nb_ethtool(interface, command)
		       ? nb_fail_device(error, family->name, interface, family->what)
		       : 0;
}

static int get_family(const struct family *family, const struct nb_target *target, FILE *text,
		      struct nb_error *error)
{
	union command command;
	int status = read_family(family, nb_target_word(target, 0), &command, error);

	for (const struct parameter *p = family->parameters; !status && p->name; p++)
		fprintf(text, "%s: %u\n", p->name, *number(&command, p));
	return status;
}

static int change_number(const struct family *family, const struct nb_line *line,
			 union command *command, const char *interface, struct nb_error *error)
{
	const struct parameter *p = family->parameters;
	unsigned long long value;
	char *end;

	while (p->name && strcmp(p->name, line->name) != 0)
		p++;
	if (p->name && p->maximum && line->read)
		return 0;
	if (!p->name || p->maximum)
		return nb_fail(
			error, NB_ERR_UNSUPPORTED, family->name, "set one of those that it reads",
			"'%s' of %s %s", line->name, interface,
			p->name ? "is what the device can do, and cannot be set" : "is not known");
	errno = 0;
	value = strtoull(line->value, &end, 10);
	if (errno || *end || line->value[0] < '0' || line->value[0] > '9' || value > UINT32_MAX)
		return nb_fail(error, NB_ERR_REQUEST, family->name, "write a whole number",
			       "'%s' for %s of %s", line->value, line->name, interface);
	*number(command, p) = (uint32_t)value;
	return 0;
}

static int set_family(const struct family *family, const struct nb_target *target,
		      const char *value, struct nb_error *error)
{
	const char *interface = nb_target_word(target, 0);
	union command before, command;
	int status = read_family(family, interface, &before, error), more;
	struct nb_line line;

	command = before;
	while (!status && (more = nb_next_line(&value, &line)) != 0)
		status = more > 0 ? change_number(family, &line, &command, interface, error)
				  : nb_fail(error, NB_ERR_REQUEST, family->name,
					    "write NAME NUMBER, one a line",
					    "a line for %s without a name and a number", interface);
	/* Many drivers take the link down for a change, even for one that changes nothing. */
	if (status || !memcmp(&before, &command, sizeof(command)))
		return status;
	command.numbers[0] = family->set;
	return nb_ethtool(interface, &command)
		       ? nb_fail_device(error, family->name, interface, family->what)
		       : 0;
}

#define FAMILY_OP(family, what_it_is)                                                              \
	static int get_##family(const struct nb_target *target, FILE *text,                        \
				struct nb_error *error)                                            \
	{                                                                                          \
		return get_family(&family, target, text, error);                                   \
	}                                                                                          \
	static int set_##family(const struct nb_target *target, const char *value,                 \
				struct nb_error *error)                                            \
	{                                                                                          \
		return set_family(&family, target, value, error);                                  \
	}                                                                                          \
	const struct nb_op nb_op_##family = {                                                      \
		.name = #family,                                                                   \
		.about = what_it_is,                                                               \
		.words = 1,                                                                        \
		.named = 1,                                                                        \
		.get = get_##family,                                                               \
		.set = set_##family,                                                               \
	};

FAMILY_OP(rings, "sizes of a device's rings: NAME NUMBER, one a line")
FAMILY_OP(coalesce, "how long, and for how many packets, a device waits before it interrupts: NAME "
		    "NUMBER, one a line")
FAMILY_OP(channels, "queues of a device: NAME NUMBER, one a line")
