/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD: the wall clock is wrong by as many seconds as the file NB_CLOCK_STEP says (an int64,
 * read anew at each call), so that a test can step it for the processes under test alone. Every
 * other clock is the kernel's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step;

__attribute__((constructor)) static void map(void)
{
	const char *file = getenv("NB_CLOCK_STEP");
	int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (page == MAP_FAILED)
		abort(); /* a test that steps nothing proves nothing */
	step = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, clock, now);

	if (!status && step && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *step;
	return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &exact))
		return -1;
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now)
{
	struct timespec exact;

	if (clock_gettime(CLOCK_REALTIME, &exact))
		return -1;
	if (now)
		*now = exact.tv_sec;
	return exact.tv_sec;
}
