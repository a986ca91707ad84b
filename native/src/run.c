/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "method.h"

enum { SAMPLES_BYTES = 8 * 1024 * 1024, SAMPLES_MAX = 100000 };
enum {
	RB_PORT,
	RB_SEND_BUFFER,
	RB_RECEIVE_BUFFER,
	RB_CONGESTION,
	RB_RESIDENT,
	RB_SOURCE_SIZE,
	RB_STRANGERS,
	RB_LOST,
	RB_DIGEST,
	RB_STATUS,
	RB_OUTPUT,
	RB_ERRORS
};

const struct nb_field nb_readbacks[] = {
	[RB_PORT] = { .name = "port", .about = "the port that the receiver listens on" },
	[RB_SEND_BUFFER] = { .name = "send_buffer",
			     .about = "SO_SNDBUF as the kernel has it",
			     .unit = NB_UNIT_BYTES,
			     .type = NB_SIZE },
	[RB_RECEIVE_BUFFER] = { .name = "receive_buffer",
				.about = "SO_RCVBUF as the kernel has it",
				.unit = NB_UNIT_BYTES,
				.type = NB_SIZE },
	[RB_CONGESTION] = { .name = "congestion", .about = "congestion control as the kernel has it", .type = NB_TEXT },
	[RB_RESIDENT] = { .name = "resident",
			  .about = "bytes of the source in the page cache before the run",
			  .unit = NB_UNIT_BYTES,
			  .type = NB_SIZE },
	[RB_SOURCE_SIZE] = { .name = "source_size", .about = "bytes in the source", .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[RB_STRANGERS] = { .name = "strangers", .about = "connections to the data port that did not know the token" },
	[RB_LOST] = { .name = "samples_lost", .about = "samples that found no room" },
	[RB_DIGEST] = { .name = "digest", .about = "FNV-1a of what was sent or arrived", .per = NB_PER_STREAM },
	[RB_STATUS] = { .name = "tool_status", .about = "exit status of the tool, 128 + signal if it was killed" },
	[RB_OUTPUT] = { .name = "tool_output", .about = "what the tool printed", .type = NB_TEXT },
	[RB_ERRORS] = { .name = "tool_errors", .about = "what the tool printed as errors", .type = NB_TEXT },
};
const size_t nb_readbacks_count = NB_LENGTH(nb_readbacks);

/* Meters */

size_t nb_items(const struct nb_run *run, const struct nb_field *counter)
{
	if (counter->per == NB_PER_STREAM)
		return run->flows_count;
	return counter->per == NB_PER_CPU ? run->cpus : 1;
}

static size_t numbers_of(const struct nb_run *run, const struct nb_meter *meter)
{
	size_t total = 0;

	for (size_t i = 0; i < meter->counters_count; i++)
		total += nb_items(run, &meter->counters[i]);
	return total;
}

static int asked_for(const struct nb_job *job, const char *name)
{
	for (const char *at = job->meters; at < job->meters + sizeof(job->meters) && *at; at += strlen(at) + 1)
		if (!strcmp(at, name))
			return 1;
	return 0;
}

static int know_meters(const struct nb_job *job, struct nb_error *error)
{
	for (const char *at = job->meters; at < job->meters + sizeof(job->meters) && *at; at += strlen(at) + 1) {
		size_t i = 0;

		while (nb_meters[i] && strcmp(nb_meters[i]->name, at))
			i++;
		if (!nb_meters[i])
			return nb_fail(error, NB_ERR_REQUEST, "open meter", "`netbench list meters` names what there is",
				       "no meter '%s'", at);
	}
	return 0;
}

static int open_meters(struct nb_run *run, struct nb_error *error)
{
	for (size_t i = 0; nb_meters[i] && run->readings_count < NB_METERS_MAX; i++) {
		const struct nb_meter *meter = nb_meters[i];
		struct nb_reading *reading = &run->readings[run->readings_count];
		int status;

		if (!(meter->flags & NB_ALWAYS && run->flows_count) && !asked_for(&run->job, meter->name))
			continue;
		*reading = (struct nb_reading){ .meter = meter, .run = run, .fd = -1 };
		run->readings_count++;
		run->numbers += numbers_of(run, meter);
		run->sampled += meter->flags & NB_SAMPLED ? numbers_of(run, meter) : 0;
		status = meter->open ? meter->open(reading, error) : 0;
		if (status)
			return status;
	}
	return 0;
}

static size_t proofs_of(const struct nb_run *run)
{
	return run->flows_count ? run->flows[0].method->proofs_count * run->flows_count : 0;
}

static int room_for_numbers(struct nb_run *run, struct nb_error *error)
{
	size_t row = (1 + run->sampled) * sizeof(uint64_t);
	uint64_t wanted = run->job.sample ? run->job.duration / run->job.sample + 2 : 0;

	for (int i = 0; i < 3; i++) {
		run->edges[i].numbers = calloc(run->numbers + proofs_of(run) + 1, sizeof(uint64_t));
		if (!run->edges[i].numbers)
			return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use fewer streams", "no memory for counters");
	}
	if (!wanted || !run->sampled)
		return 0;
	if (!run->job.duration || wanted > SAMPLES_MAX) /* a bytes-bounded run has no known length */
		wanted = SAMPLES_MAX;
	run->samples_room = wanted < SAMPLES_BYTES / row ? (size_t)wanted : SAMPLES_BYTES / row;
	run->samples = calloc(run->samples_room, row);
	if (!run->samples)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "sample less often", "no memory for %zu samples",
			       run->samples_room);
	return 0;
}

static void snapshot(struct nb_run *run, enum nb_edge edge)
{
	struct nb_snapshot *snapshot = &run->edges[edge];
	uint64_t *at = snapshot->numbers;

	snapshot->ns = nb_now(); /* bytes are the first to be read, right after it */
	for (size_t i = 0; i < run->readings_count; i++) {
		run->readings[i].meter->read(&run->readings[i], at);
		at += numbers_of(run, run->readings[i].meter);
	}
	for (size_t p = 0; run->flows_count && p < run->flows[0].method->proofs_count; p++)
		for (size_t i = 0; i < run->flows_count; i++)
			*at++ = atomic_load_explicit(&run->flows[i].proof[p], memory_order_relaxed);
	snapshot->taken = 1;
}

static void take_sample(struct nb_run *run, uint64_t now)
{
	uint64_t *at;

	run->sample_at = now + run->job.sample;
	if (run->samples_count == run->samples_room) {
		run->samples_lost++;
		return;
	}
	at = run->samples + run->samples_count++ * (1 + run->sampled);
	*at++ = now;
	for (size_t i = 0; i < run->readings_count; i++) {
		if (!(run->readings[i].meter->flags & NB_SAMPLED))
			continue;
		run->readings[i].meter->read(&run->readings[i], at);
		at += numbers_of(run, run->readings[i].meter);
	}
}

/* Preparing */

static int open_flows(struct nb_run *run, struct nb_error *error)
{
	run->flows = calloc(run->job.streams, sizeof(*run->flows));
	if (!run->flows)
		return nb_fail(error, NB_ERR_MEMORY, "prepare run", "use fewer streams", "no memory for flows");
	for (; run->flows_count < run->job.streams; run->flows_count++) {
		struct nb_flow *flow = &run->flows[run->flows_count];
		uint64_t share = run->job.bytes / run->job.streams;

		flow->socket = -1;
		flow->sink.fd = -1;
		flow->index = (uint32_t)run->flows_count;
		flow->method = run->job.method;
		flow->job = &run->job;
		flow->gates = &run->gates;
		flow->limit = run->job.bytes ? share + (flow->index == 0 ? run->job.bytes % run->job.streams : 0) : NB_MISSING;
	}
	for (size_t i = 0; i < run->flows_count; i++) {
		int status = nb_flow_open(&run->flows[i], error);

		if (status)
			return status;
	}
	return 0;
}

static int connect_flows(struct nb_run *run, struct nb_error *error)
{
	for (size_t i = 0; i < run->flows_count; i++) {
		int fd = nb_connect(&run->job, (uint32_t)i, error);

		if (fd < 0)
			return fd;
		run->flows[i].socket = fd;
		run->connected++;
	}
	return 0;
}

int nb_run_prepare(struct nb_run *run, struct nb_error *error)
{
	int moves = run->job.role == NB_ROLE_SEND || run->job.role == NB_ROLE_RECEIVE, status;

	run->door.socket = -1;
	nb_tool_init(&run->tool);
	run->phase = NB_PREPARED;
	run->cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	run->resident = run->source_size = NB_MISSING;
	status = nb_gates_open(&run->gates, error);
	if (!status && moves)
		status = open_flows(run, error);
	if (!status && run->job.role == NB_ROLE_SEND && run->flows[0].source.count)
		status = nb_source_cache(&run->flows[0].source, &run->job, &run->resident, &run->source_size, error);
	if (!status)
		status = know_meters(&run->job, error);
	if (!status)
		status = open_meters(run, error);
	if (!status)
		status = room_for_numbers(run, error);
	if (!status && run->job.role == NB_ROLE_RECEIVE)
		status = nb_door_open(&run->door, &run->job, error);
	if (!status && run->job.role == NB_ROLE_SEND)
		status = connect_flows(run, error);
	for (size_t i = 0; !status && i < run->flows_count; i += nb_flow_team(&run->job, run->flows_count))
		status = nb_flow_start(&run->flows[i], nb_flow_team(&run->job, run->flows_count), error);
	return status;
}

/* Phases */

static void open_window(struct nb_run *run)
{
	snapshot(run, NB_EDGE_OPEN);
	run->phase = NB_MEASURING;
	run->warm_at = 0;
	if (run->job.duration && !run->job.bytes && !run->job.marks)
		run->close_at = run->edges[NB_EDGE_OPEN].ns + run->job.duration;
	if (run->samples_room)
		run->sample_at = run->edges[NB_EDGE_OPEN].ns + run->job.sample;
}

static void close_window(struct nb_run *run)
{
	snapshot(run, NB_EDGE_CLOSE);
	run->phase = NB_CLOSED;
	run->close_at = run->sample_at = 0;
}

static int go_tool(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int status;

	if (!run->job.duration && !run->job.marks) { /* the whole life of the tool is the window */
		open_window(run);
		return nb_tool_start(&run->tool, &run->job, error);
	}
	status = nb_tool_start(&run->tool, &run->job, error);
	run->phase = run->job.marks ? NB_WAITING : NB_WARMING;
	run->warm_at = run->job.marks ? 0 : now + run->job.warmup;
	return status;
}

int nb_run_go(struct nb_run *run, struct nb_error *error)
{
	uint64_t now = nb_now();

	if (run->phase != NB_PREPARED)
		return nb_fail(error, NB_ERR_PROTOCOL, "go", "report it as a defect of netbench", "the run is already under way");
	if (run->connected < run->flows_count)
		return nb_fail(error, NB_ERR_PEER, "go", "look at the sender's error", "%zu of %zu streams are connected",
			       run->connected, run->flows_count);
	if (run->job.role == NB_ROLE_TOOL)
		return go_tool(run, now, error);
	nb_gates_move(&run->gates, NB_GATE_WARM);
	run->phase = run->job.bytes && run->job.role == NB_ROLE_RECEIVE ? NB_WAITING : NB_WARMING;
	run->warm_at = run->phase == NB_WARMING ? now + run->job.warmup : 0;
	return 0;
}

static int has_settled(const struct nb_run *run)
{
	for (size_t i = 0; i < run->flows_count; i++)
		if (atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) < run->settled[i])
			return 0;
	return 1;
}

static int open_marked(struct nb_run *run)
{
	open_window(run);
	atomic_store_explicit(&run->gates.marked, 1, memory_order_release);
	nb_gates_move(&run->gates, NB_GATE_RUN);
	return NB_NEWS_OPEN;
}

int nb_run_mark(struct nb_run *run, const unsigned char *arrived, size_t length, struct nb_error *error)
{
	if (run->phase == NB_WAITING && length <= run->flows_count * sizeof(uint64_t)) {
		memcpy(run->settled, arrived, length);
		run->phase = NB_SETTLING;
		return has_settled(run) ? open_marked(run) : NB_NEWS_NONE;
	}
	if (run->phase == NB_MEASURING && run->job.marks) {
		close_window(run);
		return NB_NEWS_CLOSE;
	}
	return nb_fail(error, NB_ERR_PROTOCOL, "mark", "report it as a defect of netbench",
		       "the run waits for no mark of %zu bytes", length);
}

void nb_run_warm(const struct nb_run *run, struct nb_writer *writer)
{
	for (size_t i = 0; i < run->flows_count; i++) {
		uint64_t bytes = atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed);

		nb_put(writer, &bytes, sizeof(bytes));
	}
}

static void stop_flows(struct nb_run *run, enum nb_stop stop)
{
	atomic_store(&run->gates.stop, stop);
}

int nb_run_stop(struct nb_run *run, struct nb_error *error)
{
	if (run->phase != NB_CLOSED)
		return nb_fail(error, NB_ERR_PROTOCOL, "stop", "report it as a defect of netbench",
			       "the measured window is not closed");
	stop_flows(run, NB_STOP_ALL);
	if (run->job.marks)
		nb_tool_kill(&run->tool); /* a server that waits for the next client */
	run->phase = NB_DRAINING;
	return 0;
}

static void adopt(struct nb_run *run, int fd, uint32_t stream)
{
	if (run->flows[stream].socket >= 0) { /* the token is known, the stream is taken: a stranger all the same */
		close(fd);
		run->door.strangers++;
		return;
	}
	run->flows[stream].socket = fd;
	run->connected++;
}

static void hear_guests(struct nb_run *run, uint64_t now)
{
	struct pollfd pending[NB_GUESTS_MAX];

	nb_door_accept(&run->door);
	for (size_t i = 0; i < run->door.guests_count; i++)
		pending[i] = (struct pollfd){ .fd = run->door.guests[i].socket, .events = POLLIN };
	if (poll(pending, run->door.guests_count, 0) > 0)
		for (size_t i = run->door.guests_count; i-- > 0;) {
			uint32_t stream;
			int fd = pending[i].revents ? nb_door_hear(&run->door, i, &run->job, &stream) : -1;

			if (fd >= 0)
				adopt(run, fd, stream);
		}
	nb_door_expire(&run->door, now);
}

static size_t count_ended(const struct nb_run *run, const struct nb_flow **failed)
{
	size_t ended = 0;

	for (size_t i = 0; i < run->flows_count; i++) {
		const struct nb_flow *flow = &run->flows[i];

		if (!atomic_load_explicit(&flow->ended, memory_order_acquire))
			continue;
		ended++;
		if (flow->failed && !*failed)
			*failed = flow;
	}
	return ended;
}

static size_t count_parked(const struct nb_run *run)
{
	size_t parked = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		parked += (size_t)atomic_load_explicit(&run->flows[i].parked, memory_order_acquire);
	return parked;
}

/* Bytes that a receiver has got since the window opened; before that the sender was parked, and said how many there were. */
static uint64_t arrived_in_window(const struct nb_run *run)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < run->flows_count; i++)
		bytes += atomic_load_explicit(&run->flows[i].bytes, memory_order_relaxed) - run->settled[i];
	return bytes;
}

static int turn_flows(struct nb_run *run, struct nb_error *error)
{
	const struct nb_flow *failed = NULL;
	size_t ended = count_ended(run, &failed);
	int news = NB_NEWS_NONE;

	if (failed) {
		*error = failed->error;
		return failed->failed;
	}
	if (run->phase == NB_WARMING && run->job.bytes && count_parked(run) == run->flows_count) {
		run->phase = NB_WAITING;
		run->warm_at = 0;
		return NB_NEWS_WARM;
	}
	if (!ended || (ended < run->flows_count && (run->job.bytes || run->phase == NB_DRAINING)))
		return news;
	if (run->phase == NB_MEASURING && run->job.role == NB_ROLE_RECEIVE && run->job.bytes > arrived_in_window(run))
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed after %llu of %llu bytes", (unsigned long long)arrived_in_window(run),
			       (unsigned long long)run->job.bytes);
	if (run->phase == NB_MEASURING && run->job.bytes) {
		close_window(run);
		run->phase = NB_DRAINING;
		news = NB_NEWS_CLOSE;
	}
	/* Between the closing edge and the stop the other side may already have stopped. */
	if (run->phase != NB_DRAINING && run->phase != NB_CLOSED)
		return nb_fail(error, NB_ERR_PEER, "run", "look at the other side's error",
			       "the connection was closed before the measured window was");
	if (run->phase == NB_CLOSED)
		return news;
	snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return news | NB_NEWS_DONE;
}

static int turn_tool(struct nb_run *run, struct nb_error *error)
{
	int whole = !run->job.duration && !run->job.marks;
	size_t said;

	nb_tool_listen(&run->tool);
	if (run->phase == NB_WAITING && run->job.await[0] && nb_tool_says(&run->tool, run->job.await)) {
		run->job.await[0] = 0;
		return NB_NEWS_WARM;
	}
	if (!run->tool.exited)
		return NB_NEWS_NONE;
	said = run->tool.errors.used < 150 ? run->tool.errors.used : 150; /* it has no end */
	if (run->phase == NB_MEASURING && run->job.marks) {
		close_window(run); /* a server that leaves with its client: its life is the window */
		return NB_NEWS_CLOSE;
	}
	if (run->phase == NB_MEASURING && whole) {
		close_window(run);
		run->phase = NB_DRAINING;
	} else if (run->phase != NB_DRAINING && run->phase != NB_CLOSED) {
		return nb_fail(error, NB_ERR_PEER, "tool", "run the command by hand on this host",
			       "%.40s ended with status %d before the measured window was closed: %.*s", run->job.argv,
			       WIFEXITED(run->tool.status) ? WEXITSTATUS(run->tool.status) : 128 + WTERMSIG(run->tool.status),
			       said ? (int)said : 150, said ? run->tool.errors.text : "it printed no error");
	}
	if (run->phase != NB_DRAINING)
		return NB_NEWS_NONE;
	snapshot(run, NB_EDGE_DRAINED);
	run->phase = NB_DONE;
	return (whole ? NB_NEWS_CLOSE : NB_NEWS_NONE) | NB_NEWS_DONE;
}

static int turn_clock(struct nb_run *run, uint64_t now)
{
	if (run->warm_at && now >= run->warm_at) {
		run->warm_at = 0;
		if (!run->job.bytes || run->job.role == NB_ROLE_TOOL || run->job.role == NB_ROLE_OBSERVE) {
			open_window(run);
			return NB_NEWS_OPEN;
		}
		stop_flows(run, NB_STOP_PUMP);
	}
	if (run->phase == NB_SETTLING && has_settled(run))
		return open_marked(run);
	if (run->close_at && now >= run->close_at) {
		close_window(run);
		return NB_NEWS_CLOSE;
	}
	if (run->sample_at && now >= run->sample_at)
		take_sample(run, now);
	return NB_NEWS_NONE;
}

static void clear_notices(struct nb_run *run)
{
	uint64_t count;
	ssize_t got = read(run->gates.notify, &count, sizeof(count));

	(void)got; /* nothing there is fine */
}

int nb_run_turn(struct nb_run *run, uint64_t now, struct nb_error *error)
{
	int news, more;

	if (run->phase == NB_DONE)
		return NB_NEWS_NONE;
	clear_notices(run);
	if (run->door.socket >= 0)
		hear_guests(run, now);
	news = turn_clock(run, now);
	if (run->flows_count)
		more = turn_flows(run, error);
	else if (run->tool.pid)
		more = turn_tool(run, error);
	else if (run->phase == NB_DRAINING) {
		snapshot(run, NB_EDGE_DRAINED);
		run->phase = NB_DONE;
		more = NB_NEWS_DONE;
	} else {
		more = NB_NEWS_NONE;
	}
	return more < 0 ? more : news | more;
}

static uint64_t sooner(uint64_t one, uint64_t other)
{
	return other && other < one ? other : one;
}

uint64_t nb_run_due(const struct nb_run *run)
{
	uint64_t due = UINT64_MAX;

	due = sooner(due, run->warm_at);
	due = sooner(due, run->close_at);
	due = sooner(due, run->sample_at);
	if (run->phase == NB_SETTLING) /* flows do not tell how far they are */
		due = sooner(due, nb_now() + 100000);
	for (size_t i = 0; i < run->door.guests_count; i++)
		due = sooner(due, run->door.guests[i].deadline);
	return due;
}

size_t nb_run_fds(const struct nb_run *run, struct pollfd *fds)
{
	size_t count = 0;

	fds[count++] = (struct pollfd){ .fd = run->gates.notify, .events = POLLIN };
	if (run->door.socket >= 0 && run->door.guests_count < NB_GUESTS_MAX) /* who finds it full waits outside */
		fds[count++] = (struct pollfd){ .fd = run->door.socket, .events = POLLIN };
	for (size_t i = 0; i < run->door.guests_count; i++)
		fds[count++] = (struct pollfd){ .fd = run->door.guests[i].socket, .events = POLLIN };
	if (run->tool.pid && !run->tool.exited)
		fds[count++] = (struct pollfd){ .fd = run->tool.pidfd, .events = POLLIN };
	if (run->tool.output.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.output.fd, .events = POLLIN };
	if (run->tool.errors.fd >= 0)
		fds[count++] = (struct pollfd){ .fd = run->tool.errors.fd, .events = POLLIN };
	return count;
}

/* Results */

static void put_number(struct nb_writer *writer, size_t readback, int edge, uint64_t number)
{
	if (number != NB_MISSING)
		nb_put_numbers(writer, nb_row_of_readback(readback), edge, 0, &number, 1);
}

void nb_run_readbacks(const struct nb_run *run, struct nb_writer *writer)
{
	int fd = run->door.socket, number;
	socklen_t length = sizeof(number);
	char name[16] = "";

	if (run->flows_count && run->flows[0].socket >= 0)
		fd = run->flows[0].socket;
	if (run->door.socket >= 0)
		put_number(writer, RB_PORT, 0, run->door.port);
	put_number(writer, RB_RESIDENT, 0, run->resident);
	put_number(writer, RB_SOURCE_SIZE, 0, run->source_size);
	if (fd < 0)
		return;
	if (run->job.role == NB_ROLE_SEND && !getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &number, &length))
		put_number(writer, RB_SEND_BUFFER, 0, (uint64_t)number);
	if (run->job.role == NB_ROLE_RECEIVE && !getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &number, &length))
		put_number(writer, RB_RECEIVE_BUFFER, 0, (uint64_t)number);
	length = sizeof(name) - 1;
	if (!getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length))
		nb_put_text(writer, nb_row_of_readback(RB_CONGESTION), 0, name, strnlen(name, sizeof(name)));
}

static void put_edge(struct nb_run *run, int edge, struct nb_writer *writer)
{
	struct nb_snapshot *snapshot = &run->edges[edge];
	uint64_t first = atomic_load(&run->gates.first_data);
	const uint64_t *at = snapshot->numbers;

	if (edge == NB_EDGE_OPEN && first) /* counted while nothing moved: the time until something did is nobody's */
		snapshot->ns = first;
	for (size_t i = 0; i < run->readings_count; i++) {
		const struct nb_meter *meter = run->readings[i].meter;

		for (size_t c = 0; c < meter->counters_count; c++) {
			size_t items = nb_items(run, &meter->counters[c]);

			nb_put_numbers(writer, nb_row_of_counter(meter, c), edge, snapshot->ns, at, (uint32_t)items);
			at += items;
		}
	}
	for (size_t p = 0; run->flows_count && p < run->flows[0].method->proofs_count; p++) {
		nb_put_numbers(writer, nb_row_of_proof(run->flows[0].method, p), edge, snapshot->ns, at,
			       (uint32_t)run->flows_count);
		at += run->flows_count;
	}
}

static int put_digests(const struct nb_run *run, struct nb_writer *writer, struct nb_error *error)
{
	uint64_t digests[NB_STREAMS_MAX];

	for (size_t i = 0; i < run->flows_count; i++) {
		int status = nb_flow_digest(&run->flows[i], &digests[i], error);

		if (status)
			return status;
	}
	nb_put_numbers(writer, nb_row_of_readback(RB_DIGEST), NB_EDGE_DRAINED, 0, digests, (uint32_t)run->flows_count);
	return 0;
}

static void put_tool(const struct nb_run *run, struct nb_writer *writer)
{
	int status = run->tool.status;

	put_number(writer, RB_STATUS, NB_EDGE_DRAINED,
		   (uint64_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
	nb_put_text(writer, nb_row_of_readback(RB_OUTPUT), NB_EDGE_DRAINED, run->tool.output.text, run->tool.output.used);
	nb_put_text(writer, nb_row_of_readback(RB_ERRORS), NB_EDGE_DRAINED, run->tool.errors.text, run->tool.errors.used);
}

int nb_run_result(struct nb_run *run, struct nb_writer *writer, struct nb_error *error)
{
	int delivers = run->job.method && run->job.method->flags & NB_DELIVERS;

	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_join(&run->flows[i]);
	for (int edge = NB_EDGE_OPEN; edge <= NB_EDGE_DRAINED; edge++)
		if (run->edges[edge].taken)
			put_edge(run, edge, writer);
	nb_run_readbacks(run, writer);
	if (run->job.role == NB_ROLE_RECEIVE)
		/* who has said nothing until now knows no token either */
		put_number(writer, RB_STRANGERS, NB_EDGE_DRAINED, run->door.strangers + run->door.guests_count);
	put_number(writer, RB_LOST, NB_EDGE_DRAINED, run->samples_lost);
	if (run->tool.pid)
		put_tool(run, writer);
	return run->job.verify && delivers ? put_digests(run, writer, error) : 0;
}

int nb_run_samples(const struct nb_run *run, size_t *next, struct nb_writer *writer)
{
	while (*next < run->samples_count && writer->used < 256 * 1024) {
		const uint64_t *at = run->samples + (*next)++ * (1 + run->sampled);
		uint64_t ns = *at++;

		for (size_t i = 0; i < run->readings_count; i++) {
			const struct nb_meter *meter = run->readings[i].meter;

			for (size_t c = 0; meter->flags & NB_SAMPLED && c < meter->counters_count; c++) {
				size_t items = nb_items(run, &meter->counters[c]);

				nb_put_numbers(writer, nb_row_of_counter(meter, c), 0, ns, at, (uint32_t)items);
				at += items;
			}
		}
	}
	return *next < run->samples_count;
}

void nb_run_free(struct nb_run *run)
{
	atomic_store(&run->gates.stop, NB_STOP_ALL);
	atomic_store(&run->gates.abort, NB_STOP_ALL);
	for (size_t i = 0; i < run->flows_count; i++)
		if (run->flows[i].socket >= 0)
			shutdown(run->flows[i].socket, SHUT_RDWR);
	nb_gates_move(&run->gates, NB_GATE_RUN);
	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_join(&run->flows[i]);
	for (size_t i = 0; i < run->readings_count; i++)
		if (run->readings[i].meter->close)
			run->readings[i].meter->close(&run->readings[i]);
	for (size_t i = 0; i < run->flows_count; i++)
		nb_flow_close(&run->flows[i]);
	if (run->door.socket >= 0)
		nb_door_close(&run->door);
	nb_tool_free(&run->tool);
	nb_gates_close(&run->gates);
	for (int i = 0; i < 3; i++)
		free(run->edges[i].numbers);
	free(run->samples);
	free(run->flows);
	free(run);
}
