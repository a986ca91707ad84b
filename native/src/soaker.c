/* SPDX-License-Identifier: MIT */
/* The first soaker leads a session: so it has an autogroup of its own, and makes that the lightest
 * there is (sched(7), "The autogroup feature": nice values and SCHED_IDLE hold only within a
 * group). It makes the others, which are the worker's children too (CLONE_PARENT). The kernel kills
 * all of them with the worker (PR_SET_PDEATHSIG).
 *
 * After fork(2) only async-signal-safe functions are called, since the worker has threads
 * (signal-safety(7)); memory is mapped before. */
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
#include "fail.h"
#include "program.h"
#include "wire.h"

enum {
	STEPS = 400,		/* of a quantum: half a microsecond at 3 GHz */
	LINE = 64,		/* bytes of a cache line */
	LINES = 16,		/* of the footprint, that a quantum touches */
	TOLERANCE_NS = 150,	/* beyond a quarter more than usual: a gap */
	SWITCH_LEAST_NS = 2000, /* a shorter gap is no process's: two switches take longer */
	LOOK_MOST_NS = 10000,	/* a look at the switches takes 2000 */
	STALL_LEAST_NS = 50000, /* rarely does an interrupt take so long: the hypervisor */
	RESPONSE = 256,		/* the usual length moves by 1/RESPONSE of itself a quantum */
	CALIBRATION = 64,	/* quanta whose shortest is the first usual one */
	SETTLED = 1024,		/* quanta after which the usual one is known well */
};

enum {
	PATIENCE_MS = 200, /* for that: a loaded CPU leaves no time for it */
	NICEST = 19,
	AUTOGROUP_TRIES = 100, /* without root the kernel takes one change in 100 ms */
	AUTOGROUP_PAUSE_NS = 20000000,
	SOAKER_FAILED = 1
};

/* What is published besides kinds, in the place of the one that is not and behind it:
 * CLOCK_MONOTONIC at the end of the latest quantum, and the usual length of a quantum. */
enum { LAST = NB_SOAK_USED, USUAL, COPIED };

/* The counters of a soaker, whole, in memory that the worker reads. It writes one copy while the
 * other is read: a lock would be held by whoever has the lowest priority. */
struct quanta {
	_Atomic uint64_t versions; /* copies so far; the latest is copies[versions % 2] */
	_Atomic uint64_t copies[2][COPIED];
} __attribute__((aligned(256)));

/* Bytes that the quanta go round through. */
struct footprint {
	unsigned char *bytes;
	size_t size, at;
};

/* In the soaker's own memory. */
struct own {
	uint64_t counts[COPIED];
	uint64_t looked, used; /* when it looked last, and its CPU time then */
	long switches;
};

struct soaked {
	_Atomic pid_t pid; /* whose soaker it is; 0: this CPU has none */
	struct quanta quanta;
};

struct nb_soaking {
	size_t size;		  /* of the mapping */
	const char *_Atomic step; /* that failed */
	_Atomic int error;	  /* its errno */
	_Atomic int started;	  /* each CPU that may be used has its soaker */
	struct soaked cpus[];
};

static const char OPERATION[] = "start soaker";

/* --- quanta of work, each timed --- */

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

static void publish(struct quanta *quanta, const uint64_t *counts)
{
	uint64_t next = atomic_load_explicit(&quanta->versions, memory_order_relaxed) + 1;

	/* Who reads any of these sees in `versions` that the copy is being written. */
	for (size_t i = 0; i < COPIED; i++)
		atomic_store_explicit(&quanta->copies[next % 2][i], counts[i],
				      memory_order_release);
	atomic_store_explicit(&quanta->versions, next, memory_order_release);
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
static uint64_t look(struct own *own, uint64_t gap, uint64_t now)
{
	long switches = count_switches();
	uint64_t used = nb_clock(CLOCK_THREAD_CPUTIME_ID), after = nb_now();
	uint64_t passed = after - own->looked, ran = used - own->used;

	if (switches != own->switches)
		own->counts[NB_SOAK_SWITCHED] += gap;
	else if (passed > ran + STALL_LEAST_NS)
		own->counts[NB_SOAK_STALLED] += passed - ran < gap ? passed - ran : gap;
	own->switches = switches;
	own->looked = after;
	own->used = used;
	if (after - now >= LOOK_MOST_NS) { /* another gap, in here */
		own->counts[NB_SOAK_TAKEN] += after - now;
		own->counts[NB_SOAK_SWITCHED] += after - now;
	}
	return after;
}

static void work_until_killed(struct quanta *quanta, uint64_t began, struct footprint *footprint)
{
	struct own own = { .switches = count_switches() };
	uint64_t *counts = own.counts, number, last, usual;

	number = usual = calibrate(footprint);
	last = nb_now();
	counts[NB_SOAK_TAKEN] = counts[NB_SOAK_SWITCHED] = last - began; /* it had no CPU yet */
	own.looked = last;
	/* A kernel that knows what its hypervisor takes (steal) leaves that out. */
	own.used = nb_clock(CLOCK_THREAD_CPUTIME_ID);
	for (;;) {
		uint64_t step = usual / RESPONSE + 1, now, took, gap;

		number = work(number, footprint);
		now = nb_now();
		took = now - last;
		gap = took < gap_from(usual) ? 0 : took - usual;
		counts[NB_SOAK_TAKEN] += gap;
		counts[NB_SOAK_WORKED] += took - gap;
		counts[NB_SOAK_QUANTA]++;
		usual = took > usual ? usual + step : usual - step;
		last = gap < SWITCH_LEAST_NS ? now : look(&own, gap, now);
		counts[LAST] = last;
		counts[USUAL] = usual;
		publish(quanta, counts);
	}
}

/* Read the counters until now, by enum nb_soak_kind, all but NB_SOAK_USED. */
static void read_quanta(const struct quanta *quanta, uint64_t *counts)
{
	uint64_t version, now, copy[COPIED];

	do {
		version = atomic_load_explicit(&quanta->versions, memory_order_acquire);
		for (size_t i = 0; i < COPIED; i++)
			copy[i] = atomic_load_explicit(&quanta->copies[version % 2][i],
						       memory_order_acquire);
		now = nb_now();
	} while (atomic_load_explicit(&quanta->versions, memory_order_relaxed) != version);
	memcpy(counts, copy, NB_SOAK_USED * sizeof(*counts));
	/* A gap that has not ended is most likely another process's; its end will tell. */
	if (now > copy[LAST] && now - copy[LAST] >= gap_from(copy[USUAL])) {
		counts[NB_SOAK_TAKEN] += now - copy[LAST] - copy[USUAL];
		counts[NB_SOAK_SWITCHED] += now - copy[LAST] - copy[USUAL];
	}
}

/* --- processes --- */

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
			nb_sleep(AUTOGROUP_PAUSE_NS);
	}
	close(fd);
	return status;
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
			/* A fork whose parent is this process's own: 0 in the child. */
			pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
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
	const uint64_t began = nb_now();
	const char *step;
	size_t cpu;

	prctl(PR_SET_NAME, "nb-soaker");
	setsid();
	if (lighten_autogroup())
		fail(soaking, "write /proc/self/autogroup");
	for (cpu = 0; cpu < cpus; cpu++)
		publish(&soaking->cpus[cpu].quanta, (const uint64_t[COPIED]){ [LAST] = began });
	cpu = spread(soaking, usable, cpus, worker);
	step = go_behind(cpu);
	if (step)
		fail(soaking, step);
	work_until_killed(&soaking->cpus[cpu].quanta, began, footprint);
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
		    atomic_load(&soaker->soaking->cpus[i].quanta.versions) < SETTLED)
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
		nb_sleep(1000000);
	}
	errno = step ? atomic_load(&soaker->soaking->error) : ESRCH;
	return nothing_started(soaker, step ? step : "the soaker has ended", error);
}

int nb_soaker_start(struct nb_soaker *soaker, size_t footprint, struct nb_error *error)
{
	struct footprint touched = { .size = footprint };
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

int nb_soaker_read(const struct nb_soaker *soaker, size_t cpu, uint64_t *counts)
{
	const struct soaked *soaked = &soaker->soaking->cpus[cpu];
	pid_t pid = cpu < soaker->cpus ? atomic_load(&soaked->pid) : 0;
	clockid_t clock;

	if (!pid || ended(pid))
		return -1;
	read_quanta(&soaked->quanta, counts);
	counts[NB_SOAK_USED] = clock_getcpuclockid(pid, &clock) ? NB_MISSING : nb_clock(clock);
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
		nb_sleep(1000000);
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
