/* SPDX-License-Identifier: MIT */
#include "data_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

static const uint64_t CONNECT_NS = 5000000000;
enum { BATCH = 256 };

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

int nb_data_options(int fd, const struct nb_job *job, struct nb_error *error)
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
	status = nb_data_options(fd, job, error);
	if (status)
		close(fd);
	return status ? status : fd;
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

static int fail_route(const struct nb_job *job, struct nb_error *error)
{
	return nb_fail_errno(
		error, "connect",
		errno == EADDRNOTAVAIL
			? "see which program there holds all local ports (`ss -tanp`)"
			: "check the route and the firewall between the data addresses",
		"to %s port %llu", job->address, (unsigned long long)job->port);
}

/* A socket whose connection is under way, or a negative code. */
static int begin(const struct nb_job *job, struct nb_error *error)
{
	union nb_address to, from;
	socklen_t length = nb_address_parse(&to, job->address, job->port),
		  own = nb_address_parse(&from, job->local_address, 0);
	int fd, one = 1, status = 0;

	fd = nb_data_socket(job, to.any.sa_family, error);
	if (fd < 0)
		return fd;
	/* The port is chosen by connect(2), which needs only a pair of addresses and ports that is
	 * free: bind(2) would need a free port, of which runs with many streams leave few (ip(7)).
	 */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (job->local_address[0] && bind(fd, &from.any, own))
		status = nb_fail_errno(error, "connect", "check the sender's data address",
				       "from %s", job->local_address);
	else if (connect(fd, &to.any, length) && errno != EINPROGRESS)
		status = fail_route(job, error);
	if (status)
		close(fd);
	return status ? status : fd;
}

static int fail_rejected(const struct nb_job *job, struct nb_error *error)
{
	return nb_fail(error, NB_ERR_PEER, "connect",
		       "another program may listen on that port: set `port:` to another one; the "
		       "receiver takes connections from the sender's `address:` alone, which NAT "
		       "must not change",
		       "the receiver at %s port %llu rejected the token", job->address,
		       (unsigned long long)job->port);
}

static int send_token(int fd, const struct nb_job *job, uint32_t index, uint64_t deadline,
		      struct nb_error *error)
{
	unsigned char handshake[NB_HANDSHAKE_BYTES] = { 0 };
	uint32_t stream = htonl(index);
	int number = 0;
	socklen_t room = sizeof(number);

	if (wait_for(fd, POLLOUT, deadline) ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &room) || number) {
		errno = number ? number : errno;
		return fail_route(job, error);
	}
	memcpy(handshake, job->token, NB_TOKEN_BYTES);
	memcpy(handshake + NB_TOKEN_BYTES, &stream, sizeof(stream));
	if (send(fd, handshake, sizeof(handshake), MSG_NOSIGNAL) == (ssize_t)sizeof(handshake))
		return 0;
	/* A receiver that closes before it has read the token resets the connection. */
	return fail_rejected(job, error);
}

static int await_accepted(int fd, const struct nb_job *job, uint64_t deadline,
			  struct nb_error *error)
{
	char answer = 0;
	ssize_t got = wait_for(fd, POLLIN, deadline) ? -1 : recv(fd, &answer, 1, 0);

	if (got == 0 || (got > 0 && answer != NB_ACCEPTED) ||
	    (got < 0 && (errno == ECONNRESET || errno == EPIPE)))
		return fail_rejected(job, error);
	if (got < 0)
		return nb_fail_errno(error, "connect", "look at the receiver's error",
				     "waiting for the receiver to accept the token");
	return fcntl(fd, F_SETFL, 0) ? nb_fail_errno(error, "connect",
						     "report it as a defect of netbench", "fcntl")
				     : 0;
}

int nb_connect(const struct nb_job *job, uint32_t first, uint32_t count, int *sockets,
	       struct nb_error *error)
{
	uint32_t begun = 0;
	int status = 0;

	/* No more at a time than a listener's queue has room for (net.core.somaxconn). */
	for (uint32_t from = 0, to; !status && from < count; from = to) {
		uint64_t deadline = nb_now() + CONNECT_NS;

		to = count - from > BATCH ? from + BATCH : count;
		for (; !status && begun < to; begun += !status) {
			sockets[begun] = begin(job, error);
			status = sockets[begun] < 0 ? sockets[begun] : 0;
		}
		for (uint32_t i = from; !status && i < to; i++)
			status = send_token(sockets[i], job, first + i, deadline, error);
		for (uint32_t i = from; !status && i < to; i++)
			status = await_accepted(sockets[i], job, deadline, error);
	}
	for (uint32_t i = 0; status && i < begun; i++)
		close(sockets[i]);
	return status;
}
