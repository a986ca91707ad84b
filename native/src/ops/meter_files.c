/* SPDX-License-Identifier: MIT */
/* Opens what a meter needs root for, and passes it from a helper to the mover that listens on an
 * abstract unix socket: to that user's process and to no other's, by messages of SCM_RIGHTS
 * (unix(7)). The names of such sockets in a network namespace are no secret, so the mover listens
 * to a process of root alone. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../clock.h"
#include "../meter.h"
#include "../program.h"
#include "op.h"

static const char OPERATION[] = "pass meter", REMEDY[] = "leave it out of meters:";
static const struct timeval LIMIT = { .tv_sec = 2 };
static const uint64_t PATIENCE_NS = 2000000000;
static int listener = -1;

/* The meter of that name whose files a helper opens, or NULL. */
static const struct nb_meter *meter_by_helper(const char *name)
{
	for (size_t i = 0; nb_meters[i]; i++)
		if (!strcmp(nb_meters[i]->name, name) && nb_meters[i]->open_files)
			return nb_meters[i];
	return NULL;
}

/* One message: a descriptor's place, and the descriptor; behind the last the number of places, with
 * none. */
struct message {
	uint32_t place;
	struct iovec part;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr packet;
};

static void lay_out(struct message *message, uint32_t place)
{
	memset(message, 0, sizeof(*message));
	message->place = place;
	message->part = (struct iovec){ &message->place, sizeof(message->place) };
	message->packet = (struct msghdr){ .msg_iov = &message->part,
					   .msg_iovlen = 1,
					   .msg_control = message->control.room,
					   .msg_controllen = sizeof(message->control) };
}

/* Of the other end of a connection; -1: not known. */
static uid_t user_of(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer.uid;
}

/* --- the helper --- */

static int get_files(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	(void)error;
	fprintf(text, "%s\n", target->words);
	return 0;
}

/* A connection to the listener, which must be of that user: a descriptor, or a negative code. */
static int connect_to(const char *name, uid_t user, struct nb_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), status;
	int written = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &LIMIT, sizeof(LIMIT));
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)written))
		status = nb_fail_errno(error, OPERATION, REMEDY, "the mover's socket");
	else if (user_of(fd) != user)
		status = nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, REMEDY,
				 "the listener is of user %u, not of %u", (unsigned int)user_of(fd),
				 (unsigned int)user);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return status;
}

/* A descriptor; -1: the end. */
static int send_file(int fd, uint32_t place, int file)
{
	struct message message;

	lay_out(&message, place);
	message.control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(file)) };
	memcpy(CMSG_DATA(&message.control.head), &file, sizeof(file));
	if (file < 0)
		message.packet.msg_controllen = 0;
	return sendmsg(fd, &message.packet, MSG_NOSIGNAL) < 0;
}

static int send_files(int fd, const int *files, uint32_t total)
{
	int failed = 0;

	for (uint32_t i = 0; !failed && i < total; i++)
		failed = files[i] >= 0 && send_file(fd, i, files[i]);
	return failed || send_file(fd, total, -1);
}

static int pass(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF), count = cpus * meter->files_each;
	int *files = malloc(count * sizeof(*files)), status = 0;
	char why[200] = "";

	if (!files)
		return nb_fail_memory(error, "descriptors");
	nb_program_raise_files();
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

	if (!meter || strcmp(value, "passed") != 0)
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

static void close_listener(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
}

/* The kernel gives it a name that is free (unix(7), "Autobind feature"). */
static int open_listener(struct nb_error *error)
{
	const struct sockaddr any = { .sa_family = AF_UNIX };

	close_listener();
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener >= 0 && !bind(listener, &any, sizeof(any.sa_family)) && !listen(listener, 16))
		return 0;
	nb_fail_errno(error, OPERATION, REMEDY, "a socket");
	close_listener();
	return -NB_ERR_SYSTEM;
}

/* The socket's name, or nothing. */
static int get_socket(const struct nb_target *target, FILE *text, struct nb_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(address) - 1;

	(void)target;
	(void)error;
	if (listener >= 0)
		getsockname(listener, (struct sockaddr *)&address, &length);
	fprintf(text, "%s\n", address.sun_path + 1);
	return 0;
}

/* A connection of root's: a descriptor, or -1 where none comes in time. */
static int accept_root(void)
{
	uint64_t deadline = nb_now() + PATIENCE_NS;

	for (uint64_t now = nb_now(); now < deadline; now = nb_now()) {
		struct pollfd waiting = { .fd = listener, .events = POLLIN };
		int fd;

		poll(&waiting, 1, (int)((deadline - now) / 1000000) + 1);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (!user_of(fd))
			return fd;
		close(fd);
	}
	return -1;
}

/* The descriptor of one message into its place: 1: more follow; 0: none; -1: the helper has failed.
 */
static int take_file(int fd, int *files, size_t total)
{
	struct message message;
	int file = -1;

	lay_out(&message, 0);
	if (recvmsg(fd, &message.packet, MSG_CMSG_CLOEXEC) != sizeof(message.place))
		return -1;
	if (message.packet.msg_controllen)
		memcpy(&file, CMSG_DATA(&message.control.head), sizeof(file));
	if (message.place < total)
		files[message.place] = file;
	return message.place < total;
}

static int take(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t total = meter->files_each * (size_t)sysconf(_SC_NPROCESSORS_CONF);
	int *files = malloc(total * sizeof(*files)), more = 1;

	if (!files)
		return nb_fail_memory(error, "descriptors");
	memset(files, 0xff, total * sizeof(*files));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &LIMIT, sizeof(LIMIT));
	while (more > 0)
		more = take_file(fd, files, total);
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
