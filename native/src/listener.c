/* SPDX-License-Identifier: MIT */
#include "data_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

static const uint64_t HANDSHAKE_NS = 2000000000, SOON_NS = 100000000; /* of its token */

int nb_listen_in_range(const struct nb_job *job, struct nb_error *error)
{
	unsigned long long low = job->port_low, port = low;
	union nb_address at;

	do {
		socklen_t length = nb_address_parse(&at, job->address, port);
		int failed, fd = nb_data_socket(job, at.any.sa_family, error);

		if (fd < 0)
			return fd;
		/* Earlier runs leave connections in TIME-WAIT. Of several that bind a port so, one
		 * listens. */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
		if (!bind(fd, &at.any, length) && !listen(fd, NB_STREAMS_MAX))
			return fd;
		failed = errno;
		close(fd);
		errno = failed;
	} while (errno == EADDRINUSE && port++ < job->port_high);
	if (errno == EADDRINUSE)
		return nb_fail_errno(
			error, "listen",
			"widen the range (port: 5000-5100) or stop what holds these ports",
			"%s: every port from %llu to %llu is taken", job->address, low, --port);
	return nb_fail_errno(error, "listen", "check the receiver's data address", "%s port %llu",
			     job->address, port);
}

int nb_listener_open(struct nb_listener *listener, const struct nb_job *job, struct nb_error *error)
{
	union nb_address address;
	socklen_t length = sizeof(address);
	int status;

	memset(listener, 0, sizeof(*listener));
	listener->socket = status = nb_listen_in_range(job, error);
	if (status < 0)
		return status;
	if (getsockname(listener->socket, &address.any, &length)) {
		status = nb_fail_errno(error, "listen", "check the receiver's data address",
				       "getsockname");
		nb_listener_close(listener);
		return status;
	}
	listener->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
								: address.v6.sin6_port);
	return 0;
}

int nb_is_sender(const union nb_address *from, const struct nb_job *job)
{
	union nb_address sender;

	if (!job->peer_address[0])
		return 1;
	if (!nb_address_parse(&sender, job->peer_address, 0) ||
	    from->any.sa_family != sender.any.sa_family)
		return 0;
	if (from->any.sa_family == AF_INET)
		return from->v4.sin_addr.s_addr == sender.v4.sin_addr.s_addr;
	return !memcmp(&from->v6.sin6_addr, &sender.v6.sin6_addr, sizeof(sender.v6.sin6_addr));
}

static void remove_pending(struct nb_listener *listener, size_t pending)
{
	struct nb_pending *at = &listener->pending[pending]; /* the oldest stays the first */

	memmove(at, at + 1, (--listener->pending_count - pending) * sizeof(*at));
}

static void reject(struct nb_listener *listener, size_t pending)
{
	close(listener->pending[pending].socket);
	listener->rejected_connections++;
	remove_pending(listener, pending);
}

void nb_listener_accept(struct nb_listener *listener, const struct nb_job *job)
{
	/* A flood of connections that are rejected does not keep the run from its other events. */
	for (int i = 0; i < NB_PENDING_MAX; i++) {
		int is_full = listener->pending_count == NB_PENDING_MAX, fd;
		union nb_address from = { 0 };
		socklen_t length = sizeof(from);

		if (is_full && listener->pending->deadline > nb_now() + HANDSHAKE_NS - SOON_NS) {
			nb_sleep(1000000);
			return;
		}
		fd = accept4(listener->socket, &from.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		if (!nb_is_sender(&from, job)) {
			close(fd);
			listener->rejected_connections++;
			continue;
		}
		if (is_full)
			reject(listener, 0);
		listener->pending[listener->pending_count++] =
			(struct nb_pending){ .socket = fd, .deadline = nb_now() + HANDSHAKE_NS };
	}
}

int nb_listener_read(struct nb_listener *listener, size_t index, const struct nb_job *job,
		     uint32_t *stream)
{
	struct nb_pending *pending = &listener->pending[index];
	ssize_t got = recv(pending->socket, pending->handshake + pending->got,
			   sizeof(pending->handshake) - pending->got, 0);
	const char accepted = NB_ACCEPTED;
	int fd = pending->socket, quick = 1;

	pending->got += got > 0 ? (size_t)got : 0;
	if (got < 0 ? errno == EAGAIN || errno == EINTR
		    : got && pending->got < sizeof(pending->handshake))
		return -1;
	memcpy(stream, pending->handshake + NB_TOKEN_BYTES, sizeof(*stream));
	*stream = ntohl(*stream);
	if (got <= 0 || memcmp(pending->handshake, job->token, NB_TOKEN_BYTES) ||
	    *stream >= job->streams) {
		reject(listener, index);
		return -1;
	}
	remove_pending(listener, index);
	/* Who has answered delays its acknowledgements; one that only receives does not. */
	if (fcntl(fd, F_SETFL, 0) || send(fd, &accepted, 1, MSG_NOSIGNAL) != 1 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &quick, sizeof(quick))) {
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
