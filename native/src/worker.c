/* SPDX-License-Identifier: MIT */
/* A worker's answers, and its run: started by a job, driven by orders and events, answered with its
 * result. */
#include "worker.h"

#include <stdlib.h>

#include "clock.h"

void nb_reply_error(struct nb_worker *worker, uint16_t tag, const struct nb_error *error)
{
	nb_heartbeat_frame(&worker->heartbeat, NB_ERROR, tag, error, sizeof(*error));
}

void nb_reply(struct nb_worker *worker, enum nb_frame_type type, uint16_t tag,
	      struct nb_writer *writer)
{
	struct nb_error error;

	if (!writer->failed && writer->used <= NB_FRAME_MAX) {
		nb_heartbeat_frame(&worker->heartbeat, type, tag, writer->data, writer->used);
	} else {
		nb_fail(&error, NB_ERR_MEMORY, "send frame", "use fewer streams",
			"an answer of %zu bytes, at most %d fit", writer->used, NB_FRAME_MAX);
		nb_reply_error(worker, tag, &error);
	}
	nb_writer_free(writer);
}

static void send_edge(struct nb_worker *worker, uint16_t tag, uint32_t edge)
{
	struct nb_writer writer = { 0 };
	uint32_t head[2] = { edge, 0 };

	if (edge != NB_EDGE_WARM) { /* inside the measured window nothing is allocated */
		nb_heartbeat_frame(&worker->heartbeat, NB_EDGE, tag, head, sizeof(head));
		return;
	}
	nb_put(&writer, head, sizeof(head));
	nb_run_warmup_bytes(worker->run, &writer);
	nb_reply(worker, NB_EDGE, tag, &writer);
}

void nb_worker_leave(struct nb_worker *worker, const char *why)
{
	worker->leaving = 1;
	worker->why = why;
}

void nb_worker_end_run(struct nb_worker *worker)
{
	/* What hangs in the kernel ends with the process at the earliest. */
	if (worker->run && nb_run_free(worker->run))
		nb_worker_leave(worker, "a stream or a tool hangs in the kernel");
	worker->run = NULL;
}

static void fail_run(struct nb_worker *worker, uint16_t tag, const struct nb_error *error)
{
	nb_worker_end_run(worker);
	nb_reply_error(worker, tag, error);
}

void nb_worker_start_run(struct nb_worker *worker, uint16_t tag, const unsigned char *payload,
			 size_t length)
{
	struct nb_error error;
	struct nb_writer writer = { 0 };
	struct nb_run *run = worker->run ? NULL : calloc(1, sizeof(*run));
	int status;

	if (!run) {
		nb_fail(&error, worker->run ? NB_ERR_PROTOCOL : NB_ERR_MEMORY, "job",
			"report it as a defect of netbench", "%s",
			worker->run ? "a run has already been started" : "no memory for a run");
		nb_reply_error(worker, tag, &error);
		return;
	}
	status = nb_job_decode(&run->job, payload, length, &error);
	if (status) {
		free(run);
		nb_reply_error(worker, tag, &error);
		return;
	}
	worker->run = run;
	run->tag = tag;
	if (nb_run_prepare(run, &error)) {
		fail_run(worker, tag, &error);
		return;
	}
	nb_run_readbacks(run, &writer);
	nb_reply(worker, NB_READY, tag, &writer);
	if (run->job.ask)
		nb_worker_end_run(worker);
}

static void send_samples(struct nb_worker *worker)
{
	struct nb_run *run = worker->run;
	struct nb_writer writer = { 0 };
	int more = run->window.samples_count > run->samples_sent;

	while (more) {
		more = nb_run_samples(run, &writer);
		nb_reply(worker, NB_SAMPLES, run->tag, &writer);
	}
}

static void finish_run(struct nb_worker *worker)
{
	struct nb_run *run = worker->run;
	struct nb_writer writer = { 0 };
	struct nb_error error;

	send_samples(worker);
	if (nb_run_result(run, &writer, &error)) {
		nb_writer_free(&writer);
		fail_run(worker, run->tag, &error);
		return;
	}
	nb_reply(worker, NB_RESULT, run->tag, &writer);
	nb_worker_end_run(worker);
}

static void send_events(struct nb_worker *worker, int events)
{
	uint16_t tag = worker->run->tag;
	char text[4096];

	if (events & NB_EVENT_PRINTED)
		nb_heartbeat_frame(&worker->heartbeat, NB_PRINTED, tag, text,
				   nb_tool_take(&worker->run->tool, text, sizeof(text)));
	if (events & NB_EVENT_WARM)
		send_edge(worker, tag, NB_EDGE_WARM);
	if (events & NB_EVENT_OPEN)
		send_edge(worker, tag, NB_EDGE_OPEN);
	if (events & NB_EVENT_CLOSE)
		send_edge(worker, tag, NB_EDGE_CLOSE);
	if (events & NB_EVENT_SAMPLES)
		send_samples(worker);
	if (events & NB_EVENT_DONE)
		finish_run(worker);
}

void nb_worker_dispatch(struct nb_worker *worker)
{
	struct nb_error error;
	int events;

	if (!worker->run)
		return;
	events = nb_run_dispatch(worker->run, nb_now(), &error);
	if (events < 0)
		fail_run(worker, worker->run->tag, &error);
	else if (events)
		send_events(worker, events);
}

void nb_worker_order(struct nb_worker *worker, const struct nb_frame *frame,
		     const unsigned char *payload)
{
	struct nb_error error;
	int status;

	if (!worker->run)
		return; /* the run has just failed: its error and this order crossed each other */
	if (frame->type == NB_ABORT) {
		nb_fail(&error, NB_ERR_ABORTED, "run", "", "aborted by the controller");
		fail_run(worker, frame->tag, &error);
		return;
	}
	if (frame->type == NB_PRINTED) {
		worker->run->asked_output = 1; /* told once the tool prints */
		return;
	}
	status = frame->type == NB_GO	  ? nb_run_go(worker->run, &error)
		 : frame->type == NB_MARK ? nb_run_mark(worker->run, payload, frame->length, &error)
					  : nb_run_stop(worker->run, &error);
	if (status < 0)
		fail_run(worker, frame->tag, &error);
	else if (status)
		send_events(worker, status);
}
