/* SPDX-License-Identifier: MIT */
/*
 * A small controller in C for the tests. It drives a worker that runs
 * in a thread of this process, so that the sanitizers see both sides of every exchange.
 */
#ifndef NB_TEST_CONTROLLER_H
#define NB_TEST_CONTROLLER_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire.h"

/* No answer takes so long on any machine; only a test that fails waits for it. */
enum { PATIENCE_MS = 30000 };

struct test_controller {
	enum nb_duty duty;
	int in;	 /* frames from the worker */
	int out; /* frames to it */
	int theirs_in;
	int theirs_out;
	pthread_t thread;
	int code; /* what nb_serve returned, once joined */
	uint16_t tag;
	struct nb_reader reader;
};

/* The vectors of a READY, RESULT, SAMPLES or OP_DONE frame; a copy. */
struct vectors {
	unsigned char *data;
	size_t length;
};

/* Start a mover over two pipes (or one socket pair), or a helper, and exchange hellos. */
void controller_open(struct test_controller *controller);
void controller_open_helper(struct test_controller *controller);
void controller_open_socket(struct test_controller *controller);
/* Start it and leave the hellos to the test. */
void controller_start(struct test_controller *controller);
/* Send NB_BYE; returns what nb_serve returned. */
int controller_close(struct test_controller *controller);
/* Close the descriptors without NB_BYE; returns what nb_serve returned. */
int controller_vanish(struct test_controller *controller);

void controller_send(struct test_controller *controller, enum nb_frame_type type,
		     const void *payload, size_t length);
/* A request: a new tag, then the writer's payload, which is freed. */
void controller_request(struct test_controller *controller, enum nb_frame_type type,
			struct nb_writer *writer);
/* The next frame that is not a heartbeat; *payload is valid until the next call. */
struct nb_frame controller_next(struct test_controller *controller, const unsigned char **payload);
/* The next frame of that type; edges and samples are passed over, anything else fails the test. */
struct vectors controller_await(struct test_controller *controller, enum nb_frame_type type);
/* The next edge must be this one; returns what it carries. */
struct vectors controller_edge(struct test_controller *controller, enum nb_edge edge);
struct nb_error controller_error(struct test_controller *controller);

/* The id of a row by the name of its owner ("" for none) and its own. */
uint16_t row_named(const char *owner, const char *name);
void put_number(struct nb_writer *writer, const char *name, uint64_t number);
void put_text(struct nb_writer *writer, const char *name, const char *text);
void put_bytes(struct nb_writer *writer, uint16_t row, const void *bytes, size_t length);

/* Whether a vector is there; one of its numbers. Missing ones fail the test. */
int vector_is(const struct vectors *vectors, const char *owner, const char *name, int edge);
uint64_t vector_number(const struct vectors *vectors, const char *owner, const char *name, int edge,
		       size_t item);
uint64_t vector_ns(const struct vectors *vectors, const char *owner, const char *name, int edge);
void vectors_free(struct vectors *vectors);

/* A file under the temporary directory with that content; the path is to be freed with forget_file,
 * which also removes it. */
char *temporary_file(const void *bytes, size_t length);
void forget_file(char *path);
/* Whether a file holds exactly these bytes. */
int file_holds(const char *path, const void *bytes, size_t length);

#endif
