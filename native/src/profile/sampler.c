/* SPDX-License-Identifier: MIT */
#include "sampler.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../clock.h"
#include "kernel_symbols.h"
#include "processes.h"
#include "profile_text.h"
#include "ring.h"
#include "stacks.h"

enum { DRAIN_MS = 100, CPUS_MAX = 65536 };

static const char OPERATION[] = "profile";

/* The one profile of this process. While the thread runs, what it fills is its own. */
static struct {
	enum nb_sampler_state state;
	struct nb_profile profile;
	struct nb_ring *rings;
	size_t count;
	pthread_t thread;
	int stop; /* an eventfd that ends the thread; -1: there is no thread */
	struct nb_ring_reader reader;
	char *report;
	size_t length;
} sampler = { .stop = -1 };

static void take_sample(struct nb_ring_reader *reader, const struct nb_sample *sample)
{
	(void)reader;
	nb_profile_add(&sampler.profile, sample);
}

static void drain(void)
{
	for (size_t i = 0; i < sampler.count; i++)
		nb_ring_drain(&sampler.rings[i], &sampler.reader);
}

static void *drain_until_stopped(void *unused)
{
	struct pollfd stop = { .fd = sampler.stop, .events = POLLIN };

	(void)unused;
	while (poll(&stop, 1, DRAIN_MS) <= 0)
		drain();
	return NULL;
}

static int open_rings(enum nb_ring_event event, uint64_t frequency, struct nb_error *error)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	size_t cpus = configured < 1 ? 1 : configured > CPUS_MAX ? CPUS_MAX : (size_t)configured;

	sampler.rings = calloc(cpus, sizeof(*sampler.rings));
	if (!sampler.rings)
		return nb_fail(error, NB_ERR_MEMORY, OPERATION, "free some memory", "no memory");
	for (size_t i = 0; i < cpus; i++) {
		struct nb_ring *ring = &sampler.rings[sampler.count];
		int status = nb_ring_open(ring, (int)i, event, frequency, error);

		if (status && error->error == ENODEV) /* that CPU is offline */
			continue;
		if (status)
			return status;
		sampler.count++;
	}
	return sampler.count ? 0
			     : nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "leave `profile:` out",
				       "no CPU has a perf event");
}

static void close_rings(void)
{
	for (size_t i = 0; i < sampler.count; i++)
		nb_ring_close(&sampler.rings[i]);
	free(sampler.rings);
	sampler.rings = NULL;
	sampler.count = 0;
}

/* Cycles where this machine counts them, else ticks of the CPUs' clocks. */
static int open_events(uint64_t frequency, struct nb_error *error)
{
	int status = open_rings(NB_RING_CYCLES, frequency, error);

	sampler.profile.event = "cycles";
	if (status != -NB_ERR_UNSUPPORTED)
		return status;
	close_rings();
	sampler.profile.event = "cpu-clock";
	return open_rings(NB_RING_CPU_CLOCK, frequency, error);
}

static int start_thread(struct nb_error *error)
{
	sampler.stop = eventfd(0, EFD_CLOEXEC);
	if (sampler.stop >= 0 && !pthread_create(&sampler.thread, NULL, drain_until_stopped, NULL))
		return 0;
	if (sampler.stop >= 0)
		close(sampler.stop);
	sampler.stop = -1;
	return nb_fail_errno(error, OPERATION, "free some memory on that host", "a thread");
}

static void end_thread(void)
{
	uint64_t one = 1;

	if (sampler.stop < 0)
		return;
	while (write(sampler.stop, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(sampler.thread, NULL);
	close(sampler.stop);
	sampler.stop = -1;
}

void nb_sampler_end(void)
{
	end_thread();
	close_rings();
	nb_profile_free(&sampler.profile);
	free(sampler.report);
	sampler.report = NULL;
	sampler.length = 0;
	sampler.state = NB_SAMPLER_IDLE;
}

int nb_sampler_prepare(uint64_t frequency, struct nb_error *error)
{
	int status;

	nb_sampler_end();
	sampler.reader = (struct nb_ring_reader){ .sample = take_sample };
	sampler.profile.frequency = frequency;
	status = open_events(frequency, error);
	if (!status)
		status = nb_kernel_symbols_read(&sampler.profile.kernel, "/proc/kallsyms", error);
	if (!status)
		status = start_thread(error);
	if (status) {
		nb_sampler_end();
		return status;
	}
	sampler.state = NB_SAMPLER_READY;
	return 0;
}

static int fail_order(const char *what, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "prepare, start, stop: in this order",
		       "there is no profile to %s", what);
}

static int switch_events(int on)
{
	int failed = 0;

	for (size_t i = 0; i < sampler.count; i++)
		failed |= nb_ring_enable(&sampler.rings[i], on);
	return failed;
}

int nb_sampler_start(struct nb_error *error)
{
	if (sampler.state != NB_SAMPLER_READY)
		return fail_order("start", error);
	sampler.profile.begin = nb_now();
	if (switch_events(1))
		return nb_fail_errno(error, OPERATION, "look at `dmesg` of that host",
				     "a perf event cannot be switched on");
	sampler.state = NB_SAMPLER_ON;
	return 0;
}

int nb_sampler_stop(struct nb_error *error)
{
	if (sampler.state != NB_SAMPLER_ON)
		return fail_order("stop", error);
	switch_events(0);
	sampler.profile.end = nb_now();
	end_thread();
	drain();
	sampler.profile.cpus = sampler.count;
	sampler.profile.lost = sampler.reader.lost;
	sampler.profile.throttles = sampler.reader.throttles;
	sampler.report = nb_profile_text(&sampler.profile, &sampler.length);
	close_rings();
	nb_profile_free(&sampler.profile);
	sampler.state = NB_SAMPLER_DONE;
	return sampler.report ? 0
			      : nb_fail(error, NB_ERR_MEMORY, OPERATION, "free some memory",
					"no memory for the profile");
}

enum nb_sampler_state nb_sampler_state(void)
{
	return sampler.state;
}

uint64_t nb_sampler_frequency(void)
{
	return sampler.profile.frequency;
}

const char *nb_sampler_report(size_t *length)
{
	*length = sampler.length;
	return sampler.report ? sampler.report : "";
}
