/* SPDX-License-Identifier: MIT */
/* What several loops need before they begin. */
#include "loop.h"

#include <fcntl.h>
#include <sys/mman.h>

size_t stride_of(const struct work *work)
{
	return (work->chunk + 4095) / 4096 * 4096;
}

char *chunks_of_memory(const struct work *work, size_t count)
{
	size_t stride = stride_of(work);
	char *memory = mmap(NULL, count * stride, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	for (size_t i = 0; work->bytes && i < count; i++)
		if (pread(work->file, memory + i * stride, work->chunk, 0) != (ssize_t)work->chunk)
			return NULL;
	return memory;
}

int pipe_for(const struct work *work, int ends[2])
{
	return pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, (int)work->chunk) < 0 ? -1 : 0;
}
