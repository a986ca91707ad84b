/* SPDX-License-Identifier: MIT */
/* The serve loop: one controller on two descriptors, one run at a time, heartbeats both ways. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "ends.h"
#include "ops/client.h"
#include "profile/profile.h"
#include "worker.h"

static const uint64_t SECOND = 1000000000;

/* SIGTERM, SIGHUP and SIGINT. */
struct leaving {
	int fd; /* readable once one has come */
	sigset_t mask;
};

static void execute_operation(struct nb_worker *worker, uint16_t tag, const unsigned char *payload,
			      size_t length)
{
	struct nb_writer writer = { 0 };
	struct nb_error error;

	if (nb_op_execute(payload, length, &worker->client, &worker->undo, &writer, &error)) {
		nb_writer_free(&writer);
		nb_reply_error(worker, tag, &error);
		return;
	}
	nb_reply(worker, NB_OP_DONE, tag, &writer);
}

/* The payload is a scope, or nothing: all of them. */
static void undo(struct nb_worker *worker, uint16_t tag, const unsigned char *payload,
		 size_t length)
{
	struct nb_error error;
	uint32_t scope = 0;
	int status = 0;

	if (length == sizeof(scope))
		memcpy(&scope, payload, sizeof(scope));
	else if (length)
		status = nb_fail(&error, NB_ERR_REQUEST, "undo", NB_SAME_VERSION,
				 "a scope of %zu bytes", length);
	if (!status)
		status = nb_undo(&worker->undo, scope, &worker->client, &error);
	if (status)
		nb_reply_error(worker, tag, &error);
	else
		nb_heartbeat_frame(&worker->heartbeat, NB_UNDONE, tag, NULL, 0);
}

static int take_hello(struct nb_worker *worker, const struct nb_frame *frame,
		      const unsigned char *payload)
{
	struct nb_error error;
	int status;

	if (frame->type == NB_HELLO)
		status = nb_hello_check(payload, frame->length, &error);
	else
		status = nb_fail(&error, NB_ERR_PROTOCOL, "hello", NB_SAME_VERSION,
				 "expected a hello, got frame type %u", frame->type);
	if (status)
		nb_reply_error(worker, frame->tag, &error);
	worker->greeted = !status;
	return status;
}

static void refuse_job(struct nb_worker *worker, uint16_t tag)
{
	struct nb_error error;

	nb_fail(&error, NB_ERR_REQUEST, "job", "send it to a mover",
		"a helper changes the host, and moves no data");
	nb_reply_error(worker, tag, &error);
}

static int handle(struct nb_worker *worker, const struct nb_frame *frame,
		  const unsigned char *payload)
{
	struct nb_error error;

	if (!worker->greeted)
		return take_hello(worker, frame, payload);
	switch (frame->type) {
	case NB_JOB:
		if (worker->duty == NB_HELPER)
			refuse_job(worker, frame->tag);
		else
			nb_worker_start_run(worker, frame->tag, payload, frame->length);
		return 0;
	case NB_GO:
	case NB_MARK:
	case NB_STOP:
	case NB_ABORT:
	case NB_PRINTED:
		nb_worker_order(worker, frame, payload);
		return 0;
	case NB_OP:
		execute_operation(worker, frame->tag, payload, frame->length);
		return 0;
	case NB_UNDO:
		undo(worker, frame->tag, payload, frame->length);
		return 0;
	case NB_HEARTBEAT:
		return 0;
	case NB_BYE:
		worker->leaving = 1;
		return 0;
	default:
		nb_fail(&error, NB_ERR_PROTOCOL, "read frame", NB_SAME_VERSION,
			"a worker does not accept frame type %u", frame->type);
		nb_reply_error(worker, frame->tag, &error);
		return -NB_ERR_PROTOCOL;
	}
}

static void hear(struct nb_worker *worker)
{
	uint64_t now = nb_now(), silence = now - worker->heard_at;

	worker->heard_at = now;
	if (worker->run && silence > worker->run->silence)
		worker->run->silence = silence;
}

static int read_frames(struct nb_worker *worker)
{
	const unsigned char *payload;
	struct nb_frame frame;
	struct nb_error error;
	ssize_t got = nb_reader_fill(&worker->reader, worker->in);
	int status = 0;

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0) {
		worker->heartbeat.lost = 1;
		return 0;
	}
	hear(worker);
	while (!worker->leaving && !worker->heartbeat.lost &&
	       (status = nb_reader_next(&worker->reader, &frame, &payload, &error)) > 0) {
		status = handle(worker, &frame, payload);
		if (status)
			return status;
	}
	if (status < 0)
		nb_reply_error(worker, 0, &error);
	return status;
}

/* What a worker waits for in any phase: its controller, and the signals that ask it to leave. */
enum { CONTROLLER, SIGNALS, OWN_FDS };

static void wait_for_events(struct nb_worker *worker, struct pollfd *own)
{
	struct pollfd fds[OWN_FDS + NB_RUN_FDS];
	size_t count = OWN_FDS;
	uint64_t now = nb_now(), due = worker->heard_at + NB_SILENCE_SECONDS * SECOND;
	struct timespec wait;

	memcpy(fds, own, OWN_FDS * sizeof(*own));
	if (worker->heartbeat.due < due)
		due = worker->heartbeat.due;
	if (worker->run) {
		uint64_t theirs = nb_run_due(worker->run);

		count += nb_run_fds(worker->run, fds + count);
		due = theirs < due ? theirs : due;
	}
	wait = nb_timespec(due > now ? due - now : 0);
	if (ppoll(fds, count, &wait, NULL) >= 0)
		memcpy(own, fds, OWN_FDS * sizeof(*own));
}

/* Take the signals that ask a worker to leave: no operation is left half done by one. */
static void take_signals(struct leaving *leaving)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, &leaving->mask);
	leaving->fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int was_asked(const struct leaving *leaving)
{
	struct signalfd_siginfo info;

	return read(leaving->fd, &info, sizeof(info)) == sizeof(info);
}

/* Tell the controller, undo everything, give up the run. What a flow or a tool does delays this by
 * seconds at most; operations take their own time. */
static void leave(struct nb_worker *worker)
{
	struct nb_error ignored;

	if (worker->why && !worker->heartbeat.lost)
		nb_heartbeat_frame(&worker->heartbeat, NB_BYE, 0, worker->why, strlen(worker->why));
	if (worker->run)
		nb_run_halt(worker->run);
	nb_undo(&worker->undo, 0, &worker->client, &ignored);
	nb_worker_end_run(worker);
	if (worker->duty == NB_HELPER)
		nb_sampler_end();
	nb_scratch_files_close();
}

/* Wait, and handle what has come. Returns 0 or a negative code. */
static int serve_once(struct nb_worker *worker, const struct leaving *leaving)
{
	struct pollfd own[] = { [CONTROLLER] = { .fd = worker->in, .events = POLLIN },
				[SIGNALS] = { .fd = leaving->fd, .events = POLLIN } };
	uint64_t woken;
	int status = 0;

	wait_for_events(worker, own);
	woken = nb_now();
	if (own[CONTROLLER].revents)
		status = read_frames(worker);
	if (!status)
		nb_worker_dispatch(worker);
	/* While this worker was busy it could not read: the controller was not silent. */
	worker->heard_at += nb_now() - woken;
	if (worker->heard_at > nb_now())
		worker->heard_at = nb_now();
	nb_heartbeat();
	if (nb_now() >= worker->heard_at + NB_SILENCE_SECONDS * SECOND)
		worker->heartbeat.lost = 1;
	if (own[SIGNALS].revents && was_asked(leaving))
		nb_worker_leave(worker, "a signal told it to exit");
	return status;
}

/* Become the user who was asked for, and greet the controller: with the error where that fails. */
static int greet(struct nb_worker *worker, const char *user)
{
	struct nb_writer hello = { 0 };
	struct nb_error error;
	int status = worker->duty == NB_MOVER && worker->client.by_sudo
			     ? nb_fail(&error, NB_ERR_REQUEST, "start",
				       "let the rule of sudo end with the word helper",
				       "a mover is not started by sudo")
			     : nb_become(user, &error);

	if (status) {
		nb_reply_error(worker, 0, &error);
		return status;
	}
	nb_hello_write(&hello);
	nb_reply(worker, NB_HELLO, 0, &hello);
	return worker->heartbeat.lost ? -NB_ERR_PEER : 0;
}

int nb_serve(int in, int out, enum nb_duty duty, const char *user)
{
	struct nb_worker worker = { .duty = duty, .in = in, .heard_at = nb_now() };
	struct leaving leaving;
	int status;

	nb_client_begin(&worker.client, in);
	worker.client.permit = duty == NB_HELPER ? nb_permit_helper : nb_permit_mover;
	if (duty == NB_HELPER && chdir("/")) /* a program's words are not of any folder */
		return NB_ERR_SYSTEM;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* beyond `ulimit -f` a write fails, and with it its run alone */
	take_signals(&leaving);
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	/* A controller that no longer reads must not block the worker. */
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
	nb_heartbeat_start(&worker.heartbeat, out);
	status = greet(&worker, user);
	while (!status && !worker.leaving && !worker.heartbeat.lost)
		status = serve_once(&worker, &leaving);
	leave(&worker);
	nb_reader_free(&worker.reader);
	nb_heartbeat_stop();
	close(leaving.fd);
	pthread_sigmask(SIG_SETMASK, &leaving.mask, NULL);
	return status < 0 ? -status : NB_OK;
}
