/* SPDX-License-Identifier: MIT */
/* Whole transfers: two workers in threads, a controller in between, data over the loopback
 * interface. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data_socket.h"
#include "method.h"
#include "rows.h"
#include "test_controller.h"

static const char TOKEN[] = "0123456789abcde"; /* 16 bytes with its end */
static const uint64_t MS = 1000000;

/* One transfer; 0 and NULL stand for the usual. */
struct plan {
	const char *send;    /* write */
	const char *receive; /* read */
	const char *source;
	uint64_t duration;
	uint64_t bytes;
	uint64_t warmup;
	uint64_t streams;
	uint64_t chunk;
	uint64_t receive_chunk;
	uint64_t preamble;
	uint64_t rate;
	int verify;
	int pinned;	  /* all streams of a side share a thread then */
	const char *sink; /* path of a file; NULL: discard */
	const char *fsync;
};

struct pair {
	struct test_controller sender;
	struct test_controller receiver;
	struct vectors sent;
	struct vectors received;
	uint64_t port;
};

static void open_pair(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	controller_open(&pair->sender);
	controller_open_socket(&pair->receiver);
}

static void close_pair(struct pair *pair)
{
	assert_int_equal(NB_OK, controller_close(&pair->sender));
	assert_int_equal(NB_OK, controller_close(&pair->receiver));
}

static uint64_t first_cpu(void)
{
	cpu_set_t set;
	uint64_t cpu = 0;

	assert_int_equal(0, sched_getaffinity(0, sizeof(set), &set));
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

static void put_plan(struct nb_writer *writer, const struct plan *plan, const char *role,
		     const char *method)
{
	const struct nb_method *send =
		nb_method_named(NB_ROW_SEND, plan->send ? plan->send : "write");

	put_text(writer, "role", role);
	put_text(writer, "method", method ? method : !strcmp(role, "send") ? "write" : "read");
	put_text(writer, "address", "127.0.0.1");
	put_bytes(writer, row_named("", "token"), TOKEN, sizeof(TOKEN));
	put_number(writer, "streams", plan->streams ? plan->streams : 1);
	put_number(writer, "duration", plan->bytes ? 0 : plan->duration ? plan->duration : 30 * MS);
	put_number(writer, "bytes", plan->bytes);
	put_number(writer, "warmup", plan->warmup);
	put_number(writer, "verify", (uint64_t)plan->verify);
	if (plan->pinned)
		put_number(writer, "cpu", first_cpu());
	if (plan->pinned && !(send->flags & (NB_ALONE | NB_NO_DATA | NB_FETCHES)))
		put_number(writer, "threads", 1);
	put_bytes(writer, row_named("", "meters"), "rusage\0procstat", 15);
}

static uint64_t prepare_receiver(struct test_controller *controller, const struct plan *plan)
{
	struct nb_writer writer = { 0 };
	struct vectors ready;
	uint64_t port;

	put_plan(&writer, plan, "receive", plan->receive);
	put_number(&writer, "receive_chunk", plan->receive_chunk ? plan->receive_chunk : 65536);
	if (plan->sink) {
		put_text(&writer, "sink", "file");
		put_text(&writer, "sink_path", plan->sink);
		put_text(&writer, "fsync", plan->fsync ? plan->fsync : "none");
		put_number(&writer, "overwrite", 1);
	}
	controller_request(controller, NB_JOB, &writer);
	ready = controller_await(controller, NB_READY);
	port = vector_number(&ready, "", "port", 0, 0);
	assert_true(vector_is(&ready, "", "receive_buffer", 0));
	vectors_free(&ready);
	return port;
}

static void request_sender(struct test_controller *controller, const struct plan *plan,
			   uint64_t port)
{
	struct nb_writer writer = { 0 };

	put_plan(&writer, plan, "send", plan->send);
	put_number(&writer, "chunk", plan->chunk ? plan->chunk : 65536);
	put_number(&writer, "peer_port", port);
	put_number(&writer, "preamble", plan->preamble);
	put_number(&writer, "rate", plan->rate);
	put_text(&writer, "source", plan->source ? plan->source : "memory");
	put_number(&writer, "source_files", 3);
	put_number(&writer, "source_size", 100000);
	controller_request(controller, NB_JOB, &writer);
}

static void prepare(struct pair *pair, const struct plan *plan)
{
	struct vectors ready;

	pair->port = prepare_receiver(&pair->receiver, plan);
	request_sender(&pair->sender, plan, pair->port);
	ready = controller_await(&pair->sender, NB_READY);
	assert_true(vector_is(&ready, "", "send_buffer", 0));
	vectors_free(&ready);
}

static void go(struct pair *pair)
{
	controller_send(&pair->receiver, NB_GO, NULL, 0);
	controller_send(&pair->sender, NB_GO, NULL, 0);
}

static void expect_edge(struct test_controller *controller, enum nb_edge edge)
{
	struct vectors carried = controller_edge(controller, edge);

	vectors_free(&carried);
}

static void open_bounded(struct pair *pair)
{
	struct vectors warm = controller_edge(&pair->sender, NB_EDGE_WARM);

	controller_send(&pair->receiver, NB_MARK, warm.data, warm.length);
	vectors_free(&warm);
	expect_edge(&pair->receiver, NB_EDGE_OPEN);
	controller_send(&pair->sender, NB_MARK, NULL, 0);
	expect_edge(&pair->sender, NB_EDGE_OPEN);
}

static void finish(struct pair *pair, const struct plan *plan)
{
	if (!plan->bytes) {
		expect_edge(&pair->sender, NB_EDGE_OPEN);
		expect_edge(&pair->receiver, NB_EDGE_OPEN);
		expect_edge(&pair->sender, NB_EDGE_CLOSE);
		expect_edge(&pair->receiver, NB_EDGE_CLOSE);
		controller_send(&pair->sender, NB_STOP, NULL, 0);
		controller_send(&pair->receiver, NB_STOP, NULL, 0);
	}
	pair->sent = controller_await(&pair->sender, NB_RESULT);
	pair->received = controller_await(&pair->receiver, NB_RESULT);
}

static void forget(struct pair *pair)
{
	vectors_free(&pair->sent);
	vectors_free(&pair->received);
}

static void run(struct pair *pair, const struct plan *plan)
{
	prepare(pair, plan);
	go(pair);
	if (plan->bytes)
		open_bounded(pair);
	finish(pair, plan);
}

static uint64_t bytes_at(const struct vectors *vectors, int edge, size_t stream)
{
	return vector_number(vectors, "flow", "bytes", edge, stream);
}

/* What a stream sent is what arrived. */
static void assert_same_digest(const struct pair *pair, size_t stream)
{
	assert_true(vector_number(&pair->sent, "", "digest", NB_EDGE_DRAINED, stream) ==
		    vector_number(&pair->received, "", "digest", NB_EDGE_DRAINED, stream));
}

/* The proofs of a method and the counters that every run has moved between the edges, and the edges
 * are in order. */
static void check_side(const struct vectors *result, const struct nb_method *method, int may_copy)
{
	uint64_t opened = vector_ns(result, "flow", "steps", NB_EDGE_OPEN),
		 closed = vector_ns(result, "flow", "steps", NB_EDGE_CLOSE);

	assert_true(opened < closed &&
		    closed <= vector_ns(result, "flow", "steps", NB_EDGE_DRAINED));
	if (vector_number(result, "flow", "steps", NB_EDGE_OPEN, 0) >=
	    vector_number(result, "flow", "steps", NB_EDGE_DRAINED, 0))
		fail_msg("%s: no step in %llu ns", method->name,
			 (unsigned long long)(closed - opened));
	assert_true(vector_is(result, "tcp", "segments_out", NB_EDGE_CLOSE));
	assert_true(vector_is(result, "procstat", "cpu_user", NB_EDGE_CLOSE));
	assert_true(vector_number(result, "rusage", "cpu_ns", NB_EDGE_OPEN, 0) <=
		    vector_number(result, "rusage", "cpu_ns", NB_EDGE_CLOSE, 0));
	for (size_t i = 0; i < method->proofs_count; i++) {
		uint64_t before = vector_number(result, method->name, method->proofs[i].name,
						NB_EDGE_OPEN, 0);
		uint64_t after = vector_number(result, method->name, method->proofs[i].name,
					       NB_EDGE_DRAINED, 0);

		assert_true(before <= after);
		/* Only what MSG_ZEROCOPY sends can be mapped over loopback. */
		if (may_copy && !strcmp(method->name, "zerocopy") &&
		    !strcmp(method->proofs[i].name, "mapped_bytes"))
			continue;
		if (method->proofs[i].flags & NB_MUST_MOVE && before == after)
			fail_msg("%s: %s did not move", method->name, method->proofs[i].name);
	}
}

/* Whether a side took whole steps between the edges: the calls of the first one that ends there may
 * have been made before, and others may write what one has left. */
static int has_run(const struct vectors *result)
{
	return vector_number(result, "flow", "steps", NB_EDGE_OPEN, 0) + 8 <
	       vector_number(result, "flow", "steps", NB_EDGE_CLOSE, 0);
}

/* A window that is long enough on this machine: with others on it, threads wait for a CPU. */
static void run_for_a_time(struct pair *pair, struct plan *plan)
{
	plan->duration = 8 * MS;
	run(pair, plan);
	while ((!has_run(&pair->sent) || !has_run(&pair->received)) && plan->duration < 5000 * MS) {
		forget(pair);
		plan->duration *= 4;
		run(pair, plan);
	}
}

static int go_together(const struct nb_method *send, const struct nb_method *receive)
{
	uint32_t either = send->flags | receive->flags;

	if (either & NB_REQUESTS)
		return !strcmp(send->name, receive->name);
	return (send->flags & NB_NO_DATA) == (receive->flags & NB_NO_DATA) &&
	       !(either & NB_FETCHES);
}

static int can_run(const struct nb_method *method)
{
	return !nb_row(nb_row_of(method))->why[0];
}

static void every_pair_moves_data_for_a_time(void **state)
{
	struct pair pair;

	(void)state;
	open_pair(&pair);
	for (size_t s = 0; nb_send_methods[s]; s++)
		for (size_t r = 0; nb_receive_methods[r]; r++) {
			struct plan plan = { .send = nb_send_methods[s]->name,
					     .receive = nb_receive_methods[r]->name,
					     .warmup = 2 * MS };

			if (!go_together(nb_send_methods[s], nb_receive_methods[r]) ||
			    !can_run(nb_send_methods[s]) || !can_run(nb_receive_methods[r]))
				continue;
			run_for_a_time(&pair, &plan);
			check_side(&pair.sent, nb_send_methods[s], 0);
			check_side(&pair.received, nb_receive_methods[r],
				   strcmp(nb_send_methods[s]->name, "zerocopy") != 0);
			/* null moves nothing and says so: its bytes are missing, not 0. */
			assert_true(bytes_at(&pair.sent, NB_EDGE_DRAINED, 0) ==
				    bytes_at(&pair.received, NB_EDGE_DRAINED, 0));
			assert_int_equal((nb_send_methods[s]->flags & (NB_NO_DATA | NB_REQUESTS)) !=
						 0,
					 bytes_at(&pair.sent, NB_EDGE_OPEN, 0) == UINT64_MAX);
			forget(&pair);
		}
	close_pair(&pair);
}

/* What a combination chooses beside its methods: along its row and its column each method meets
 * every source that it takes, both kinds of sinks, and streams that share a thread. */
static void vary(struct plan *plan, const struct nb_method *send, const struct nb_method *receive,
		 size_t number, const char *sink)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} sources[] = { { "memory", NB_FROM_MEMORY },
			{ "zero", NB_FROM_ZERO },
			{ "files", NB_FROM_FILE } };
	size_t source = number % NB_LENGTH(sources);

	plan->source = sources[send->flags & sources[source].flag ? source : 0].name;
	plan->sink = receive->flags & NB_TO_FILE && number / 2 % 2 ? sink : NULL;
	plan->fsync = number % 2 ? "window" : "after";
	plan->pinned = number / 4 % 2;
}

static uint64_t window_bytes(const struct vectors *result)
{
	uint64_t bytes = 0;

	for (size_t stream = 0; stream < 2; stream++)
		bytes += bytes_at(result, NB_EDGE_CLOSE, stream) -
			 bytes_at(result, NB_EDGE_OPEN, stream);
	return bytes;
}

static void every_pair_delivers_so_many_bytes(void **state)
{
	/* More than a pipe, a chain of an io_uring and a ring of chunks hold, and no more than
	 * that: a sanitizer takes its time for the digests. */
	enum { BYTES = 1024 * 1024 + 1 };
	char folder[] = "/var/tmp/netbench-test-XXXXXX", sink[64], second[64];
	struct pair pair;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(sink, sizeof(sink), "%s/out", folder);
	snprintf(second, sizeof(second), "%s/out.1", folder);
	open_pair(&pair);
	for (size_t s = 0; nb_send_methods[s]; s++)
		for (size_t r = 0; nb_receive_methods[r]; r++) {
			const struct nb_method *receive = nb_receive_methods[r];
			struct plan plan = { .send = nb_send_methods[s]->name,
					     .receive = receive->name,
					     .bytes = BYTES,
					     .streams = 2,
					     .verify = 1,
					     .warmup = s % 2 ? 3 * MS : 0,
					     .chunk = 30011,
					     .receive_chunk = 50021 };

			if ((nb_send_methods[s]->flags | receive->flags) &
				    (NB_NO_DATA | NB_FETCHES | NB_REQUESTS) ||
			    !can_run(nb_send_methods[s]) || !can_run(receive))
				continue;
			vary(&plan, nb_send_methods[s], receive, s + r, sink);
			run(&pair, &plan);
			check_side(&pair.sent, nb_send_methods[s], 0);
			check_side(&pair.received, receive,
				   strcmp(nb_send_methods[s]->name, "zerocopy") != 0);
			assert_int_equal(plan.sink != NULL, vector_is(&pair.received, "",
								      "fsync_ns", NB_EDGE_DRAINED));
			assert_int_equal(BYTES, window_bytes(&pair.sent));
			assert_int_equal(BYTES, window_bytes(&pair.received));
			for (size_t stream = 0; stream < 2 && receive->flags & NB_DELIVERS;
			     stream++)
				assert_same_digest(&pair, stream);
			if (!(receive->flags & NB_DELIVERS)) /* nothing could be compared */
				assert_false(
					vector_is(&pair.received, "", "digest", NB_EDGE_DRAINED));
			forget(&pair);
		}
	close_pair(&pair);
	assert_int_equal(0, unlink(sink));
	assert_int_equal(0, unlink(second));
	assert_int_equal(0, rmdir(folder));
}

static void streams_share_the_bytes_of(struct pair *pair, int pinned)
{
	struct plan plan = { .send = "sendfile",
			     .bytes = 1000003,
			     .streams = 4,
			     .preamble = 77,
			     .warmup = 2 * MS,
			     .verify = 1,
			     .pinned = pinned };
	uint64_t total = 0;

	run(pair, &plan);
	for (size_t i = 0; i < plan.streams; i++) {
		total += bytes_at(&pair->received, NB_EDGE_CLOSE, i) -
			 bytes_at(&pair->received, NB_EDGE_OPEN, i);
		assert_true(bytes_at(&pair->received, NB_EDGE_OPEN, i) >=
			    77); /* the preamble belongs to the warm-up */
		assert_same_digest(pair, i);
	}
	assert_int_equal(plan.bytes, total);
	forget(pair);
	/* Fewer bytes than streams: some have nothing to send, and the run ends all the same. */
	plan = (struct plan){ .bytes = 3, .streams = 5, .pinned = pinned };
	run(pair, &plan);
	for (size_t i = total = 0; i < plan.streams; i++)
		total += bytes_at(&pair->received, NB_EDGE_CLOSE, i);
	assert_int_equal(3, total);
	forget(pair);
}

static void streams_share_the_bytes(void **state)
{
	struct pair pair;

	(void)state;
	open_pair(&pair);
	streams_share_the_bytes_of(&pair, 0);
	streams_share_the_bytes_of(&pair, 1);
	close_pair(&pair);
}

static void a_rate_is_kept_in_time_and_in_bytes(void **state)
{
	struct plan plans[] = {
		{ .bytes = 1000000, .streams = 2 },
		{ .bytes = 1000000, .warmup = 5 * MS },
		{ .duration = 50 * MS },
		{ .send = "zerocopy", .bytes = 1000000, .warmup = 5 * MS },
	};
	struct pair pair;

	(void)state;
	open_pair(&pair);
	for (size_t i = 0; i < NB_LENGTH(plans); i++) {
		uint64_t bytes = 0, window;

		plans[i].rate = 160000000;
		plans[i].chunk = 10000;
		run(&pair, &plans[i]);
		for (size_t stream = 0; stream < (plans[i].streams ? plans[i].streams : 1);
		     stream++)
			bytes += bytes_at(&pair.sent, NB_EDGE_CLOSE, stream) -
				 bytes_at(&pair.sent, NB_EDGE_OPEN, stream);
		window = vector_ns(&pair.sent, "flow", "bytes", NB_EDGE_CLOSE) -
			 vector_ns(&pair.sent, "flow", "bytes", NB_EDGE_OPEN);
		/* At most what the rate allows in the window, and for each stream a quantum of pace
		 * and a chunk. */
		if (((double)bytes - 4.0 * (double)plans[i].chunk) * 8 >
		    (double)plans[i].rate * (double)window / 1e9)
			fail_msg("plan %zu: %llu bytes in %llu ns", i, (unsigned long long)bytes,
				 (unsigned long long)window);
		forget(&pair);
	}
	close_pair(&pair);
}

static void abort_pair(struct pair *pair)
{
	controller_send(&pair->sender, NB_ABORT, NULL, 0);
	assert_int_equal(NB_ERR_ABORTED, controller_error(&pair->sender).code);
	controller_send(&pair->receiver, NB_ABORT, NULL, 0);
	/* The receiver may have noticed by itself that its sender is gone. */
	assert_true(controller_error(&pair->receiver).code != NB_OK);
}

/* A run is given up in every one of its phases, and the same workers run the next one as if nothing
 * had been. */
static void a_run_can_be_given_up_at_any_time(void **state)
{
	struct plan endless = {
		.send = "splice", .receive = "splice", .duration = 1000000 * MS, .streams = 3
	};
	struct plan warm = { .send = "mmap", .bytes = 1ULL << 50, .warmup = 1000000 * MS };
	struct plan slow = {
		.receive = "trunc", .bytes = 1ULL << 50, .rate = 1000, .chunk = 1 << 20
	};
	static const char *const methods[][2] = {
		{ "zerocopy", "read" }, { "zerocopy", "zerocopy" }, { "vmsplice", "vmsplice" },
		{ "write", "mmap" },	{ "uring", "uring" },	    { "uring_zc", "read" }
	};
	struct plan after = { .send = "readwrite", .bytes = 100000, .verify = 1 };
	struct pair pair;

	(void)state;
	open_pair(&pair);
	prepare(&pair, &endless);
	abort_pair(&pair);
	prepare(&pair, &warm);
	go(&pair);
	abort_pair(&pair);
	prepare(&pair, &endless);
	go(&pair);
	expect_edge(&pair.sender, NB_EDGE_OPEN);
	abort_pair(&pair);
	for (size_t i = 0; i < 2 * NB_LENGTH(methods); i++) {
		struct plan under_way = { .send = methods[i / 2][0],
					  .receive = methods[i / 2][1],
					  .duration = 1000000 * MS,
					  .streams = 2,
					  .pinned = i % 2 };

		prepare(&pair, &under_way);
		go(&pair);
		expect_edge(&pair.sender, NB_EDGE_OPEN);
		abort_pair(&pair);
	}
	prepare(&pair, &slow);
	go(&pair);
	open_bounded(&pair);
	abort_pair(&pair);
	run(&pair, &after);
	assert_int_equal(100000, bytes_at(&pair.received, NB_EDGE_DRAINED, 0));
	forget(&pair);
	close_pair(&pair);
}

static void put_operation(struct nb_writer *writer, const char *op, const char *target,
			  const char *value)
{
	put_bytes(writer, row_named("file", "op"), op, strlen(op));
	put_bytes(writer, row_named("file", "target"), target, strlen(target));
	if (value)
		put_bytes(writer, row_named("file", "value"), value, strlen(value));
}

/* Whatever a controller says: data moves without the rights that changes take. */
static void a_mover_only_reads_and_a_helper_moves_no_data(void **state)
{
	char *path = temporary_file("before", 6);
	struct nb_writer change = { 0 }, undo = { 0 }, read = { 0 }, job = { 0 };
	struct test_controller controller;
	struct vectors answer;

	(void)state;
	controller_open(&controller);
	put_operation(&change, "file", path, "after");
	controller_request(&controller, NB_OP, &change);
	assert_non_null(strstr(controller_error(&controller).message, "does not change the host"));
	put_operation(&undo, "exec", "true", NULL);
	put_bytes(&undo, row_named("file", "undo"), "true", 4);
	controller_request(&controller, NB_OP, &undo);
	assert_non_null(strstr(controller_error(&controller).message, "does not change the host"));
	put_operation(&read, "file", path, NULL);
	controller_request(&controller, NB_OP, &read);
	answer = controller_await(&controller, NB_OP_DONE);
	vectors_free(&answer);
	assert_int_equal(NB_OK, controller_close(&controller));
	assert_true(file_holds(path, "before", 6));
	forget_file(path);
	controller_open_helper(&controller);
	put_text(&job, "role", "observe");
	controller_request(&controller, NB_JOB, &job);
	assert_non_null(strstr(controller_error(&controller).message, "moves no data"));
	assert_int_equal(NB_OK, controller_close(&controller));
}

/* One side dies: the other one's run fails and names the cause, in a timed run and in the warm-up
 * of one that counts bytes. */
static void a_lost_peer_is_an_error(void **state)
{
	static const struct plan plans[] = {
		{ .duration = 1000000000000 },
		{ .send = "sendfile",
		  .receive = "splice",
		  .bytes = 1ULL << 50,
		  .warmup = 1000000000000 },
		{ .send = "splice", .receive = "trunc", .bytes = 1ULL << 50, .streams = 2 },
		{ .send = "zerocopy", .bytes = 1ULL << 50, .warmup = 1000000000000, .streams = 2 },
		{ .send = "zerocopy", .duration = 1000000000000, .streams = 2, .pinned = 1 },
		{ .send = "vmsplice", .receive = "vmsplice", .duration = 1000000000000 },
		{ .send = "mmap", .receive = "mmap", .duration = 1000000000000, .streams = 2 },
		{ .send = "uring", .receive = "uring", .duration = 1000000000000, .streams = 2 },
		{ .send = "uring_zc",
		  .receive = "uring",
		  .duration = 1000000000000,
		  .streams = 2,
		  .pinned = 1 },
		{ .send = "uring_zc",
		  .receive = "zerocopy",
		  .bytes = 1ULL << 50,
		  .warmup = 1000000000000 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * NB_LENGTH(plans); i++) {
		const struct plan *plan = &plans[i / 2];
		struct test_controller *dies, *stays;
		struct pair pair;

		open_pair(&pair);
		dies = i % 2 ? &pair.sender : &pair.receiver;
		stays = i % 2 ? &pair.receiver : &pair.sender;
		prepare(&pair, plan);
		go(&pair);
		if (plan->bytes && !plan->warmup)
			open_bounded(&pair);
		assert_int_equal(NB_OK, controller_vanish(dies));
		assert_int_equal(NB_ERR_PEER, controller_error(stays).code);
		assert_int_equal(NB_OK, controller_close(stays));
	}
}

static int connect_raw(uint64_t port, const void *bytes, size_t length)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(0, connect(fd, (struct sockaddr *)&address, sizeof(address)));
	assert_int_equal(length, send(fd, bytes, length, MSG_NOSIGNAL));
	return fd;
}

static void expect_shut(int fd)
{
	struct pollfd pending = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(1, poll(&pending, 1, PATIENCE_MS));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

static void connections_without_the_token_are_rejected_and_counted(void **state)
{
	struct plan plan = { .bytes = 10000, .verify = 1 };
	unsigned char handshake[NB_HANDSHAKE_BYTES] = { 0 };
	struct vectors ready;
	struct pair pair;
	int silent;

	(void)state;
	open_pair(&pair);
	pair.port = prepare_receiver(&pair.receiver, &plan);
	memset(handshake, 'x', sizeof(handshake));
	expect_shut(connect_raw(pair.port, handshake, sizeof(handshake))); /* a wrong token */
	memset(handshake, 0, sizeof(handshake));
	memcpy(handshake, TOKEN, NB_TOKEN_BYTES);
	handshake[NB_TOKEN_BYTES + 3] = 1;
	expect_shut(connect_raw(pair.port, handshake,
				sizeof(handshake))); /* the right one, a stream that is not there */
	handshake[NB_TOKEN_BYTES + 3] = 0;
	handshake[NB_TOKEN_BYTES - 2] ^= 1;
	expect_shut(connect_raw(pair.port, handshake,
				sizeof(handshake))); /* wrong in its last letter */
	shutdown(silent = connect_raw(pair.port, handshake, 5),
		 SHUT_WR); /* leaves in the middle of a word */
	expect_shut(silent);
	silent = connect_raw(pair.port, "", 0); /* sends nothing, and stays open */
	request_sender(&pair.sender, &plan, pair.port);
	ready = controller_await(&pair.sender, NB_READY);
	vectors_free(&ready);
	handshake[NB_TOKEN_BYTES - 2] ^= 1;
	expect_shut(({
		int twice = connect_raw(
			pair.port, handshake,
			sizeof(handshake)); /* everything right, but the stream has come already */
		char byte;

		recv(twice, &byte, 1, MSG_WAITALL);
		twice;
	}));
	go(&pair);
	open_bounded(&pair);
	finish(&pair, &plan);
	assert_int_equal(10000, bytes_at(&pair.received, NB_EDGE_DRAINED, 0));
	assert_same_digest(&pair, 0);
	assert_int_equal(6, /* the silent one too */ vector_number(
				 &pair.received, "", "rejected_connections", NB_EDGE_DRAINED, 0));
	forget(&pair);
	close(silent);
	close_pair(&pair);
}

static void a_sender_does_not_trust_any_listener(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct plan plan = { 0 };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct nb_error error;
	struct test_controller controller;

	(void)state;
	assert_int_equal(0, bind(listener, (struct sockaddr *)&address, length));
	assert_int_equal(0, listen(listener, 1));
	assert_int_equal(0, getsockname(listener, (struct sockaddr *)&address, &length));
	controller_open(&controller);
	request_sender(&controller, &plan, ntohs(address.sin_port));
	fd = accept(listener, NULL, NULL);
	assert_int_equal(1, send(fd, "?", 1, MSG_NOSIGNAL));
	error = controller_error(&controller);
	assert_int_equal(NB_ERR_PEER, error.code);
	assert_non_null(strstr(error.message, "rejected the token"));
	close(fd);
	close(listener);
	request_sender(&controller, &plan, ntohs(address.sin_port)); /* the port is closed now */
	error = controller_error(&controller);
	assert_int_equal(ECONNREFUSED, error.error);
	assert_int_equal(NB_OK, controller_close(&controller));
}

static void orders_out_of_turn_are_errors(void **state)
{
	struct plan plan = { 0 };
	struct nb_writer writer = { 0 };
	struct test_controller controller;

	(void)state;
	controller_open(&controller);
	controller_send(&controller, NB_STOP, NULL,
			0); /* no run: it crossed the run's own error, and is passed over */
	prepare_receiver(&controller, &plan);
	put_plan(&writer, &plan, "receive", "read");
	put_number(&writer, "receive_chunk", 1);
	controller_request(&controller, NB_JOB, &writer);
	assert_non_null(strstr(controller_error(&controller).message, "already been started"));
	controller_send(&controller, NB_GO, NULL, 0);
	assert_int_equal(NB_ERR_PEER,
			 controller_error(&controller).code); /* no stream is connected */
	prepare_receiver(&controller, &plan);
	controller_send(&controller, NB_STOP, NULL, 0);
	assert_non_null(strstr(controller_error(&controller).message, "not closed"));
	prepare_receiver(&controller, &plan);
	controller_send(&controller, NB_MARK, NULL, 0);
	assert_int_equal(NB_ERR_PROTOCOL, controller_error(&controller).code);
	/* A frame that only a worker sends ends the conversation. */
	controller_send(&controller, NB_RESULT, NULL, 0);
	assert_non_null(
		strstr(controller_error(&controller).message, "does not accept frame type"));
	assert_int_equal(NB_ERR_PROTOCOL, controller_vanish(&controller));
}

static void a_worker_greets_only_its_like(void **state)
{
	static const char *const expected[] = { "byte order differs", "not a hello",
						"layout 000000000000beef", "version 99",
						"frame type 4" };

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(expected); i++) {
		const unsigned char *payload;
		struct nb_hello hello;
		struct nb_error error;
		struct test_controller controller;

		controller_start(&controller);
		assert_int_equal(NB_HELLO, controller_next(&controller, &payload).type);
		memcpy(&hello, payload, sizeof(hello));
		assert_int_equal(hello.rows, nb_describe(NULL, 0));
		hello.byte_order = i == 1 ? 0x04030201 : hello.byte_order;
		hello.layout = i == 2 ? 0xbeef : hello.layout;
		hello.version = i == 3 ? 99 : hello.version;
		controller_send(&controller, i == 4 ? NB_GO : NB_HELLO, &hello,
				i == 0 ? 4 : sizeof(hello));
		error = controller_error(&controller);
		assert_int_equal(NB_ERR_PROTOCOL, error.code);
		if (!strstr(error.message, expected[i]))
			fail_msg("'%s' does not say '%s'", error.message, expected[i]);
		assert_int_equal(NB_ERR_PROTOCOL, controller_vanish(&controller));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_moves_data_for_a_time),
		cmocka_unit_test(every_pair_delivers_so_many_bytes),
		cmocka_unit_test(streams_share_the_bytes),
		cmocka_unit_test(a_rate_is_kept_in_time_and_in_bytes),
		cmocka_unit_test(a_run_can_be_given_up_at_any_time),
		cmocka_unit_test(a_mover_only_reads_and_a_helper_moves_no_data),
		cmocka_unit_test(a_lost_peer_is_an_error),
		cmocka_unit_test(connections_without_the_token_are_rejected_and_counted),
		cmocka_unit_test(a_sender_does_not_trust_any_listener),
		cmocka_unit_test(orders_out_of_turn_are_errors),
		cmocka_unit_test(a_worker_greets_only_its_like),
	};

	return cmocka_run_group_tests_name("transfers", tests, NULL, NULL);
}
