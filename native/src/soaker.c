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

enum {
	STEPS = 400,		/* of a quantum: half a microsecond at 3 GHz */
	LINE = 64,		/* bytes of a cache line */
	LINES = 16,		/* of the footprint, that a quantum touches */
	TOLERANCE_NS = 150,	/* beyond a quarter more than usual: a gap */
	SWITCH_LEAST_NS = 2000, /* a shorter gap is no process's: two switches take longer */
	LOOK_MOST_NS = 10000,	/* a look at the switches takes 2000 */
	RESPONSE = 256,		/* the usual length moves by 1/RESPONSE of itself a quantum */
	CALIBRATION = 64,	/* quanta whose shortest is the first usual one */
	SETTLED = 1024,		/* quanta after which the usual one is known well */
	PATIENCE_MS = 200,	/* for that: a loaded CPU leaves no time for it */
	NICEST = 19,
	AUTOGROUP_TRIES = 100, /* without root the kernel takes one change in 100 ms */
	AUTOGROUP_PAUSE_NS = 20000000,
	SOAKER_FAILED = 1
};

/* The counters of a soaker, whole. It writes one copy while the other is read: a lock would be held
 * by whoever has the lowest priority. */
struct copy {
	_Atomic uint64_t last;	/* CLOCK_MONOTONIC at the end of the latest quantum */
	_Atomic uint64_t usual; /* length of a quantum, ns */
	_Atomic uint64_t taken;
	_Atomic uint64_t switched;
	_Atomic uint64_t quanta;
	_Atomic uint64_t worked;
};

struct soaked {
	_Atomic pid_t pid;	   /* whose soaker it is; 0: this CPU has none */
	_Atomic uint64_t versions; /* copies so far; the latest is copies[versions % 2] */
	struct copy copies[2];
} __attribute__((aligned(256)));

struct nb_soaking {
	size_t size;		  /* of the mapping */
	const char *_Atomic step; /* that failed */
	_Atomic int error;	  /* its errno */
	_Atomic int started;	  /* each CPU that may be used has its soaker */
	struct soaked cpus[];
};

/* The same in the soaker's own memory. */
struct counts {
	uint64_t last, usual, taken, switched, quanta, worked;
	long switches;
};

struct footprint {
	unsigned char *bytes;
	size_t size, at;
};

static const char OPERATION[] = "start soaker";

static void pause_ns(long ns)
{
	struct timespec pause = { .tv_nsec = ns };

	nanosleep(&pause, NULL);
}

/* --- a soaker --- */

/* A chain of dependent steps, and the next lines of the footprint. */
static uint64_t work(uint64_t number, struct footprint *footprint)
{
	for (int i = 0; i < STEPS; i++) {
		number = number * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(number)); /* each step is done */
	}
	for (int i = 0; footprint->size && i < LINES; i++) {
		footprint->bytes[footprint->at] = (unsigned char)number;
		footprint->at += LINE;
		if (footprint->at >= footprint->size)
			footprint->at = 0;
	}
	return number;
}

static void publish(struct soaked *soaked, const struct counts *counts)
{
	uint64_t next = atomic_load_explicit(&soaked->versions, memory_order_relaxed) + 1;
	struct copy *into = &soaked->copies[next % 2];

	/* Who reads any of these sees in `versions` that the copy is being written. */
	atomic_store_explicit(&into->last, counts->last, memory_order_release);
	atomic_store_explicit(&into->usual, counts->usual, memory_order_release);
	atomic_store_explicit(&into->taken, counts->taken, memory_order_release);
	atomic_store_explicit(&into->switched, counts->switched, memory_order_release);
	atomic_store_explicit(&into->quanta, counts->quanta, memory_order_release);
	atomic_store_explicit(&into->worked, counts->worked, memory_order_release);
	atomic_store_explicit(&soaked->versions, next, memory_order_release);
}

/* From this length on a quantum was interrupted. */
static uint64_t gap_from(uint64_t usual)
{
	return usual + usual / 4 + TOLERANCE_NS;
}

/* How often this process was taken off its CPU. */
static long count_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* The shortest of some quanta: the usual length, to begin with. */
static uint64_t calibrate(struct footprint *footprint)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < CALIBRATION; i++) {
		uint64_t began = nb_now(), took;

		work(began, footprint);
		took = nb_now() - began;
		shortest = took < shortest ? took : shortest;
	}
	return shortest;
}

/* Whose a gap was; it has just ended. Returns the time when that is known. */
static uint64_t look(struct counts *counts, uint64_t gap, uint64_t now)
{
	long switches = count_switches();
	uint64_t after = nb_now();

	if (switches != counts->switches)
		counts->switched += gap;
	counts->switches = switches;
	if (after - now >= LOOK_MOST_NS) { /* another gap, in here */
		counts->taken += after - now;
		counts->switched += after - now;
	}
	return after;
}

/* Soak until killed. `began`: since when the CPU is watched. */
static void soak(struct soaked *soaked, uint64_t began, struct footprint *footprint)
{
	struct counts counts = { .usual = calibrate(footprint), .switches = count_switches() };
	uint64_t number = counts.usual;

	counts.last = nb_now();
	counts.taken = counts.switched = counts.last - began; /* it had nothing of its CPU */
	for (;;) {
		uint64_t step = counts.usual / RESPONSE + 1, now, took, gap;

		number = work(number, footprint);
		now = nb_now();
		took = now - counts.last;
		gap = took < gap_from(counts.usual) ? 0 : took - counts.usual;
		counts.taken += gap;
		counts.worked += took - gap;
		counts.quanta++;
		counts.usual = took > counts.usual ? counts.usual + step : counts.usual - step;
		counts.last = gap < SWITCH_LEAST_NS ? now : look(&counts, gap, now);
		publish(soaked, &counts);
	}
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

static void close_all(int most)
{
	if (!syscall(SYS_close_range, 0U, ~0U, 0U))
		return;
	for (int fd = 0; fd < most; fd++) /* a kernel before 5.9 */
		close(fd);
}

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
		 struct footprint *footprint)
{
	const struct counts nothing = { .last = nb_now() };
	const char *step;
	size_t cpu;

	prctl(PR_SET_NAME, "nb-soaker");
	setsid();
	if (lighten_autogroup())
		fail(soaking, "write /proc/self/autogroup");
	for (cpu = 0; cpu < cpus; cpu++)
		publish(&soaking->cpus[cpu], &nothing);
	cpu = spread(soaking, usable, cpus, worker);
	step = go_behind(cpu);
	if (step)
		fail(soaking, step);
	soak(&soaking->cpus[cpu], nothing.last, footprint);
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
		    atomic_load(&soaker->soaking->cpus[i].versions) < SETTLED)
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
	struct footprint touched = { .size = footprint };
	pid_t worker = getpid();
	int most = (int)sysconf(_SC_OPEN_MAX);
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
		close_all(most);
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

/* The counters of a copy; when they were read. */
static uint64_t read_copy(const struct copy *copy, uint64_t *last, uint64_t *usual,
			  uint64_t *counts)
{
	*last = atomic_load_explicit(&copy->last, memory_order_acquire);
	*usual = atomic_load_explicit(&copy->usual, memory_order_acquire);
	counts[NB_SOAK_TAKEN] = atomic_load_explicit(&copy->taken, memory_order_acquire);
	counts[NB_SOAK_SWITCHED] = atomic_load_explicit(&copy->switched, memory_order_acquire);
	counts[NB_SOAK_QUANTA] = atomic_load_explicit(&copy->quanta, memory_order_acquire);
	counts[NB_SOAK_WORKED] = atomic_load_explicit(&copy->worked, memory_order_acquire);
	return nb_now();
}

int nb_soaker_read(const struct nb_soaker *soaker, size_t cpu, uint64_t *counts)
{
	const struct soaked *soaked = &soaker->soaking->cpus[cpu];
	pid_t pid = cpu < soaker->cpus ? atomic_load(&soaked->pid) : 0;
	uint64_t version, last, usual, now;

	if (!pid || ended(pid))
		return -1;
	do {
		version = atomic_load_explicit(&soaked->versions, memory_order_acquire);
		now = read_copy(&soaked->copies[version % 2], &last, &usual, counts);
	} while (atomic_load_explicit(&soaked->versions, memory_order_relaxed) != version);
	/* A gap that has not ended is most likely another process's; its end will tell. */
	if (now > last && now - last >= gap_from(usual)) {
		counts[NB_SOAK_TAKEN] += now - last - usual;
		counts[NB_SOAK_SWITCHED] += now - last - usual;
	}
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
