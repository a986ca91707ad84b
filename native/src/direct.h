/* SPDX-License-Identifier: MIT */
/*
 * The system calls of the loop, made with syscall(2). libc's own functions are cancellation points
 * (pthreads(7)): in a process with threads each call is wrapped in two locked instructions, for a
 * cancellation that never comes here. Results and errno are the same. sendfile(2), mmap(2) and
 * munmap(2) are no cancellation points.
 */
#ifndef NB_DIRECT_H
#define NB_DIRECT_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline ssize_t nb_read(int fd, void *bytes, size_t length)
{
	return syscall(SYS_read, fd, bytes, length);
}

static inline ssize_t nb_write(int fd, const void *bytes, size_t length)
{
	return syscall(SYS_write, fd, bytes, length);
}

static inline ssize_t nb_recv(int socket, void *bytes, size_t length, int flags)
{
	return syscall(SYS_recvfrom, socket, bytes, length, flags, NULL, NULL);
}

static inline ssize_t nb_send(int socket, const void *bytes, size_t length, int flags)
{
	return syscall(SYS_sendto, socket, bytes, length, flags, NULL, 0);
}

static inline ssize_t nb_recvmsg(int socket, struct msghdr *message, int flags)
{
	return syscall(SYS_recvmsg, socket, message, flags);
}

static inline ssize_t nb_splice(int in, loff_t *from, int out, loff_t *to, size_t length,
				unsigned int flags)
{
	return syscall(SYS_splice, in, from, out, to, length, flags);
}

#endif
