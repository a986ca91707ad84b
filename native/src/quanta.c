/* SPDX-License-Identifier: MIT */
#include "quanta.h"

#include <sys/resource.h>
#include <time.h>

#include "clock.h"

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

/* The same in the soaker's own memory. */
struct counts {
	uint64_t last, usual, taken, switched, stalled, quanta, worked;
	uint64_t looked, used; /* when it looked last, and its CPU time then */
	long switches;
};

/* A chain of dependent steps, and the next lines of the footprint. */
static uint64_t work(uint64_t number, struct nb_footprint *footprint)
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

static void publish(struct nb_quanta *quanta, const struct counts *counts)
{
	uint64_t next = atomic_load_explicit(&quanta->versions, memory_order_relaxed) + 1;
	struct nb_quanta_copy *into = &quanta->copies[next % 2];

	/* Who reads any of these sees in `versions` that the copy is being written. */
	atomic_store_explicit(&into->last, counts->last, memory_order_release);
	atomic_store_explicit(&into->usual, counts->usual, memory_order_release);
	atomic_store_explicit(&into->taken, counts->taken, memory_order_release);
	atomic_store_explicit(&into->switched, counts->switched, memory_order_release);
	atomic_store_explicit(&into->stalled, counts->stalled, memory_order_release);
	atomic_store_explicit(&into->quanta, counts->quanta, memory_order_release);
	atomic_store_explicit(&into->worked, counts->worked, memory_order_release);
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
static uint64_t calibrate(struct nb_footprint *footprint)
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

/* The CPU time of this process. A kernel that knows what its hypervisor takes (steal) leaves that
 * out. */
static uint64_t cpu_time(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Whose a gap was; it has just ended. Returns the time when that is known. */
static uint64_t look(struct counts *counts, uint64_t gap, uint64_t now)
{
	long switches = count_switches();
	uint64_t used = cpu_time(), after = nb_now();
	uint64_t passed = after - counts->looked, ran = used - counts->used;

	if (switches != counts->switches)
		counts->switched += gap;
	else if (passed > ran + STALL_LEAST_NS)
		counts->stalled += passed - ran < gap ? passed - ran : gap;
	counts->switches = switches;
	counts->looked = after;
	counts->used = used;
	if (after - now >= LOOK_MOST_NS) { /* another gap, in here */
		counts->taken += after - now;
		counts->switched += after - now;
	}
	return after;
}

void nb_quanta_work(struct nb_quanta *quanta, uint64_t began, struct nb_footprint *footprint)
{
	struct counts counts = { .usual = calibrate(footprint), .switches = count_switches() };
	uint64_t number = counts.usual;

	counts.last = nb_now();
	counts.taken = counts.switched = counts.last - began; /* it had nothing of its CPU */
	counts.looked = counts.last;
	counts.used = cpu_time();
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
		publish(quanta, &counts);
	}
}

void nb_quanta_begin(struct nb_quanta *quanta, uint64_t now)
{
	const struct counts nothing = { .last = now };

	publish(quanta, &nothing);
}

int nb_quanta_settled(const struct nb_quanta *quanta)
{
	return atomic_load(&quanta->versions) >= SETTLED;
}

/* The counters of a copy; when they were read. */
static uint64_t read_copy(const struct nb_quanta_copy *copy, uint64_t *last, uint64_t *usual,
			  uint64_t *counts)
{
	*last = atomic_load_explicit(&copy->last, memory_order_acquire);
	*usual = atomic_load_explicit(&copy->usual, memory_order_acquire);
	counts[NB_SOAK_TAKEN] = atomic_load_explicit(&copy->taken, memory_order_acquire);
	counts[NB_SOAK_SWITCHED] = atomic_load_explicit(&copy->switched, memory_order_acquire);
	counts[NB_SOAK_STALLED] = atomic_load_explicit(&copy->stalled, memory_order_acquire);
	counts[NB_SOAK_QUANTA] = atomic_load_explicit(&copy->quanta, memory_order_acquire);
	counts[NB_SOAK_WORKED] = atomic_load_explicit(&copy->worked, memory_order_acquire);
	return nb_now();
}

void nb_quanta_read(const struct nb_quanta *quanta, uint64_t *counts)
{
	uint64_t version, last, usual, now;

	do {
		version = atomic_load_explicit(&quanta->versions, memory_order_acquire);
		now = read_copy(&quanta->copies[version % 2], &last, &usual, counts);
	} while (atomic_load_explicit(&quanta->versions, memory_order_relaxed) != version);
	/* A gap that has not ended is most likely another process's; its end will tell. */
	if (now > last && now - last >= gap_from(usual)) {
		counts[NB_SOAK_TAKEN] += now - last - usual;
		counts[NB_SOAK_SWITCHED] += now - last - usual;
	}
}
