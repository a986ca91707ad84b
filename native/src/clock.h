/* SPDX-License-Identifier: MIT */
#ifndef NB_CLOCK_H
#define NB_CLOCK_H

#include <stdint.h>
#include <time.h>

/* A clock in nanoseconds; UINT64_MAX: it cannot be read. */
static inline uint64_t nb_clock(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return UINT64_MAX;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t nb_now(void)
{
	return nb_clock(CLOCK_MONOTONIC);
}

static inline struct timespec nb_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* Sleep so long, or until a signal. */
static inline void nb_sleep(uint64_t ns)
{
	const struct timespec time = nb_timespec(ns);

	nanosleep(&time, NULL);
}

/* Sleep until then, or 10 ms, so that a stop is seen. */
static inline void nb_sleep_until(uint64_t then, uint64_t now)
{
	struct timespec at = nb_timespec(then < now + 10000000 ? then : now + 10000000);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

#endif
