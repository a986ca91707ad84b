/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../perf_event.h"

static const char OPERATION[] = "sample";

enum {
	SAMPLE_BYTES = 512, /* of a usual one */
	RECORD_MAX = 65536, /* its size has 16 bits */
};

/* Room for a second of samples: a power of two. */
static size_t room_for(uint64_t frequency)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	while (bytes < frequency * SAMPLE_BYTES || bytes < 2 * RECORD_MAX)
		bytes *= 2;
	return bytes;
}

static int fail_open(int cpu, struct nb_error *error)
{
	int number = errno;
	char why[128];

	nb_perf_explain(number, why, sizeof(why));
	nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, "leave `profile:` out", "CPU %d: %s", cpu,
		why);
	error->error = number;
	return -NB_ERR_UNSUPPORTED;
}

int nb_ring_open(struct nb_ring *ring, int cpu, enum nb_ring_event event, uint64_t frequency,
		 struct nb_error *error)
{
	int clock = event == NB_RING_CPU_CLOCK;
	struct perf_event_attr attr = {
		.type = clock ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
		.config = clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_HW_CPU_CYCLES,
		.sample_freq = frequency,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.freq = 1,
		.disabled = 1,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int status;

	*ring = (struct nb_ring){ .bytes = room_for(frequency), .memory = MAP_FAILED };
	ring->fd = nb_perf_open(&attr, -1, cpu, -1);
	if (ring->fd < 0)
		return fail_open(cpu, error);
	ring->memory =
		mmap(NULL, page + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->memory != MAP_FAILED)
		return 0;
	status = nb_fail_errno(error, OPERATION, "free some memory on that host",
			       "%zu bytes for the samples of CPU %d", ring->bytes, cpu);
	nb_ring_close(ring);
	return status;
}

int nb_ring_enable(const struct nb_ring *ring, int on)
{
	return on ? nb_perf_enable(ring->fd) : nb_perf_disable(ring->fd);
}

static void take_sample(struct nb_ring_reader *reader, const uint64_t *words, size_t count)
{
	struct nb_sample sample;

	if (count < 3 || words[2] > count - 3)
		return;
	memcpy(&sample.pid, words, sizeof(sample.pid));
	sample.period = words[1];
	sample.length = words[2];
	sample.chain = words + 3;
	reader->sample(reader, &sample);
}

static void take_record(struct nb_ring_reader *reader, const struct perf_event_header *head,
			const uint64_t *words)
{
	size_t count = (head->size - sizeof(*head)) / sizeof(*words);

	switch (head->type) {
	case PERF_RECORD_SAMPLE:
		take_sample(reader, words, count);
		break;
	case PERF_RECORD_LOST: /* id, lost */
		reader->lost += count > 1 ? words[1] : 0;
		break;
	case PERF_RECORD_THROTTLE:
		reader->throttles++;
		break;
	default:
		break;
	}
}

/* Copy out of the ring, whose end continues at its beginning. */
static void copy_out(const struct nb_ring *ring, uint64_t at, void *to, size_t length)
{
	const unsigned char *data = (unsigned char *)ring->memory + sysconf(_SC_PAGESIZE);
	size_t offset = (size_t)(at & (ring->bytes - 1)), first = ring->bytes - offset;

	first = first < length ? first : length;
	memcpy(to, data + offset, first);
	memcpy((unsigned char *)to + first, data, length - first);
}

void nb_ring_drain(struct nb_ring *ring, struct nb_ring_reader *reader)
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
		take_record(reader, &record, words);
		at += record.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void nb_ring_close(struct nb_ring *ring)
{
	if (ring->memory != MAP_FAILED)
		munmap(ring->memory, (size_t)sysconf(_SC_PAGESIZE) + ring->bytes);
	close(ring->fd);
	ring->fd = -1;
	ring->memory = MAP_FAILED;
}
