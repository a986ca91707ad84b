/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *map(int fd, size_t length, uint64_t what)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		    (off_t)what);
}

int ring_open(struct ring *ring, uint32_t entries, uint32_t completions)
{
	struct io_uring_params given = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_CQSIZE,
		.cq_entries = completions,
	};
	int fd = (int)syscall(SYS_io_uring_setup, entries, &given);
	char *rings =
		fd < 0 ? MAP_FAILED
		       : map(fd, given.cq_off.cqes + given.cq_entries * sizeof(struct io_uring_cqe),
			     IORING_OFF_SQ_RING);

	*ring = (struct ring){ .fd = fd };
	if (rings == MAP_FAILED)
		return -1;
	ring->entries = map(fd, given.sq_entries * sizeof(*ring->entries), IORING_OFF_SQES);
	if (ring->entries == MAP_FAILED)
		return -1;
	ring->submitted = (uint32_t *)(void *)(rings + given.sq_off.tail);
	ring->mask = given.sq_entries - 1;
	ring->taken = (uint32_t *)(void *)(rings + given.cq_off.head);
	ring->completed = (uint32_t *)(void *)(rings + given.cq_off.tail);
	ring->completions_mask = given.cq_entries - 1;
	ring->completions = (struct io_uring_cqe *)(void *)(rings + given.cq_off.cqes);
	for (uint32_t i = 0; i < given.sq_entries; i++)
		((uint32_t *)(void *)(rings + given.sq_off.array))[i] = i;
	return 0;
}

int ring_enter(struct ring *ring, uint32_t count, uint32_t wanted)
{
	__atomic_store_n(ring->submitted, ring->tail, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring->fd, count, wanted, IORING_ENTER_GETEVENTS, NULL,
		       0) == (long)count
		       ? 0
		       : -1;
}

int ring_register(const struct ring *ring, unsigned int operation, const void *argument,
		  unsigned int count)
{
	return (int)syscall(SYS_io_uring_register, ring->fd, operation, argument, count);
}
