/* SPDX-License-Identifier: MIT */
/* The operation `profile`: samples of where all CPUs of this kernel are, with call chains of
 * the kernel. The target `sampling` reads `off`, `ready` or `on`, and takes `ready FREQUENCY`, `on`
 * and `off`, in this order; what was sampled is then read in parts: the targets 0, 1, ... until one
 * is empty. It takes root or CAP_PERFMON, and CAP_SYSLOG for the kernel's symbols. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../clock.h"
#include "../ops/op.h"
#include "../perf_event.h"
#include "profile.h"

enum {
	DRAIN_MS = 100,
	SAMPLE_BYTES = 512, /* of a usual one */
	RECORD_MAX = 65536, /* its size has 16 bits */
	PART = NB_OP_TEXT - 8,
	MOST_HZ = 100000,
};

enum state { IDLE, READY, ON };

static const char OPERATION[] = "profile", SAMPLING[] = "sampling", ORDER[] = "ready ";

/* The samples of one CPU: an event of perf_event_open(2) and its ring of memory. */
struct ring {
	int fd;
	void *memory;
	size_t bytes; /* of the data, behind the first page */
};

/* The one profile of this process. While the thread runs, what it fills is its own. */
static struct {
	enum state state;
	struct nb_profile profile;
	struct ring *rings;
	size_t count;
	pthread_t thread;
	int stop; /* an eventfd that ends the thread; -1: there is no thread */
	char *report;
	size_t length;
} sampler = { .stop = -1 };

/* Room for a second of samples: a power of two. */
static size_t room_for(uint64_t frequency)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	while (bytes < frequency * SAMPLE_BYTES || bytes < 2 * RECORD_MAX)
		bytes *= 2;
	return bytes;
}

static void ring_close(struct ring *ring)
{
	if (ring->memory != MAP_FAILED)
		munmap(ring->memory, (size_t)sysconf(_SC_PAGESIZE) + ring->bytes);
	close(ring->fd);
	ring->fd = -1;
	ring->memory = MAP_FAILED;
}

/* Open a CPU's event, which does not count yet: 0, or a negative code with the error filled. */
static int ring_open(struct ring *ring, int cpu, int clock, uint64_t frequency,
		     struct nb_error *error)
{
	struct perf_event_attr attr = {
		.type = clock ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
		.config = clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_HW_CPU_CYCLES,
		.sample_freq = frequency,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_user = 1,
		.freq = 1,
		.disabled = 1,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int status, number;
	char why[128];

	*ring = (struct ring){ .bytes = room_for(frequency), .memory = MAP_FAILED };
	ring->fd = nb_perf_open(&attr, -1, cpu, -1);
	number = errno;
	if (ring->fd < 0) {
		nb_perf_explain(number, why, sizeof(why));
		nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "leave `profile:` out", "CPU %d: %s",
			cpu, why);
		error->error = (uint32_t)number;
		return -NB_ERR_UNSUPPORTED;
	}
	ring->memory =
		mmap(NULL, page + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->memory != MAP_FAILED)
		return 0;
	status = nb_fail_errno(error, OPERATION, "free some memory on that host",
			       "%zu bytes for the samples of CPU %d", ring->bytes, cpu);
	ring_close(ring);
	return status;
}

static void take_record(struct nb_profile *profile, const struct perf_event_header *head,
			const uint64_t *words)
{
	size_t count = (head->size - sizeof(*head)) / sizeof(*words);
	uint32_t pid;

	switch (head->type) {
	case PERF_RECORD_SAMPLE: /* pid and tid, period, length of the chain, the chain */
		if (count < 3 || words[2] > count - 3)
			break;
		memcpy(&pid, words, sizeof(pid));
		nb_profile_add(profile, pid, words[1], words + 3, words[2]);
		break;
	case PERF_RECORD_LOST: /* id, lost */
		profile->lost += count > 1 ? words[1] : 0;
		break;
	case PERF_RECORD_THROTTLE:
		profile->throttles++;
		break;
	default:
		break;
	}
}

/* Copy out of the ring, whose end continues at its beginning. */
static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t length)
{
	const unsigned char *data = (unsigned char *)ring->memory + sysconf(_SC_PAGESIZE);
	size_t offset = (size_t)(at & (ring->bytes - 1)), first = ring->bytes - offset;

	first = first < length ? first : length;
	memcpy(to, data + offset, first);
	memcpy((unsigned char *)to + first, data, length - first);
}

static void ring_drain(struct ring *ring, struct nb_profile *profile)
{
	struct perf_event_mmap_page *page = ring->memory;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
	uint64_t words[RECORD_MAX / sizeof(uint64_t)];
	struct perf_event_header record;

	while (at + sizeof(record) <= head) {
		copy_out(ring, at, &record, sizeof(record));
		if (record.size < sizeof(record))
			break;
		copy_out(ring, at + sizeof(record), words, record.size - sizeof(record));
		take_record(profile, &record, words);
		at += record.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void drain(void)
{
	for (size_t i = 0; i < sampler.count; i++)
		ring_drain(&sampler.rings[i], &sampler.profile);
}

static void *drain_until_stopped(void *unused)
{
	struct pollfd stop = { .fd = sampler.stop, .events = POLLIN };

	(void)unused;
	while (poll(&stop, 1, DRAIN_MS) <= 0)
		drain();
	return NULL;
}

static int open_rings(int clock, uint64_t frequency, struct nb_error *error)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);

	sampler.rings = calloc(cpus, sizeof(*sampler.rings));
	if (!sampler.rings)
		return nb_fail_memory(error, "rings");
	for (size_t i = 0; i < cpus; i++) {
		struct ring *ring = &sampler.rings[sampler.count];
		int status = ring_open(ring, (int)i, clock, frequency, error);

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
		ring_close(&sampler.rings[i]);
	free(sampler.rings);
	sampler.rings = NULL;
	sampler.count = 0;
}

/* Cycles where this machine counts them, else ticks of the CPUs' clocks. */
static int open_events(uint64_t frequency, struct nb_error *error)
{
	int status = open_rings(0, frequency, error);

	sampler.profile.event = "cycles";
	if (status != -NB_ERR_UNSUPPORTED)
		return status;
	close_rings();
	sampler.profile.event = "cpu-clock";
	return open_rings(1, frequency, error);
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
	sampler.state = IDLE;
}

/* Open events and rings of all CPUs, and read the kernel's symbols; what was sampled before is
 * forgotten. */
static int prepare(uint64_t frequency, struct nb_error *error)
{
	int status;

	nb_sampler_end();
	sampler.profile.frequency = frequency;
	status = open_events(frequency, error);
	if (!status)
		status = nb_kernel_symbols_read(&sampler.profile.kernel, "/proc/kallsyms", error);
	if (!status)
		status = start_thread(error);
	if (status)
		nb_sampler_end();
	else
		sampler.state = READY;
	return status;
}

static int fail_order(const char *what, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_REQUEST, OPERATION, "prepare, start, stop: in this order",
		       "there is no profile to %s", what);
}

static int switch_events(unsigned long order)
{
	int failed = 0;

	for (size_t i = 0; i < sampler.count; i++)
		failed |= ioctl(sampler.rings[i].fd, order, 0);
	return failed;
}

static int start(struct nb_error *error)
{
	if (sampler.state != READY)
		return fail_order("start", error);
	sampler.profile.begin = nb_now();
	if (switch_events(PERF_EVENT_IOC_ENABLE))
		return nb_fail_errno(error, OPERATION, "look at `dmesg` of that host",
				     "a perf event cannot be switched on");
	sampler.state = ON;
	return 0;
}

static int stop(struct nb_error *error)
{
	if (sampler.state != ON)
		return fail_order("stop", error);
	switch_events(PERF_EVENT_IOC_DISABLE);
	sampler.profile.end = nb_now();
	end_thread();
	drain();
	sampler.profile.cpus = sampler.count;
	sampler.report = nb_profile_text(&sampler.profile, &sampler.length);
	close_rings();
	nb_profile_free(&sampler.profile);
	sampler.state = IDLE;
	return sampler.report ? 0 : nb_fail_memory(error, "the profile");
}

static int number_of(const char *text, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end ? 0 : -1;
}

static int get_profile(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	static const char *const states[] = { "off", "ready", "on" };
	uint64_t part;

	if (!strcmp(target->words, SAMPLING)) {
		fprintf(text, "%s\n", states[sampler.state]);
		return 0;
	}
	if (number_of(target->words, &part))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "read sampling, or a part",
			       "'%.20s' is no part of a profile", target->words);
	if (sampler.report && part < sampler.length / PART + 1)
		fprintf(text, "%.*s", (int)PART, sampler.report + part * PART);
	return 0;
}

static int set_profile(const struct nb_target *target, const char *value, struct nb_error *error)
{
	uint64_t frequency = 0;

	if (strcmp(target->words, SAMPLING) != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "change sampling",
			       "a part of a profile is only read");
	if (!strcmp(value, "on"))
		return start(error);
	if (!strcmp(value, "off"))
		return stop(error);
	if (strncmp(value, ORDER, strlen(ORDER)) != 0 ||
	    number_of(value + strlen(ORDER), &frequency) || !frequency || frequency > MOST_HZ)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write ready FREQUENCY, on or off",
			       "'%.40s' is no order for a profile", value);
	return prepare(frequency, error);
}

const struct nb_op nb_op_profile = {
	.name = "profile",
	.about = "a profile of all CPUs: `sampling` takes `ready FREQUENCY`, `on`, `off`; parts of "
		 "what was sampled by number",
	.words = 1,
	.get = get_profile,
	.set = set_profile,
};
