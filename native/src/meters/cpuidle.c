/* SPDX-License-Identifier: MIT */
/* How long each CPU was idle: the residencies of its idle states, stateN/time of
 * /sys/devices/system/cpu/cpuN/cpuidle (Documentation/admin-guide/pm/cpuidle.rst), in us.
 *
 * The kernel adds a stay when it ends. So each CPU has a thread of its own here, which is woken at
 * an edge and reads the files there, where no stay lasts. One that does not come to run in time has
 * a CPU that is busy, whose files are up to date for any reader. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../clock.h"
#include "../job.h"
#include "../meter.h"
#include "../program.h"
#include "cpu_times.h"

enum { STATES = 10 /* CPUIDLE_STATE_MAX */, STACK = 64 * 1024, PATIENCE_NS = 5000000 };
enum { CPUS, IDLE, PINNED_IDLE, PINNED_CPUS, PEER_IDLE, PEER_CPUS, OF_CPUS };

/* clang-format off */
#define NS .unit = NB_UNIT_NS

static const struct nb_field counters[] = {
	[CPUS] = { "cpus", "CPUs that are online" },
	[IDLE] = { "idle_ns", "time in idle states, all CPUs", NS, .flags = NB_IDLE_TIME },
	[PINNED_IDLE] = { "pinned_idle_ns",
			  "of it, of the CPUs that this side's flows are pinned to", NS },
	[PINNED_CPUS] = { "pinned_cpus", "how many these are" },
	[PEER_IDLE] = { "peer_idle_ns", "of it, of the other side's CPUs, of this kernel", NS },
	[PEER_CPUS] = { "peer_cpus", "how many these are" },
	[OF_CPUS] = { "cpu_idle_ns", "time of each CPU in idle states", NS, .per = NB_PER_CPU },
};
/* clang-format on */

struct waker {
	struct wakers *all;
	pthread_t thread;
	int started;
	sem_t asked;
	int files[STATES]; /* -1 behind the last */
	uint64_t idle_ns;
	_Atomic unsigned int answered; /* the edge that idle_ns is of */
};

struct wakers {
	_Atomic unsigned int edge;
	_Atomic int over;
	sem_t answers;
	size_t cpus;
	struct waker of_cpus[];
};

static int open_state(size_t cpu, int state)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/cpuidle/state%d/time", cpu,
		 state);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Every CPU that is online must have idle states, and a thread there must be allowed. */
static int probe_cpuidle(char *why, size_t room)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
	long counted = 0;
	cpu_set_t mine, all;

	for (long cpu = 0; cpu < configured; cpu++) {
		int file = open_state((size_t)cpu, 0);

		counted += file >= 0;
		if (file >= 0)
			close(file);
	}
	if (counted < online) {
		snprintf(why, room,
			 "%ld of %ld CPUs have idle states (/sys/devices/system/cpu/"
			 "cpu*/cpuidle)",
			 counted, online);
		return -1;
	}
	memset(&all, 0xff, sizeof(all));
	sched_getaffinity(0, sizeof(mine), &mine);
	sched_setaffinity(0, sizeof(all), &all); /* the kernel leaves out what is not allowed */
	sched_getaffinity(0, sizeof(all), &all);
	sched_setaffinity(0, sizeof(mine), &mine);
	if (CPU_COUNT(&all) >= online)
		return 0;
	snprintf(why, room,
		 "%d of %ld CPUs are in this process's cpuset: it cannot wake the others",
		 CPU_COUNT(&all), online);
	return -1;
}

static uint64_t idle_now(const struct waker *waker)
{
	uint64_t sum = 0;

	for (int i = 0; i < STATES && waker->files[i] >= 0; i++) {
		char text[32];
		ssize_t length = pread(waker->files[i], text, sizeof(text) - 1, 0);

		if (length <= 0) /* it went offline */
			return NB_MISSING;
		text[length] = 0;
		sum += strtoull(text, NULL, 10);
	}
	return waker->files[0] < 0 ? NB_MISSING : sum * 1000;
}

static void *answer(void *of_cpu)
{
	struct waker *waker = of_cpu;
	struct wakers *all = waker->all;

	for (;;) {
		unsigned int edge;

		while (sem_wait(&waker->asked))
			;
		if (atomic_load(&all->over))
			break;
		edge = atomic_load(&all->edge);
		if (atomic_load(&waker->answered) == edge) /* asked twice while it did not run */
			continue;
		waker->idle_ns = idle_now(waker);
		atomic_store(&waker->answered, edge);
		sem_post(&all->answers);
	}
	return NULL;
}

/* Returns an errno. */
static int start(struct waker *waker, size_t cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;
	int status;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	status = pthread_create(&waker->thread, &attributes, answer, waker);
	pthread_attr_destroy(&attributes);
	waker->started = !status;
	return status;
}

static int open_cpuidle(struct nb_reading *reading, struct nb_error *error)
{
	size_t cpus = reading->cpus < CPU_SETSIZE ? reading->cpus : CPU_SETSIZE;
	struct wakers *all = calloc(1, sizeof(*all) + cpus * sizeof(all->of_cpus[0]));

	reading->state = all;
	if (!all)
		return nb_fail_memory(error, "a meter");
	all->cpus = cpus;
	sem_init(&all->answers, 0, 0);
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		sem_init(&all->of_cpus[cpu].asked, 0, 0);
		all->of_cpus[cpu].all = all;
		for (int i = 0; i < STATES; i++)
			all->of_cpus[cpu].files[i] = -1;
	}
	nb_program_raise_files();
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		struct waker *waker = &all->of_cpus[cpu];
		int i = 0;

		while (i < STATES && (waker->files[i] = open_state(cpu, i)) >= 0)
			i++;
		errno = i && idle_now(waker) != NB_MISSING ? start(waker, cpu) : 0;
		if (errno)
			return nb_fail_errno(error, "open meter", "leave cpuidle out of meters:",
					     "start a thread on CPU %zu", cpu);
	}
	return 0;
}

static int answered(const struct wakers *all, unsigned int edge)
{
	for (size_t cpu = 0; cpu < all->cpus; cpu++)
		if (all->of_cpus[cpu].files[0] >= 0 &&
		    atomic_load(&all->of_cpus[cpu].answered) != edge)
			return 0;
	return 1;
}

static void ask_all(struct wakers *all, unsigned int edge)
{
	uint64_t patience = nb_now() + PATIENCE_NS;
	const struct timespec until = nb_timespec(patience);

	for (size_t cpu = 0; cpu < all->cpus; cpu++)
		sem_post(&all->of_cpus[cpu].asked);
	while (!answered(all, edge) && nb_now() < patience)
		sem_clockwait(&all->answers, CLOCK_MONOTONIC, &until);
}

static void read_cpuidle(struct nb_reading *reading, uint64_t *numbers)
{
	const struct nb_cpus *own = &reading->job->cpus, *peer = &reading->job->peer_cpus;
	uint64_t *of_cpus = numbers + OF_CPUS;
	struct wakers *all = reading->state;
	unsigned int edge = atomic_fetch_add(&all->edge, 1) + 1;

	memset(numbers, 0xff, (OF_CPUS + reading->cpus) * sizeof(*numbers)); /* NB_MISSING */
	numbers[CPUS] = numbers[IDLE] = 0;
	ask_all(all, edge);
	for (size_t cpu = 0; cpu < all->cpus; cpu++) {
		const struct waker *waker = &all->of_cpus[cpu];

		of_cpus[cpu] =
			atomic_load(&waker->answered) == edge ? waker->idle_ns : idle_now(waker);
		if (of_cpus[cpu] == NB_MISSING)
			continue;
		numbers[CPUS]++;
		numbers[IDLE] += of_cpus[cpu];
	}
	if (!numbers[CPUS])
		numbers[CPUS] = numbers[IDLE] = NB_MISSING;
	numbers[PINNED_IDLE] = nb_cpus_sum(own, of_cpus, reading->cpus);
	numbers[PINNED_CPUS] = own->count;
	numbers[PEER_IDLE] = nb_cpus_sum(peer, of_cpus, reading->cpus);
	numbers[PEER_CPUS] = peer->count;
}

/* The window is over: a thread may wait here until its CPU lets it run. */
static void close_cpuidle(struct nb_reading *reading)
{
	struct wakers *all = reading->state;

	if (!all)
		return;
	atomic_store(&all->over, 1);
	for (size_t cpu = 0; cpu < all->cpus; cpu++)
		sem_post(&all->of_cpus[cpu].asked);
	for (size_t cpu = 0; cpu < all->cpus; cpu++) {
		struct waker *waker = &all->of_cpus[cpu];

		if (waker->started)
			pthread_join(waker->thread, NULL);
		for (int i = 0; i < STATES && waker->files[i] >= 0; i++)
			close(waker->files[i]);
	}
	free(all);
}

const struct nb_meter nb_meter_cpuidle = {
	.name = "cpuidle",
	.about = "how long each CPU was in idle states",
	.flags = NB_HOST_WIDE | NB_WITHOUT_SOAK,
	NB_TABLE(counters),
	.probe = probe_cpuidle,
	.open = open_cpuidle,
	.read = read_cpuidle,
	.close = close_cpuidle,
};
