/* SPDX-License-Identifier: MIT */
/*
 * The first soaker leads a session: so it has an autogroup of its own, and makes that the lightest
 * there is (sched(7), "The autogroup feature": nice values and SCHED_IDLE hold only within a
 * group). It makes the others, which are the worker's children too (CLONE_PARENT). The kernel kills
 * all of them with the worker (PR_SET_PDEATHSIG).
 *
 * After fork(2) only async-signal-safe functions are called, since the worker has threads
 * (signal-safety(7)); memory is mapped before.
 */
#include "soaker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "field.h"
#include "heartbeat.h"
#include "program.h"

enum {
	PATIENCE_MS = 200, /* for that: a loaded CPU leaves no time for it */
	NICEST = 19,
	AUTOGROUP_TRIES = 100, /* without root the kernel takes one change in 100 ms */
	AUTOGROUP_PAUSE_NS = 20000000,
	SOAKER_FAILED = 1
};

struct soaked {
	_Atomic pid_t pid; /* whose soaker it is; 0: this CPU has none */
	struct nb_quanta quanta;
};

struct nb_soaking {
	size_t size;		  /* of the mapping */
	const char *_Atomic step; /* that failed */
	_Atomic int error;	  /* its errno */
	_Atomic int started;	  /* each CPU that may be used has its soaker */
	struct soaked cpus[];
};

static const char OPERATION[] = "start soaker";

static void pause_ns(long ns)
{
	struct timespec pause = { .tv_nsec = ns };

	nanosleep(&pause, NULL);
}

/* A process of its own for each soaker: pinned, and behind all others. Returns what failed. */
static const char *go_behind(size_t cpu)
{
	const struct sched_param none = { 0 };
	cpu_set_t set;

	if (sched_setscheduler(0, SCHED_IDLE, &none))
		return "sched_setscheduler(SCHED_IDLE)";
	/* Only for the accounts: /proc/stat counts its time as `nice`. */
	if (setpriority(PRIO_PROCESS, 0, NICEST))
		return "setpriority";
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? "sched_setaffinity" : NULL;
}

static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(SOAKER_FAILED);
}

static void fail(struct nb_soaking *soaking, const char *step)
{
	atomic_store(&soaking->error, errno);
	atomic_store(&soaking->step, step);
	_exit(SOAKER_FAILED);
}

/* --- the first soaker --- */

/* 0, or -1 with errno. A kernel without autogroups has no such file. */
static int lighten_autogroup(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC), status = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	for (int i = 0; status < 0 && i < AUTOGROUP_TRIES; i++) {
		status = write(fd, "19", 2) == 2 ? 0 : -1;
		if (status && errno != EAGAIN)
			break;
		if (status)
			pause_ns(AUTOGROUP_PAUSE_NS);
	}
	close(fd);
	return status;
}

/* A fork whose parent is this process's own: 0 in the child. */
static pid_t fork_sibling(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
}

/* Make the other soakers; in them and in the first: the CPU to soak on. */
static size_t spread(struct nb_soaking *soaking, const cpu_set_t *usable, size_t cpus, pid_t worker)
{
	size_t mine = cpus;

	for (size_t i = cpus; i-- > 0;) {
		pid_t pid = 0;

		if (!CPU_ISSET(i, usable))
			continue;
		if (mine < cpus) {
			pid = fork_sibling();
			if (pid < 0)
				fail(soaking, "clone");
			if (!pid) {
				die_with(worker);
				return mine;
			}
			atomic_store(&soaking->cpus[mine].pid, pid);
		}
		mine = i;
	}
	atomic_store(&soaking->cpus[mine].pid, getpid());
	atomic_store(&soaking->started, 1);
	return mine;
}

static void lead(struct nb_soaking *soaking, const cpu_set_t *usable, size_t cpus, pid_t worker,
		 struct nb_footprint *footprint)
{
	const uint64_t began = nb_now();
	const char *step;
	size_t cpu;

	prctl(PR_SET_NAME, "nb-soaker");
	setsid();
	if (lighten_autogroup())
		fail(soaking, "write /proc/self/autogroup");
	for (cpu = 0; cpu < cpus; cpu++)
		nb_quanta_begin(&soaking->cpus[cpu].quanta, began);
	cpu = spread(soaking, usable, cpus, worker);
	step = go_behind(cpu);
	if (step)
		fail(soaking, step);
	nb_quanta_work(&soaking->cpus[cpu].quanta, began, footprint);
}

/* --- the worker --- */

static int nothing_started(struct nb_soaker *soaker, const char *what, struct nb_error *error)
{
	int status = nb_fail_errno(error, OPERATION, "leave soak out of meters:", "%s", what);

	nb_soaker_stop(soaker);
	return status;
}

static void *map(size_t size, int sharing)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Whether a child has ended; it stays to be waited for, so that its pid is no other's. */
static int ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

static int settled(const struct nb_soaker *soaker)
{
	int count = atomic_load(&soaker->soaking->started);

	for (size_t i = 0; count && i < soaker->cpus; i++)
		if (atomic_load(&soaker->soaking->cpus[i].pid) &&
		    !nb_quanta_settled(&soaker->soaking->cpus[i].quanta))
			return 0;
	return count;
}

/* Wait until the soakers are there, and a while for each to know its usual quantum. */
static int await_soakers(struct nb_soaker *soaker, struct nb_error *error)
{
	uint64_t patience = nb_now() + PATIENCE_MS * 1000000ULL;
	const char *step;

	for (;;) {
		step = atomic_load(&soaker->soaking->step);
		if (step || ended(soaker->pid))
			break;
		if (settled(soaker) ||
		    (nb_now() > patience && atomic_load(&soaker->soaking->started)))
			return 0;
		nb_heartbeat();
		pause_ns(1000000);
	}
	errno = step ? atomic_load(&soaker->soaking->error) : ESRCH;
	return nothing_started(soaker, step ? step : "the soaker has ended", error);
}

int nb_soaker_start(struct nb_soaker *soaker, size_t footprint, struct nb_error *error)
{
	struct nb_footprint touched = { .size = footprint };
	pid_t worker = getpid();
	sigset_t all, mask;
	cpu_set_t usable;
	size_t size;

	*soaker = (struct nb_soaker){ .cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF) };
	if (soaker->cpus > CPU_SETSIZE)
		soaker->cpus = CPU_SETSIZE;
	size = sizeof(*soaker->soaking) + soaker->cpus * sizeof(soaker->soaking->cpus[0]);
	soaker->soaking = map(size, MAP_SHARED);
	if (!soaker->soaking)
		return nothing_started(soaker, "mmap", error);
	soaker->soaking->size = size;
	if (footprint && !(touched.bytes = map(footprint, MAP_PRIVATE)))
		return nothing_started(soaker, "mmap of the footprint", error);
	if (sched_getaffinity(0, sizeof(usable), &usable))
		return nothing_started(soaker, "sched_getaffinity", error);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	soaker->pid = fork();
	if (!soaker->pid) {
		die_with(worker);
		nb_program_close(0, ~0U);
		lead(soaker->soaking, &usable, soaker->cpus, worker, &touched);
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (footprint)
		munmap(touched.bytes, footprint);
	if (soaker->pid < 0) {
		soaker->pid = 0;
		return nothing_started(soaker, "fork", error);
	}
	return await_soakers(soaker, error);
}

static uint64_t cpu_time(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return NB_MISSING;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

int nb_soaker_read(const struct nb_soaker *soaker, size_t cpu, uint64_t *counts)
{
	const struct soaked *soaked = &soaker->soaking->cpus[cpu];
	pid_t pid = cpu < soaker->cpus ? atomic_load(&soaked->pid) : 0;

	if (!pid || ended(pid))
		return -1;
	nb_quanta_read(&soaked->quanta, counts);
	counts[NB_SOAK_USED] = cpu_time(pid);
	return counts[NB_SOAK_USED] == NB_MISSING ? -1 : 0;
}

/* Wait for a child, or for those of a group (-pid), until there is none any more. */
static void await_end(pid_t pid)
{
	pid_t ended;

	while ((ended = waitpid(pid, NULL, WNOHANG)) >= 0) {
		if (ended)
			continue;
		nb_heartbeat(); /* one that is killed needs its CPU once more to end */
		pause_ns(1000000);
	}
}

void nb_soaker_stop(struct nb_soaker *soaker)
{
	if (soaker->pid) {
		kill(soaker->pid, SIGKILL); /* it may not lead a group yet */
		kill(-soaker->pid, SIGKILL);
		await_end(-soaker->pid);
		await_end(soaker->pid);
	}
	if (soaker->soaking)
		munmap(soaker->soaking, soaker->soaking->size);
	*soaker = (struct nb_soaker){ 0 };
}
