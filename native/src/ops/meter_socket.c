/* SPDX-License-Identifier: MIT */
/*
 * Where a mover takes what a helper has opened for a meter: an abstract unix socket of a random
 * name in its network namespace. Names of such sockets are no secret, so only a process of root is
 * listened to.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../clock.h"
#include "../meter_files.h"
#include "meter_message.h"
#include "op.h"

static const char OPERATION[] = "take meter", REMEDY[] = "leave it out of meters:";
static const uint64_t PATIENCE_NS = 2000000000;
static int listener = -1;
static char name[48]; /* of the listener; "": there is none */

static int make_name(struct sockaddr_un *address, socklen_t *length)
{
	unsigned char noise[16];
	char *at = name;

	if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
		return -1;
	at += sprintf(at, "netbench.meter.");
	for (size_t i = 0; i < sizeof(noise); i++)
		at += sprintf(at, "%02x", noise[i]);
	memcpy(address->sun_path + 1, name, sizeof(name));
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(at - name));
	return 0;
}

static void close_listener(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
	name[0] = 0;
}

static int open_listener(struct nb_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length;

	close_listener();
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener >= 0 && !make_name(&address, &length) &&
	    !bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 16))
		return 0;
	nb_fail_errno(error, OPERATION, REMEDY, "a socket");
	close_listener();
	return -NB_ERR_SYSTEM;
}

/* The socket's name, or nothing. */
static int get_socket(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	if (!nb_meter_by_helper(target->words))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, REMEDY,
			       "no meter '%.31s' needs root", target->words);
	nb_text_add(text, "%s\n", name);
	return 0;
}

/* A connection of root's: a descriptor, or -1 where none comes in time. */
static int accept_root(void)
{
	uint64_t deadline = nb_now() + PATIENCE_NS;

	for (uint64_t now = nb_now(); now < deadline; now = nb_now()) {
		struct pollfd waiting = { .fd = listener, .events = POLLIN };
		struct ucred peer = { .uid = (uid_t)-1 };
		socklen_t length = sizeof(peer);
		int fd;

		poll(&waiting, 1, (int)((deadline - now) / 1000000) + 1);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && !peer.uid)
			return fd;
		close(fd);
	}
	return -1;
}

/* Descriptors of one message into their places: 1: more follow; 0: none; -1: it is no message of a
 * helper's. */
static int take_message(int fd, int *files, size_t total)
{
	struct nb_meter_message message = { 0 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(NB_MESSAGE_FILES * sizeof(int))];
	} control = { 0 };
	struct iovec part = { &message, sizeof(message) };
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.room,
				 .msg_controllen = sizeof(control.room) };
	ssize_t got = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&packet) : NULL;
	size_t count = head && head->cmsg_type == SCM_RIGHTS
			       ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int)
			       : 0;
	int bad = got != (ssize_t)sizeof(message) || message.total != total ||
		  message.count != count || packet.msg_flags & MSG_CTRUNC;

	for (size_t i = 0; i < count; i++) {
		int file;

		memcpy(&file, CMSG_DATA(head) + i * sizeof(file), sizeof(file));
		if (!bad && message.place[i] < total && files[message.place[i]] < 0)
			files[message.place[i]] = file;
		else
			close(file);
	}
	return bad ? -1 : !message.last;
}

static int take(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t total = meter->files_count((size_t)sysconf(_SC_NPROCESSORS_CONF));
	int *files = malloc(total * sizeof(*files)), more = 1;
	struct timeval limit = { .tv_sec = 2 };

	if (!files)
		return nb_op_fail_memory(error, "descriptors");
	memset(files, 0xff, total * sizeof(*files));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	while (more > 0)
		more = take_message(fd, files, total);
	nb_meter_files_keep(meter, files, total); /* closes them where they are replaced */
	if (!more)
		return 0;
	nb_meter_files_keep(meter, NULL, 0);
	return nb_fail(error, NB_ERR_PROTOCOL, OPERATION, REMEDY,
		       "what came is not a meter's descriptors");
}

static int set_socket(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const struct nb_meter *meter = nb_meter_by_helper(target->words);
	int fd, status;

	if (!strcmp(value, "open"))
		return open_listener(error);
	if (!meter || strcmp(value, "taken") != 0 || listener < 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write: open",
			       "'%.20s' is no order for a meter's socket", value);
	nb_raise_files_limit();
	fd = accept_root();
	close_listener();
	if (fd < 0)
		return nb_fail(error, NB_ERR_PEER, OPERATION, REMEDY, "no helper has connected");
	status = take(meter, fd, error);
	close(fd);
	return status;
}

const struct nb_op nb_op_meter_socket = {
	.name = "meter_socket",
	.about = "where a mover takes a meter's descriptors: its name; takes `open`, `taken`",
	.words = 1,
	.lasting = 1,
	.get = get_socket,
	.set = set_socket,
};
