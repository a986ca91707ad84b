/* SPDX-License-Identifier: MIT */
/* One row a meter. */
#include "../meter.h"

/* clang-format off */
#define METERS(row) \
	row(flow) \
	row(tcp) \
	row(disk) \
	row(rusage) \
	row(procstat) \
	row(soak) \
	row(softirq) \
	row(perf) \
	row(energy) \
	row(cpuidle)
/* clang-format on */

#define DECLARE(name) extern const struct nb_meter nb_meter_##name;
#define METER(name) &nb_meter_##name,

METERS(DECLARE)

const struct nb_meter *const nb_meters[] = { METERS(METER) NULL };
