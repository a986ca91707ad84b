/* SPDX-License-Identifier: MIT */
/*
 * Opens what a meter needs root for, and passes it from a helper to the mover that listens on an
 * abstract unix socket: to that user's process and to no other's, by messages of SCM_RIGHTS
 * (unix(7)). The socket has a random name in the mover's network namespace. Names of such sockets
 * are no secret, so the mover listens to a process of root alone.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../clock.h"
#include "../meter.h"
#include "../program.h"
#include "op.h"

static const char OPERATION[] = "pass meter", REMEDY[] = "leave it out of meters:";
static const struct timeval LIMIT = { .tv_sec = 2 };
static const uint64_t PATIENCE_NS = 2000000000;
static int listener = -1;
static char socket_name[48]; /* of the listener; "": there is none */

struct message {
	uint32_t total; /* places in all messages together */
	uint32_t place; /* of the descriptor that comes along; `total`: none does, it is the last */
};

/* The meter of that name whose files a helper opens, or NULL. */
static const struct nb_meter *meter_by_helper(const char *name)
{
	for (size_t i = 0; nb_meters[i]; i++)
		if (!strcmp(nb_meters[i]->name, name) && nb_meters[i]->open_files)
			return nb_meters[i];
	return NULL;
}

/* Room for the descriptor of a message. */
union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static int get_of_meter(const char *meter, const char *line, FILE *text, struct nb_error *error)
{
	if (!meter_by_helper(meter))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, REMEDY,
			       "no meter '%.31s' needs root", meter);
	fprintf(text, "%s\n", line);
	return 0;
}

/* --- the helper --- */

static int get_files(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	return get_of_meter(target->words, target->words, text, error);
}

/* A connection to the listener, which must be of that user: a descriptor, or a negative code. */
static int connect_to(const char *name, uid_t user, struct nb_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int written = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);

	if (fd < 0)
		return nb_fail_errno(error, OPERATION, REMEDY, "socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &LIMIT, sizeof(LIMIT));
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)written) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length)) {
		nb_fail_errno(error, OPERATION, REMEDY, "the mover's socket");
		close(fd);
		return -NB_ERR_SYSTEM;
	}
	if (peer.uid == user)
		return fd;
	close(fd);
	return nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, REMEDY,
		       "the listener is of user %u, not of %u", (unsigned int)peer.uid,
		       (unsigned int)user);
}

static int send_message(int fd, struct message message, const int *file)
{
	union control control = { .head = { .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS,
					    .cmsg_len = CMSG_LEN(sizeof(*file)) } };
	struct iovec part = { &message, sizeof(message) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (file) {
		packet.msg_control = control.room;
		packet.msg_controllen = sizeof(control.room);
		memcpy(CMSG_DATA(&control.head), file, sizeof(*file));
	}
	return sendmsg(fd, &packet, MSG_NOSIGNAL) == (ssize_t)sizeof(message) ? 0 : -1;
}

static int send_files(int fd, const int *files, uint32_t total)
{
	for (uint32_t i = 0; i < total; i++)
		if (files[i] >= 0 && send_message(fd, (struct message){ total, i }, &files[i]))
			return -1;
	return send_message(fd, (struct message){ total, total }, NULL);
}

static int pass(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF), count = meter->files_count(cpus);
	struct rlimit many = { .rlim_cur = count + 256, .rlim_max = count + 256 }, before;
	int *files = malloc(count * sizeof(*files)), status = 0;
	char why[200] = "";

	if (!files)
		return nb_fail_memory(error, "descriptors");
	if (!getrlimit(RLIMIT_NOFILE, &before) && before.rlim_cur < many.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &many); /* where it fails, opening says so */
	memset(files, 0xff, count * sizeof(*files));
	if (meter->open_files(files, cpus, why, sizeof(why)))
		status = nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, REMEDY, "%s", why);
	else if (send_files(fd, files, (uint32_t)count))
		status = nb_fail_errno(error, OPERATION, REMEDY, "sending to the mover");
	for (size_t i = 0; i < count; i++)
		if (files[i] >= 0)
			close(files[i]);
	free(files);
	return status;
}

static int set_files(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const struct nb_meter *meter = meter_by_helper(target->words);
	int fd, status;

	if (strcmp(value, "passed") != 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write: passed",
			       "'%.20s' is no order for a meter's files", value);
	fd = connect_to(nb_target_word(target, 1),
			(uid_t)strtoul(nb_target_word(target, 2), NULL, 10), error);
	if (fd < 0)
		return fd;
	status = pass(meter, fd, error);
	close(fd);
	return status;
}

const struct nb_op nb_op_meter_files = {
	.name = "meter_files",
	.about = "what a meter needs root to open: `passed` sends it to SOCKET, if that is of USER",
	.words = 3,
	.get = get_files,
	.set = set_files,
};

/* --- the mover --- */

static int make_name(struct sockaddr_un *address, socklen_t *length)
{
	unsigned char noise[16];
	char *at = socket_name;

	if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
		return -1;
	at += sprintf(at, "netbench.meter.");
	for (size_t i = 0; i < sizeof(noise); i++)
		at += sprintf(at, "%02x", noise[i]);
	memcpy(address->sun_path + 1, socket_name, sizeof(socket_name));
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			      (size_t)(at - socket_name));
	return 0;
}

static void close_listener(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
	socket_name[0] = 0;
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
static int get_socket(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	return get_of_meter(target->words, socket_name, text, error);
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

/* The descriptor of one message into its place: 1: more follow; 0: none; -1: it is no message of a
 * helper's. */
static int take_message(int fd, int *files, size_t total)
{
	struct message message = { 0 };
	union control control = { 0 };
	struct iovec part = { &message, sizeof(message) };
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.room,
				 .msg_controllen = sizeof(control.room) };
	ssize_t got = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&packet) : NULL;
	int file = -1;

	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(file)))
		memcpy(&file, CMSG_DATA(head), sizeof(file));
	if (got == (ssize_t)sizeof(message) && message.total == total && file < 0 &&
	    message.place == total)
		return 0;
	if (got == (ssize_t)sizeof(message) && message.total == total && file >= 0 &&
	    message.place < total && files[message.place] < 0) {
		files[message.place] = file;
		return 1;
	}
	if (file >= 0)
		close(file);
	return -1;
}

static int take(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t total = meter->files_count((size_t)sysconf(_SC_NPROCESSORS_CONF));
	int *files = malloc(total * sizeof(*files)), more = 1;

	if (!files)
		return nb_fail_memory(error, "descriptors");
	memset(files, 0xff, total * sizeof(*files));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &LIMIT, sizeof(LIMIT));
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
	const struct nb_meter *meter = meter_by_helper(target->words);
	int fd, status;

	if (!strcmp(value, "open"))
		return open_listener(error);
	if (!meter || strcmp(value, "taken") != 0 || listener < 0)
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, "write: open",
			       "'%.20s' is no order for a meter's socket", value);
	nb_program_raise_files();
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
