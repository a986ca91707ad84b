/* SPDX-License-Identifier: MIT */
#include "socket_options.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

const struct nb_field nb_receiver_options[] = { NB_RECEIVER_OPTIONS };
const struct nb_field nb_sender_options[] = { NB_SENDER_OPTIONS };

/* One that this user may not choose is no failure of the run. */
static int fail_option(const char *name, uint64_t value, struct nb_error *error)
{
	int status = errno == EPERM ? NB_ERR_UNSUPPORTED : NB_ERR_SYSTEM;

	nb_fail_errno(error, "set socket option",
		      "choose another level, or use CAP_NET_ADMIN (for busy_poll)", "%s %llu", name,
		      (unsigned long long)value);
	error->code = (uint32_t)status;
	return -status;
}

int nb_socket_option(struct nb_flow *flow, int level, int option, const char *name, uint64_t value,
		     struct nb_error *error)
{
	int number = (int)value;

	if (!value || !setsockopt(flow->socket, level, option, &number, sizeof(number)))
		return 0;
	return fail_option(name, value, error);
}

int nb_never_block(struct nb_flow *flow, struct nb_error *error)
{
	return fcntl(flow->socket, F_SETFL, O_NONBLOCK)
		       ? nb_fail_errno(error, "set socket option",
				       "report it as a defect of netbench", "O_NONBLOCK")
		       : 0;
}

int nb_socket_options_set(struct nb_flow *flow, struct nb_error *error)
{
	const uint64_t *options = flow->job->extra;
	int status = nb_socket_option(flow, SOL_SOCKET, SO_BUSY_POLL, "busy_poll",
				      options[NB_BUSY_POLL] / 1000, error);

	if (status || flow->job->role != NB_ROLE_SEND)
		return status;
	return nb_socket_option(flow, IPPROTO_TCP, TCP_NODELAY, "nodelay", options[NB_NODELAY],
				error);
}

int nb_socket_options_share(struct nb_flow *flow, struct nb_error *error)
{
	int status = nb_socket_options_set(flow, error);

	if (status || !flow->shares)
		return status;
	flow->wait = NB_WAIT_LATER;
	return nb_never_block(flow, error);
}
