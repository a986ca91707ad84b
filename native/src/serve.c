/* SPDX-License-Identifier: MIT */
/* The serve loop: one controller on two descriptors, one run at a time, heartbeats both ways. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "heartbeat.h"
#include "ops.h"
#include "run.h"
#include "wire.h"

#ifndef NB_LAYOUT
#define NB_LAYOUT 0
#endif
#define NB_ENGINE "0.1.0"

static const uint64_t SECOND = 1000000000;

struct worker {
	int in;
	int out;
	struct nb_reader reader;
	struct nb_run *run;
	struct nb_undo_entry *held;
	uint64_t heard_at;
	uint64_t beat_at;
	int greeted;
	int leaving;
	int alone; /* nobody there to tell */
};

void nb_fill_hello(struct nb_hello *hello)
{
	struct utsname name;
	FILE *file;

	memset(hello, 0, sizeof(*hello));
	hello->magic = NB_MAGIC;
	hello->version = NB_PROTOCOL;
	hello->byte_order = NB_BYTE_ORDER;
	hello->layout = NB_LAYOUT;
	hello->pid = (uint32_t)getpid();
	hello->clock_ticks = (uint32_t)sysconf(_SC_CLK_TCK);
	hello->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	hello->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	if (!uname(&name)) {
		snprintf(hello->architecture, sizeof(hello->architecture), "%.*s",
			 (int)sizeof(hello->architecture) - 1, name.machine);
		snprintf(hello->kernel, sizeof(hello->kernel), "%.*s",
			 (int)sizeof(hello->kernel) - 1, name.release);
	}
	file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (file) {
		if (fgets(hello->boot_id, sizeof(hello->boot_id), file))
			hello->boot_id[strcspn(hello->boot_id, "\n")] = 0;
		fclose(file);
	}
	snprintf(hello->engine, sizeof(hello->engine), "%s", NB_ENGINE);
}

static int send_frame(struct worker *worker, enum nb_frame_type type, uint16_t tag,
		      const void *payload, size_t length)
{
	worker->beat_at = nb_now() + NB_HEARTBEAT_SECONDS * SECOND;
	if (!nb_send_frame(worker->out, type, tag, payload, length))
		return 0;
	worker->leaving = worker->alone = 1;
	return -1;
}

static _Thread_local struct worker *serving;

void nb_heartbeat(void)
{
	if (serving && !serving->alone && nb_now() >= serving->beat_at)
		send_frame(serving, NB_HEARTBEAT, 0, NULL, 0);
}

static void send_error(struct worker *worker, uint16_t tag, const struct nb_error *error)
{
	send_frame(worker, NB_ERROR, tag, error, sizeof(*error));
}

static void send_written(struct worker *worker, enum nb_frame_type type, uint16_t tag,
			 struct nb_writer *writer)
{
	struct nb_error error;

	if (!writer->failed && writer->used <= NB_FRAME_MAX) {
		send_frame(worker, type, tag, writer->data, writer->used);
	} else {
		nb_fail(&error, NB_ERR_MEMORY, "send frame", "use fewer streams",
			"an answer of %zu bytes, at most %d fit", writer->used, NB_FRAME_MAX);
		send_error(worker, tag, &error);
	}
	nb_writer_free(writer);
}

static void send_edge(struct worker *worker, uint16_t tag, uint32_t edge)
{
	struct nb_writer writer = { 0 };
	uint32_t head[2] = { edge, 0 };

	if (edge != NB_EDGE_WARM) { /* inside the measured window nothing is allocated */
		send_frame(worker, NB_EDGE, tag, head, sizeof(head));
		return;
	}
	nb_put(&writer, head, sizeof(head));
	nb_run_warm(worker->run, &writer);
	send_written(worker, NB_EDGE, tag, &writer);
}

static int send_hello(struct worker *worker)
{
	size_t count = nb_describe(NULL, 0),
	       length = sizeof(struct nb_hello) + count * sizeof(struct nb_row);
	char *payload = malloc(length);
	struct nb_hello *hello = (struct nb_hello *)payload;
	int status;

	if (!payload)
		return -NB_ERR_MEMORY;
	nb_fill_hello(hello);
	hello->rows = (uint32_t)count;
	nb_describe((struct nb_row *)(payload + sizeof(*hello)), count);
	status = send_frame(worker, NB_HELLO, 0, payload, length);
	free(payload);
	return status ? -NB_ERR_PEER : 0;
}

static int check_hello(const unsigned char *payload, size_t length, struct nb_error *error)
{
	struct nb_hello theirs;

	if (length < sizeof(theirs))
		return nb_fail(error, NB_ERR_PROTOCOL, "hello",
			       "use the same netbench version on both sides",
			       "a hello of %zu bytes, expected at least %zu", length,
			       sizeof(theirs));
	memcpy(&theirs, payload, sizeof(theirs));
	if (theirs.magic != NB_MAGIC || theirs.byte_order != NB_BYTE_ORDER)
		return nb_fail(error, NB_ERR_PROTOCOL, "hello",
			       "controller and worker need the same byte order",
			       "this is no hello, or its byte order is another");
	if (theirs.version != NB_PROTOCOL || theirs.layout != NB_LAYOUT)
		return nb_fail(error, NB_ERR_PROTOCOL, "hello",
			       "deploy the worker again from this controller",
			       "controller has version %u layout %016llx, worker has version %u "
			       "layout %016llx",
			       theirs.version, (unsigned long long)theirs.layout,
			       (unsigned int)NB_PROTOCOL, (unsigned long long)NB_LAYOUT);
	return 0;
}

static void end_run(struct worker *worker)
{
	if (worker->run)
		nb_run_free(worker->run);
	worker->run = NULL;
}

static void fail_run(struct worker *worker, uint16_t tag, const struct nb_error *error)
{
	end_run(worker);
	send_error(worker, tag, error);
}

static void start_job(struct worker *worker, uint16_t tag, const unsigned char *payload,
		      size_t length)
{
	struct nb_error error;
	struct nb_writer writer = { 0 };
	struct nb_run *run = worker->run ? NULL : calloc(1, sizeof(*run));
	int status;

	if (!run) {
		nb_fail(&error, worker->run ? NB_ERR_PROTOCOL : NB_ERR_MEMORY, "job",
			"report it as a defect of netbench", "%s",
			worker->run ? "a run is already under way" : "no memory for a run");
		send_error(worker, tag, &error);
		return;
	}
	status = nb_job_decode(&run->job, payload, length, &error);
	if (status) {
		free(run);
		send_error(worker, tag, &error);
		return;
	}
	worker->run = run;
	run->tag = tag;
	if (nb_run_prepare(run, &error)) {
		fail_run(worker, tag, &error);
		return;
	}
	nb_run_readbacks(run, &writer);
	send_written(worker, NB_READY, tag, &writer);
}

static void finish_run(struct worker *worker)
{
	struct nb_run *run = worker->run;
	struct nb_writer writer = { 0 };
	struct nb_error error;
	size_t next = 0;
	int more = run->window.samples_count > 0;

	while (more) {
		more = nb_run_samples(run, &next, &writer);
		send_written(worker, NB_SAMPLES, run->tag, &writer);
	}
	if (nb_run_result(run, &writer, &error)) {
		nb_writer_free(&writer);
		fail_run(worker, run->tag, &error);
		return;
	}
	send_written(worker, NB_RESULT, run->tag, &writer);
	end_run(worker);
}

static void tell(struct worker *worker, int events)
{
	uint16_t tag = worker->run->tag;

	if (events & NB_EVENT_WARM)
		send_edge(worker, tag, NB_EDGE_WARM);
	if (events & NB_EVENT_OPEN)
		send_edge(worker, tag, NB_EDGE_OPEN);
	if (events & NB_EVENT_CLOSE)
		send_edge(worker, tag, NB_EDGE_CLOSE);
	if (events & NB_EVENT_DONE)
		finish_run(worker);
}

static void dispatch_run(struct worker *worker)
{
	struct nb_error error;
	int events;

	if (!worker->run)
		return;
	events = nb_run_dispatch(worker->run, nb_now(), &error);
	if (events < 0)
		fail_run(worker, worker->run->tag, &error);
	else if (events)
		tell(worker, events);
}

static void control_run(struct worker *worker, const struct nb_frame *frame,
			const unsigned char *payload)
{
	struct nb_error error;
	int status;

	if (!worker->run) {
		/* The run may just have failed and said so: its error is on the way, this command
		 * crossed it. */
		return;
	}
	if (frame->type == NB_ABORT) {
		nb_fail(&error, NB_ERR_ABORTED, "run", "", "given up on request");
		fail_run(worker, frame->tag, &error);
		return;
	}
	status = frame->type == NB_GO	  ? nb_run_go(worker->run, &error)
		 : frame->type == NB_MARK ? nb_run_mark(worker->run, payload, frame->length, &error)
					  : nb_run_stop(worker->run, &error);
	if (status < 0)
		fail_run(worker, frame->tag, &error);
	else if (status)
		tell(worker, status);
}

static void do_operation(struct worker *worker, uint16_t tag, const unsigned char *payload,
			 size_t length)
{
	struct nb_writer writer = { 0 };
	struct nb_error error;

	if (nb_op_execute(payload, length, &worker->held, &writer, &error)) {
		nb_writer_free(&writer);
		send_error(worker, tag, &error);
		return;
	}
	send_written(worker, NB_OP_DONE, tag, &writer);
}

static void undo(struct worker *worker, uint16_t tag, const unsigned char *payload, size_t length)
{
	uint32_t scope = 0;
	struct nb_error error;
	int status = 0;

	if (length && length != sizeof(scope))
		status = nb_fail(&error, NB_ERR_REQUEST, "undo",
				 "use the same netbench version on both sides",
				 "a scope of %zu bytes", length);
	for (size_t i = 0; !status && i < length; i++)
		scope |= (uint32_t)payload[i] << 8 * i;
	if (!status)
		status = nb_op_undo(&worker->held, scope, &error);
	if (status)
		send_error(worker, tag, &error);
	else
		send_frame(worker, NB_UNDONE, tag, NULL, 0);
}

static int handle(struct worker *worker, const struct nb_frame *frame, const unsigned char *payload)
{
	struct nb_error error;

	if (!worker->greeted) {
		if (frame->type != NB_HELLO)
			nb_fail(&error, NB_ERR_PROTOCOL, "hello",
				"use the same netbench version on both sides",
				"expected a hello, got frame type %u", frame->type);
		if (frame->type != NB_HELLO || check_hello(payload, frame->length, &error)) {
			send_error(worker, frame->tag, &error);
			return -NB_ERR_PROTOCOL;
		}
		worker->greeted = 1;
		return 0;
	}
	switch (frame->type) {
	case NB_JOB:
		start_job(worker, frame->tag, payload, frame->length);
		return 0;
	case NB_GO:
	case NB_MARK:
	case NB_STOP:
	case NB_ABORT:
		control_run(worker, frame, payload);
		return 0;
	case NB_OP:
		do_operation(worker, frame->tag, payload, frame->length);
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
		nb_fail(&error, NB_ERR_PROTOCOL, "read frame",
			"use the same netbench version on both sides",
			"a worker takes no frame of type %u", frame->type);
		send_error(worker, frame->tag, &error);
		return -NB_ERR_PROTOCOL;
	}
}

static int hear(struct worker *worker)
{
	const unsigned char *payload;
	struct nb_frame frame;
	struct nb_error error;
	ssize_t got = nb_reader_fill(&worker->reader, worker->in);
	int status = 0;

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0) {
		worker->leaving = worker->alone = 1;
		return 0;
	}
	worker->heard_at = nb_now();
	while (!worker->leaving &&
	       (status = nb_reader_next(&worker->reader, &frame, &payload, &error)) > 0) {
		status = handle(worker, &frame, payload);
		if (status)
			return status;
	}
	if (status < 0)
		send_error(worker, 0, &error);
	return status;
}

static void wait_for_events(struct worker *worker, struct pollfd *first)
{
	struct pollfd fds[1 + NB_RUN_FDS];
	size_t count = 1;
	uint64_t now = nb_now(), due = worker->heard_at + NB_SILENCE_SECONDS * SECOND;
	struct timespec wait;

	fds[0] = (struct pollfd){ .fd = worker->in, .events = POLLIN };
	if (worker->beat_at < due)
		due = worker->beat_at;
	if (worker->run) {
		uint64_t theirs = nb_run_due(worker->run);

		count += nb_run_fds(worker->run, fds + 1);
		due = theirs < due ? theirs : due;
	}
	due = due > now ? due - now : 0;
	wait = (struct timespec){ .tv_sec = (time_t)(due / SECOND),
				  .tv_nsec = (long)(due % SECOND) };
	if (ppoll(fds, count, &wait, NULL) < 0)
		fds[0].revents = 0;
	*first = fds[0];
}

int nb_serve(int in, int out)
{
	struct worker worker = { .in = in, .out = out, .heard_at = nb_now() };
	struct nb_error ignored;
	int status;

	signal(SIGPIPE, SIG_IGN);
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL,
	      fcntl(out, F_GETFL) | O_NONBLOCK); /* a controller that no longer reads is noticed */
	serving = &worker;
	status = send_hello(&worker);
	while (!status && !worker.leaving) {
		struct pollfd first;
		uint64_t now;

		wait_for_events(&worker, &first);
		now = nb_now();
		if (first.revents)
			status = hear(&worker);
		if (!status)
			dispatch_run(&worker);
		worker.heard_at += nb_now() - now; /* while this worker was busy it could hear
						      nothing: that is no silence */
		now = nb_now();
		if (now >= worker.beat_at)
			send_frame(&worker, NB_HEARTBEAT, 0, NULL, 0);
		if (now >= worker.heard_at + NB_SILENCE_SECONDS * SECOND)
			worker.leaving = worker.alone = 1; /* the controller is gone */
	}
	end_run(&worker);
	nb_op_undo(&worker.held, 0, &ignored);
	nb_source_forget();
	nb_reader_free(&worker.reader);
	serving = NULL;
	return status < 0 ? -status : NB_OK;
}
