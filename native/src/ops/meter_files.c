/* SPDX-License-Identifier: MIT */
/*
 * Opens what a meter needs root for, and passes it to the mover that listens on an abstract unix
 * socket: to that user's process and to no other's.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "meter_message.h"
#include "op.h"

static const char OPERATION[] = "pass meter", REMEDY[] = "leave it out of meters:";

static int get_files(const struct nb_target *target, struct nb_text *text, struct nb_error *error)
{
	if (!nb_meter_by_helper(target->words))
		return nb_fail(error, NB_ERR_REQUEST, OPERATION, REMEDY,
			       "no meter '%.31s' needs root", target->words);
	nb_text_add(text, "%s\n", target->words);
	return 0;
}

/* A connection to the listener, which must be of that user: a descriptor, or a negative code. */
static int connect_to(const char *name, uid_t user, struct nb_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 2 };
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int written = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);

	if (fd < 0)
		return nb_fail_errno(error, OPERATION, REMEDY, "socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
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

static int send_message(int fd, struct nb_meter_message *message, const int *files)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(NB_MESSAGE_FILES * sizeof(int))];
	} control = { 0 };
	struct iovec part = { message, sizeof(*message) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };
	size_t length = message->count * sizeof(*files);

	if (message->count) {
		packet.msg_control = control.room;
		packet.msg_controllen = CMSG_SPACE(length);
		control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(length) };
		memcpy(CMSG_DATA(&control.head), files, length);
	}
	return sendmsg(fd, &packet, MSG_NOSIGNAL) == (ssize_t)sizeof(*message) ? 0 : -1;
}

static int send_files(int fd, const int *files, size_t total)
{
	struct nb_meter_message message = { .total = (uint32_t)total };
	int sent[NB_MESSAGE_FILES];

	for (size_t i = 0; i < total; i++) {
		if (files[i] < 0)
			continue;
		if (message.count == NB_MESSAGE_FILES) {
			if (send_message(fd, &message, sent))
				return -1;
			message.count = 0;
		}
		message.place[message.count] = (uint32_t)i;
		sent[message.count++] = files[i];
	}
	message.last = 1;
	return send_message(fd, &message, sent);
}

static int pass(const struct nb_meter *meter, int fd, struct nb_error *error)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF), count = meter->files_count(cpus);
	struct rlimit many = { .rlim_cur = count + 256, .rlim_max = count + 256 }, before;
	int *files = malloc(count * sizeof(*files)), status = 0;
	char why[200] = "";

	if (!files)
		return nb_op_fail_memory(error, "descriptors");
	if (!getrlimit(RLIMIT_NOFILE, &before) && before.rlim_cur < many.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &many); /* where it fails, opening says so */
	memset(files, 0xff, count * sizeof(*files));
	if (meter->open_files(files, cpus, why, sizeof(why)))
		status = nb_fail(error, NB_ERR_UNSUPPORTED, OPERATION, REMEDY, "%s", why);
	else if (send_files(fd, files, count))
		status = nb_fail_errno(error, OPERATION, REMEDY, "sending to the mover");
	for (size_t i = 0; i < count; i++)
		if (files[i] >= 0)
			close(files[i]);
	free(files);
	return status;
}

static int set_files(const struct nb_target *target, const char *value, struct nb_error *error)
{
	const struct nb_meter *meter = nb_meter_by_helper(target->words);
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
