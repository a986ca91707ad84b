/* SPDX-License-Identifier: MIT */
#include "uring.h"

#include <errno.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../proc_text.h"

enum { OPERATIONS = 256 };

/* Why io_uring_setup(2) failed, by its errno. */
static void explain(int number, char *why, size_t room)
{
	char text[16];

	if (number == ENOMEM) {
		snprintf(why, room,
			 "no memory may be locked for an io_uring: raise `ulimit -l`, or use "
			 "CAP_IPC_LOCK");
		return;
	}
	if (number == EPERM &&
	    nb_read_file("/proc/sys/kernel/io_uring_disabled", text, sizeof(text)) > 0 &&
	    text[0] != '0')
		snprintf(why, room,
			 "io_uring is disabled here: kernel.io_uring_disabled is %.1s (0: for "
			 "nobody)",
			 text);
	else
		snprintf(why, room, "io_uring_setup: %s", strerror(number));
}

/* Linux 6.1 has the first flags, older ones do without. Returns the descriptor, or -1. */
static int set_up(uint32_t entries, uint32_t completions, int polled,
		  struct io_uring_params *params)
{
	static const uint32_t wishes[] = { IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
					   0 };
	int fd = -1;

	for (size_t i = polled ? 1 : 0; i < sizeof(wishes) / sizeof(*wishes) && fd < 0; i++) {
		memset(params, 0, sizeof(*params));
		params->flags = wishes[i] | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE |
				IORING_SETUP_CLAMP;
		params->cq_entries = completions;
		fd = (int)syscall(SYS_io_uring_setup, entries, params);
		if (fd < 0 && errno != EINVAL)
			break;
	}
	return fd;
}

int nb_uring_probe(uint8_t operation, const char *name, const char *since, char *why, size_t room)
{
	struct io_uring_params params;
	struct io_uring_probe *probe =
		calloc(1, sizeof(*probe) + OPERATIONS * sizeof(probe->ops[0]));
	int fd = probe ? set_up(1, 2, 0, &params) : -1, status = 0;

	if (fd < 0) {
		explain(errno, why, room);
		free(probe);
		return -1;
	}
	status = (int)syscall(SYS_io_uring_register, fd, IORING_REGISTER_PROBE, probe, OPERATIONS);
	if (status) {
		snprintf(why, room, "the kernel does not tell what its io_uring can do: %s",
			 strerror(errno));
	} else if (!(probe->ops[operation].flags & IO_URING_OP_SUPPORTED)) {
		snprintf(why, room, "this kernel's io_uring has no %s; Linux %s or later has", name,
			 since);
		status = -1;
	}
	close(fd);
	free(probe);
	return status;
}

static int map_rings(struct nb_uring *ring, const struct io_uring_params *params)
{
	size_t sends = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
	size_t comes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
	unsigned char *rings;

	ring->rings_size = sends > comes ? sends : comes;
	ring->entries_size = params->sq_entries * sizeof(struct io_uring_sqe);
	rings = mmap(NULL, ring->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		     ring->fd, (off_t)IORING_OFF_SQ_RING);
	if (rings == MAP_FAILED)
		return -1;
	ring->rings = rings;
	ring->entries = mmap(NULL, ring->entries_size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, ring->fd, (off_t)IORING_OFF_SQES);
	if (ring->entries == MAP_FAILED) {
		ring->entries = NULL;
		return -1;
	}
	ring->submitted = (uint32_t *)(void *)(rings + params->sq_off.tail);
	ring->flags = (uint32_t *)(void *)(rings + params->sq_off.flags);
	ring->places = (uint32_t *)(void *)(rings + params->sq_off.array);
	ring->taken = (uint32_t *)(void *)(rings + params->cq_off.head);
	ring->completed = (uint32_t *)(void *)(rings + params->cq_off.tail);
	ring->lost = (uint32_t *)(void *)(rings + params->cq_off.overflow);
	ring->completions = (struct io_uring_cqe *)(void *)(rings + params->cq_off.cqes);
	ring->mask = params->sq_entries - 1;
	ring->completions_mask = params->cq_entries - 1;
	for (uint32_t i = 0; i < params->sq_entries; i++)
		ring->places[i] = i;
	return 0;
}

int nb_uring_open(struct nb_uring *ring, uint32_t entries, uint32_t completions, int polled,
		  struct nb_error *error)
{
	struct io_uring_params params;
	char why[160];

	ring->fd = set_up(entries, completions, polled, &params);
	if (ring->fd < 0) {
		int number = errno;

		explain(number, why, sizeof(why));
		return nb_fail(error, NB_ERR_UNSUPPORTED, "prepare run",
			       "use another method, or fewer streams", "%s", why);
	}
	if (!(params.features & IORING_FEAT_SINGLE_MMAP) || map_rings(ring, &params)) {
		int status = nb_fail_errno(error, "prepare run", "use another method",
					   "the rings of an io_uring");

		nb_uring_close(ring);
		return status;
	}
	return 0;
}

int nb_uring_begin(struct nb_flow *flow, struct nb_uring *ring)
{
	return nb_uring_register(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0)
		       ? (int)nb_flow_fail(flow, "io_uring_register",
					   "report it as a defect of netbench", "enabling the ring")
		       : 0;
}

void nb_uring_close(struct nb_uring *ring)
{
	if (ring->entries)
		munmap(ring->entries, ring->entries_size);
	if (ring->rings)
		munmap(ring->rings, ring->rings_size);
	if (ring->fd > 0)
		close(ring->fd);
	memset(ring, 0, sizeof(*ring));
}

int nb_uring_register(struct nb_uring *ring, unsigned int operation, const void *argument,
		      unsigned int count)
{
	return (int)syscall(SYS_io_uring_register, ring->fd, operation, argument, count);
}

static int enter(struct nb_uring *ring, uint32_t wanted, uint64_t timeout_ns)
{
	struct __kernel_timespec time = { .tv_sec = (long long)(timeout_ns / 1000000000),
					  .tv_nsec = (long long)(timeout_ns % 1000000000) };
	struct io_uring_getevents_arg more = { .ts = (uint64_t)(uintptr_t)&time };
	long sent;

	ring->calls++;
	if (timeout_ns)
		sent = syscall(SYS_io_uring_enter, ring->fd, ring->unsent, wanted,
			       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &more, sizeof(more));
	else
		sent = syscall(SYS_io_uring_enter, ring->fd, ring->unsent, wanted,
			       IORING_ENTER_GETEVENTS, NULL, 0);
	if (sent < 0)
		return -1;
	ring->unsent -= (uint32_t)sent;
	return 0;
}

int nb_uring_submit(struct nb_uring *ring, uint32_t wanted, uint64_t timeout_ns)
{
	__atomic_store_n(ring->submitted, ring->prepared, __ATOMIC_RELEASE);
	do {
		if (enter(ring, wanted, timeout_ns) && errno != EINTR)
			return -1;
		ring->overflows += (uint64_t)nb_uring_keeps_back(ring);
		if (__atomic_load_n(ring->lost, __ATOMIC_RELAXED)) {
			errno = EOVERFLOW;
			return -1;
		}
	} while (ring->unsent || nb_uring_ready(ring) < wanted);
	return 0;
}

int nb_uring_fail(struct nb_flow *flow)
{
	const char *lost = "use another queue_depth: completions were lost";

	return (int)nb_flow_fail(flow, "io_uring_enter",
				 errno == EOVERFLOW ? lost : "look at `dmesg` on this host",
				 "waiting for the connection");
}
