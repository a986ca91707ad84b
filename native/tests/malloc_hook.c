/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded into a worker: writes down when and on which thread memory was allocated or
 * freed, and at exit writes the list to the file that NB_MALLOC_LOG names, a line "ns thread call"
 * each. It allocates nothing itself: the list is a static array, and the real functions are glibc's
 * own under their other names, so that no lookup (which would allocate) is needed.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RECORDS_MAX = 1 << 18 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *old);

static struct {
	unsigned long long ns;
	int thread;
	const char *call;
} records[RECORDS_MAX];

static _Atomic size_t count;

static void note(const char *call)
{
	struct timespec now;
	size_t at = atomic_fetch_add(&count, 1);

	if (at >= RECORDS_MAX)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	records[at].ns =
		(unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
	records[at].thread = (int)syscall(SYS_gettid);
	records[at].call = call;
}

void *malloc(size_t size)
{
	note("malloc");
	return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	note("calloc");
	return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
	note("realloc");
	return __libc_realloc(old, size);
}

int posix_memalign(void **into, size_t alignment, size_t size)
{
	note("posix_memalign");
	*into = __libc_memalign(alignment, size);
	return *into ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	note("aligned_alloc");
	return __libc_memalign(alignment, size);
}

void free(void *old)
{
	if (old) /* free(NULL) gives nothing back */
		note("free");
	__libc_free(old);
}

static void report(void)
{
	const char *path = getenv("NB_MALLOC_LOG");
	size_t whole = atomic_load(&count);
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!file)
		return;
	for (size_t i = 0; i < whole && i < RECORDS_MAX; i++)
		fprintf(file, "%llu %d %s\n", records[i].ns, records[i].thread, records[i].call);
	fprintf(file, "end %zu\n", whole);
	fclose(file);
}

/* A worker leaves by this, which runs no destructor. */
void _exit(int status)
{
	report();
	for (;;)
		syscall(SYS_exit_group, status);
}
