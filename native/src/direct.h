/* SPDX-License-Identifier: MIT */
/* The system calls of the loop, made by the processor's own instruction. libc's functions are
 * cancellation points (pthreads(7)): in a process with threads each call is wrapped in two locked
 * instructions, for a cancellation that never comes here; and its syscall(2) moves each argument by
 * one register. Results and errno are the same. */
#ifndef NB_DIRECT_H
#define NB_DIRECT_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__)

/* syscall(2): number in rax, arguments in rdi rsi rdx r10 r8 r9; rcx and r11 are lost. */
static inline __attribute__((always_inline)) long nb_direct(long number, long a, long b, long c,
							    long d, long e, long f, int count)
{
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;
	register long sixth __asm__("r9") = f;
	long result;

	if (count <= 3)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(a), "S"(b), "d"(c)
				 : "rcx", "r11", "memory");
	else if (count == 4)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
				 : "rcx", "r11", "memory");
	else
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth),
				   "r"(sixth)
				 : "rcx", "r11", "memory");
	if (__builtin_expect((unsigned long)result > -4096UL, 0)) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

#else

static inline long nb_direct(long number, long a, long b, long c, long d, long e, long f, int count)
{
	(void)count;
	return syscall(number, a, b, c, d, e, f);
}

#endif

static inline void *nb_mmap(size_t length, int protection, int flags, int fd, off_t offset)
{
	long start = nb_direct(SYS_mmap, 0, (long)length, protection, flags, fd, offset, 6);

	return (void *)start; /* -1 is MAP_FAILED */
}

static inline int nb_ftruncate(int fd, off_t length)
{
	return (int)nb_direct(SYS_ftruncate, fd, length, 0, 0, 0, 0, 2);
}

static inline ssize_t nb_read(int fd, void *bytes, size_t length)
{
	return nb_direct(SYS_read, fd, (long)bytes, (long)length, 0, 0, 0, 3);
}

static inline ssize_t nb_write(int fd, const void *bytes, size_t length)
{
	return nb_direct(SYS_write, fd, (long)bytes, (long)length, 0, 0, 0, 3);
}

static inline ssize_t nb_recv(int socket, void *bytes, size_t length, int flags)
{
	return nb_direct(SYS_recvfrom, socket, (long)bytes, (long)length, flags, 0, 0, 6);
}

static inline ssize_t nb_send(int socket, const void *bytes, size_t length, int flags)
{
	return nb_direct(SYS_sendto, socket, (long)bytes, (long)length, flags, 0, 0, 6);
}

static inline ssize_t nb_recvmsg(int socket, struct msghdr *message, int flags)
{
	return nb_direct(SYS_recvmsg, socket, (long)message, flags, 0, 0, 0, 3);
}

static inline ssize_t nb_splice(int in, loff_t *from, int out, loff_t *to, size_t length,
				unsigned int flags)
{
	return nb_direct(SYS_splice, in, (long)from, out, (long)to, (long)length, flags, 6);
}

static inline ssize_t nb_vmsplice(int pipe, const struct iovec *parts, size_t count,
				  unsigned int flags)
{
	return nb_direct(SYS_vmsplice, pipe, (long)parts, (long)count, flags, 0, 0, 4);
}

static inline ssize_t nb_sendfile(int socket, int file, off_t *from, size_t length)
{
	return nb_direct(SYS_sendfile, socket, file, (long)from, (long)length, 0, 0, 4);
}

static inline int nb_getsockopt(int socket, int level, int option, void *value, socklen_t *length)
{
	return (int)nb_direct(SYS_getsockopt, socket, level, option, (long)value, (long)length, 0,
			      6);
}

static inline int nb_munmap(void *start, size_t length)
{
	return (int)nb_direct(SYS_munmap, (long)start, (long)length, 0, 0, 0, 0, 2);
}

#endif
