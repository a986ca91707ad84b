/* SPDX-License-Identifier: MIT */
/*
 * A profile of all CPUs. The target `sampling` reads `off`, `ready` or `on`, and takes `ready
 * FREQUENCY`, `on` and `off`, in this order; what was sampled is then read in parts: the targets 0,
 * 1, ... until one is empty.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../profile/sampler.h"
#include "op.h"

enum { PART = NB_OP_TEXT - 8, DECIMAL = 10 };

static const uint64_t MOST_HZ = 100000;
static const char OPERATION[] = "profile", SAMPLING[] = "sampling", READY[] = "ready ";

static int number_of(const char *text, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, DECIMAL);
	return *text >= '0' && *text <= '9' && !*end ? 0 : -1;
}

static void add_state(FILE *text)
{
	switch (nb_sampler_state()) {
	case NB_SAMPLER_READY:
		fprintf(text, "ready %" PRIu64 "\n", nb_sampler_frequency());
		break;
	case NB_SAMPLER_ON:
		fprintf(text, "on at %" PRIu64 " Hz\n", nb_sampler_frequency());
		break;
	default:
		fprintf(text, "off\n");
	}
}

static int get_profile(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	size_t length;
	const char *report = nb_sampler_report(&length);
	uint64_t part;

	if (!strcmp(target->words, SAMPLING)) {
		add_state(text);
		return 0;
	}
	if (number_of(target->words, &part))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "read sampling, or a part",
			       "'%.20s' is no part of a profile", target->words);
	if (part < length / PART + 1)
		fprintf(text, "%.*s", (int)PART, report + part * PART);
	return 0;
}

static int set_profile(const struct nb_target *target, const char *value, struct nb_error *error)
{
	uint64_t frequency = 0;

	if (strcmp(target->words, SAMPLING) != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "change sampling",
			       "a part of a profile is only read");
	if (!strcmp(value, "on"))
		return nb_sampler_start(error);
	if (!strcmp(value, "off"))
		return nb_sampler_stop(error);
	if (strncmp(value, READY, strlen(READY)) != 0 ||
	    number_of(value + strlen(READY), &frequency) || !frequency || frequency > MOST_HZ)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write ready FREQUENCY, on or off",
			       "'%.40s' is no order for a profile", value);
	return nb_sampler_prepare(frequency, error);
}

const struct nb_op nb_op_profile = {
	.name = "profile",
	.about = "a profile of all CPUs: `sampling` takes `ready FREQUENCY`, `on`, `off`; parts of "
		 "what was sampled by number",
	.words = 1,
	.get = get_profile,
	.set = set_profile,
};
