/* SPDX-License-Identifier: MIT */
#include "data_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

socklen_t nb_address_parse(union nb_address *address, const char *text, uint64_t port)
{
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons((uint16_t)port);
		return sizeof(address->v4);
	}
	if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1) {
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = htons((uint16_t)port);
		return sizeof(address->v6);
	}
	return 0;
}

/* One that the kernel does not have, or does not let this user choose, is no failure of the run. */
static int set_congestion(int fd, const struct nb_job *job, struct nb_error *error)
{
	const char *name = job->congestion;
	int status;

	if (!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
		return 0;
	status = errno == ENOENT || errno == EPERM ? NB_ERR_UNSUPPORTED : NB_ERR_SYSTEM;
	if (status == NB_ERR_UNSUPPORTED && job->congestion_or_default)
		return 0;
	nb_fail_errno(error, "set congestion control",
		      "choose one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, or load "
		      "its module",
		      "%s", name);
	error->code = (uint32_t)status;
	return -status;
}

static int set_options(int fd, const struct nb_job *job, struct nb_error *error)
{
	int size = (int)job->socket_buffer,
	    option = job->role == NB_ROLE_SEND ? SO_SNDBUF : SO_RCVBUF;

	if (job->socket_buffer && setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size)))
		return nb_fail_errno(error, "set socket buffer", "choose another size", "%d bytes",
				     size);
	return job->congestion[0] ? set_congestion(fd, job, error) : 0;
}

int nb_data_socket(const struct nb_job *job, int family, struct nb_error *error)
{
	int status, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return nb_fail_errno(error, "open socket",
				     "raise the limit on open files (ulimit -n)", "a TCP socket");
	status = set_options(fd, job, error);
	if (status)
		close(fd);
	return status ? status : fd;
}
