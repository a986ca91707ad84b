/* SPDX-License-Identifier: MIT */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

static const uint64_t HANDSHAKE_NS = 2000000000, CONNECT_NS = 5000000000;
static const char ACCEPTED = 'k';

union nb_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t parse_address(union nb_address *address, const char *text, uint64_t port)
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

static int set_options(int fd, const struct nb_job *job, struct nb_error *error)
{
	int size = (int)job->socket_buffer,
	    option = job->role == NB_ROLE_SEND ? SO_SNDBUF : SO_RCVBUF;

	if (job->socket_buffer && setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size)))
		return nb_fail_errno(error, "set socket buffer", "choose another size", "%d bytes",
				     size);
	if (job->congestion[0] && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, job->congestion,
					     (socklen_t)strlen(job->congestion)))
		return nb_fail_errno(
			error, "set congestion control",
			"choose one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, or load "
			"its module",
			"%s", job->congestion);
	return 0;
}

static int new_socket(const struct nb_job *job, int family, struct nb_error *error)
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

static int bind_in_range(int fd, const struct nb_job *job, struct nb_error *error)
{
	union nb_address address;

	for (uint64_t port = job->port_low; port <= job->port_high; port++) {
		socklen_t length = parse_address(&address, job->address, port);

		if (!bind(fd, &address.any, length) && !listen(fd, NB_STREAMS_MAX))
			return 0;
		if (errno != EADDRINUSE)
			return nb_fail_errno(error, "listen", "check the receiver's data address",
					     "%s port %llu", job->address,
					     (unsigned long long)port);
	}
	return nb_fail_errno(error, "listen",
			     "widen the range (port: 5000-5100) or stop what holds these ports",
			     "%s: every port from %llu to %llu is taken", job->address,
			     (unsigned long long)job->port_low, (unsigned long long)job->port_high);
}

int nb_listener_open(struct nb_listener *listener, const struct nb_job *job, struct nb_error *error)
{
	union nb_address address;
	socklen_t length = parse_address(&address, job->address, 0);
	int one = 1, status;

	memset(listener, 0, sizeof(*listener));
	listener->socket = -1;
	if (!length)
		return nb_fail(error, NB_ERR_REQUEST, "listen",
			       "give the receiver's data address as numbers",
			       "'%s' is no IP address", job->address);
	status = new_socket(job, address.any.sa_family, error);
	if (status < 0)
		return status;
	listener->socket = status;
	setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	status = bind_in_range(listener->socket, job, error);
	length = sizeof(address);
	if (!status && getsockname(listener->socket, &address.any, &length))
		status = nb_fail_errno(error, "listen", "check the receiver's data address",
				       "getsockname");
	if (status) {
		nb_listener_close(listener);
		return status;
	}
	listener->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
								: address.v6.sin6_port);
	return 0;
}

void nb_listener_accept(struct nb_listener *listener)
{
	while (listener->pending_count < NB_PENDING_MAX) {
		struct nb_pending *pending = &listener->pending[listener->pending_count];
		int fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		*pending = (struct nb_pending){ .socket = fd, .deadline = nb_now() + HANDSHAKE_NS };
		listener->pending_count++;
	}
}

static void remove_pending(struct nb_listener *listener, size_t pending)
{
	listener->pending[pending] = listener->pending[--listener->pending_count];
}

static void reject(struct nb_listener *listener, size_t pending)
{
	close(listener->pending[pending].socket);
	listener->rejected_connections++;
	remove_pending(listener, pending);
}

int nb_listener_read(struct nb_listener *listener, size_t index, const struct nb_job *job,
		     uint32_t *stream)
{
	struct nb_pending *pending = &listener->pending[index];
	ssize_t got = recv(pending->socket, pending->greeting + pending->got,
			   sizeof(pending->greeting) - pending->got, 0);
	int fd = pending->socket;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -1;
	if (got <= 0) {
		reject(listener, index);
		return -1;
	}
	pending->got += (size_t)got;
	if (pending->got < sizeof(pending->greeting))
		return -1;
	memcpy(stream, pending->greeting + NB_TOKEN_BYTES, sizeof(*stream));
	*stream = ntohl(*stream);
	if (memcmp(pending->greeting, job->token, NB_TOKEN_BYTES) || *stream >= job->streams) {
		reject(listener, index);
		return -1;
	}
	remove_pending(listener, index);
	if (fcntl(fd, F_SETFL, 0) || send(fd, &ACCEPTED, 1, MSG_NOSIGNAL) != 1) {
		close(fd);
		return -1;
	}
	return fd;
}

void nb_listener_expire(struct nb_listener *listener, uint64_t now)
{
	for (size_t i = listener->pending_count; i-- > 0;)
		if (listener->pending[i].deadline <= now)
			reject(listener, i);
}

void nb_listener_close(struct nb_listener *listener)
{
	while (listener->pending_count)
		reject(listener, 0);
	if (listener->socket >= 0)
		close(listener->socket);
	listener->socket = -1;
}

static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd pending = { .fd = fd, .events = events };
	int ready;

	do {
		uint64_t now = nb_now();

		ready = poll(&pending, 1,
			     now < deadline ? (int)((deadline - now) / 1000000) + 1 : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		errno = ETIMEDOUT;
	return ready > 0 ? 0 : -1;
}

static int establish(int fd, const struct nb_job *job, uint64_t deadline, struct nb_error *error)
{
	union nb_address address;
	socklen_t length = sizeof(int);
	int number = 0;

	if (job->local_address[0]) {
		length = parse_address(&address, job->local_address, 0);
		if (!length || bind(fd, &address.any, length))
			return nb_fail_errno(error, "connect", "check the sender's data address",
					     "from %s", job->local_address);
	}
	length = parse_address(&address, job->address, job->port);
	if (connect(fd, &address.any, length) && errno != EINPROGRESS)
		return nb_fail_errno(error, "connect",
				     "check the route and the firewall between the data addresses",
				     "to %s port %llu", job->address,
				     (unsigned long long)job->port);
	length = sizeof(number);
	if (wait_for(fd, POLLOUT, deadline) ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length) || number) {
		errno = number ? number : errno;
		return nb_fail_errno(error, "connect",
				     "check the route and the firewall between the data addresses",
				     "to %s port %llu", job->address,
				     (unsigned long long)job->port);
	}
	return 0;
}

/* Show the token and wait to be let in. */
static int greet(int fd, const struct nb_job *job, uint32_t index, uint64_t deadline,
		 struct nb_error *error)
{
	unsigned char greeting[NB_GREETING_BYTES] = { 0 };
	uint32_t stream = htonl(index);
	char answer = 0;
	ssize_t got = -1;

	memcpy(greeting, job->token, NB_TOKEN_BYTES);
	memcpy(greeting + NB_TOKEN_BYTES, &stream, sizeof(stream));
	if (send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL) != (ssize_t)sizeof(greeting))
		return nb_fail_errno(error, "connect", "look at the receiver's error",
				     "showing the token");
	if (!wait_for(fd, POLLIN, deadline))
		got = recv(fd, &answer, 1, 0);
	if (got < 0)
		return nb_fail_errno(error, "connect", "look at the receiver's error",
				     "waiting to be let in");
	if (got == 0 || answer != ACCEPTED)
		return nb_fail(error, NB_ERR_PEER, "connect",
			       "another program may listen on that port: fix `port:`",
			       "the receiver at %s port %llu did not know the token", job->address,
			       (unsigned long long)job->port);
	return 0;
}

int nb_connect(const struct nb_job *job, uint32_t index, struct nb_error *error)
{
	union nb_address address;
	uint64_t deadline = nb_now() + CONNECT_NS;
	int fd, status;

	if (!parse_address(&address, job->address, job->port))
		return nb_fail(error, NB_ERR_REQUEST, "connect",
			       "give the receiver's data address as numbers",
			       "'%s' is no IP address", job->address);
	fd = new_socket(job, address.any.sa_family, error);
	if (fd < 0)
		return fd;
	status = establish(fd, job, deadline, error);
	if (!status)
		status = greet(fd, job, index, deadline, error);
	if (!status && fcntl(fd, F_SETFL, 0))
		status = nb_fail_errno(error, "connect", "report it as a defect of netbench",
				       "fcntl");
	if (status)
		close(fd);
	return status ? status : fd;
}
