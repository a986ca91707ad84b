/* SPDX-License-Identifier: MIT */
/* The table of rows: everything that methods, meters, operations and the job declare. */
#include "rows.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "meter.h"
#include "method.h"
#include "ops/op.h"
#include "tool.h"

/* clang-format off */
#define BYTES .unit = NB_UNIT_BYTES, .type = NB_SIZE
#define TIME .unit = NB_UNIT_NS, .type = NB_TIME
#define STREAM .per = NB_PER_STREAM
#define HISTOGRAM .unit = NB_UNIT_NS, .per = NB_PER_BUCKET
#define TEXT(most) .type = NB_TEXT, .maximum = most

#define AT(name) [NB_READBACK_##name]

const struct nb_field nb_readbacks[] = {
	AT(PORT) = { "port", "the port that the receiver listens on" },
	AT(SEND_BUFFER) = { "send_buffer", "SO_SNDBUF as the kernel has it", BYTES },
	AT(RECEIVE_BUFFER) = { "receive_buffer", "SO_RCVBUF as the kernel has it", BYTES },
	AT(CONGESTION) = { "congestion", "congestion control as the kernel has it",
		TEXT(sizeof(((struct nb_job *)0)->congestion)) },
	AT(RESIDENT) = { "resident",
		"bytes of the source in the page cache before the run", BYTES },
	AT(SOURCE_SIZE) = { "source_size", "bytes in the source", BYTES },
	AT(RESIDENT_AFTER) = { "resident_after",
		"bytes of the source in the page cache after the run", BYTES },
	AT(SINK_RESIDENT) = { "sink_resident",
		"bytes of the sink in the page cache, before and after the run",
		BYTES },
	AT(SINK_DIRTY) = { "sink_dirty", "bytes of them that were not on the disk yet "
		"(cachestat(2), Linux 6.5)", BYTES },
	AT(FSYNC) = { "fsync_ns",
		"from the first fsync(2) of a sink to the end of the last", TIME },
	AT(REJECTED) = { "rejected_connections",
		"connections to the data port that did not send the right token" },
	AT(LOST) = { "samples_lost", "samples for which there was no room" },
	AT(SILENCE) = { "silence",
		"the longest time in which the controller sent nothing", TIME },
	AT(DIGEST) = { "digest", "FNV-1a of what was sent or arrived", STREAM },
	AT(LATENCY) = { "latency",
		"of requests, from their start, of an open loop the intended one", HISTOGRAM },
	AT(SERVICE) = { "service", "likewise, from the actual start", HISTOGRAM },
	AT(LATENESS) = { "lateness", "likewise, how much later than it could a request began",
		HISTOGRAM },
	AT(SECOND) = { "latency_second", "likewise, after each second of the window", HISTOGRAM },
	AT(SINK_DEVICE) = { "sink_device", "device of the file that is written", STREAM },
	AT(SINK_INODE) = { "sink_inode", "inode of the file that is written", STREAM },
	AT(STATUS) = { "tool_status",
		"exit status of the tool, 128 + signal if it was killed" },
	AT(OUTPUT) = { "tool_output", "what the tool printed", TEXT(NB_TOOL_OUTPUT) },
	AT(ERRORS) = { "tool_errors", "what the tool printed as errors",
		TEXT(NB_TOOL_ERRORS) },
};
/* clang-format on */
const size_t nb_readbacks_count = NB_LENGTH(nb_readbacks);

enum { ROWS_MAX = 1024 };

static struct {
	struct nb_row rows[ROWS_MAX];
	const void *origin[ROWS_MAX]; /* the nb_field, nb_method, nb_meter or nb_op that a row was
					 made from */
	size_t count;
} table;

static pthread_once_t made = PTHREAD_ONCE_INIT;

static struct nb_row *add(uint8_t kind, uint16_t owner, const void *origin, const char *name,
			  const char *about)
{
	struct nb_row *row;

	if (table.count == ROWS_MAX)
		return &table.rows[ROWS_MAX -
				   1]; /* the C tests check that the table is large enough */
	row = &table.rows[table.count];
	table.origin[table.count] = origin;
	row->id = (uint16_t)table.count++;
	row->owner = owner;
	row->kind = kind;
	row->type = NB_COUNT;
	row->maximum = UINT64_MAX;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->about, sizeof(row->about), "%s", about);
	return row;
}

static void add_fields(uint8_t kind, uint16_t owner, const struct nb_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct nb_row *row = add(kind, owner, &fields[i], fields[i].name, fields[i].about);

		row->type = fields[i].type ? fields[i].type : NB_COUNT;
		row->unit = fields[i].unit;
		row->per = kind == NB_ROW_PROOF ? NB_PER_STREAM : fields[i].per;
		row->flags = fields[i].flags;
		row->minimum = fields[i].minimum;
		row->maximum = fields[i].maximum ? fields[i].maximum : UINT64_MAX;
		snprintf(row->words, sizeof(row->words), "%s",
			 fields[i].words ? fields[i].words : "");
	}
}

static void add_method(uint8_t kind, const struct nb_method *method)
{
	struct nb_row *row = add(kind, NB_NO_ROW, method, method->name, method->about);

	row->flags = method->flags;
	row->minimum = method->buffers;
	row->maximum = method->small_buffers ? method->small_buffers : method->buffers;
	if (method->probe)
		method->probe(row->why, sizeof(row->why));
	add_fields(NB_ROW_OPTION, row->id, method->options, method->options_count);
	add_fields(NB_ROW_PROOF, row->id, method->proofs, method->proofs_count);
}

static void add_meter(const struct nb_meter *meter)
{
	struct nb_row *row = add(NB_ROW_METER, NB_NO_ROW, meter, meter->name, meter->about);

	row->flags = meter->flags;
	if (meter->probe)
		meter->probe(row->why, sizeof(row->why));
	add_fields(NB_ROW_COUNTER, row->id, meter->counters, meter->counters_count);
	for (size_t i = 0; meter->explain && i < meter->counters_count; i++)
		meter->explain(i, row[1 + i].why, sizeof(row->why));
}

static void make(void)
{
	add_fields(NB_ROW_OPTION, NB_NO_ROW, nb_job_options, nb_job_options_count);
	add_fields(NB_ROW_READBACK, NB_NO_ROW, nb_readbacks, nb_readbacks_count);
	for (size_t i = 0; nb_send_methods[i]; i++)
		add_method(NB_ROW_SEND, nb_send_methods[i]);
	for (size_t i = 0; nb_receive_methods[i]; i++)
		add_method(NB_ROW_RECEIVE, nb_receive_methods[i]);
	for (size_t i = 0; nb_meters[i]; i++)
		add_meter(nb_meters[i]);
	for (size_t i = 0; nb_ops[i]; i++) {
		struct nb_row *row =
			add(NB_ROW_OP, NB_NO_ROW, nb_ops[i], nb_ops[i]->name, nb_ops[i]->about);

		if (!i) /* arguments are the same for all operations: declared once, by the first */
			add_fields(NB_ROW_OPTION, row->id, nb_op_arguments, nb_op_arguments_count);
	}
}

size_t nb_describe(struct nb_row *rows, size_t room)
{
	pthread_once(&made, make);
	if (rows)
		memcpy(rows, table.rows, (room < table.count ? room : table.count) * sizeof(*rows));
	return table.count;
}

const struct nb_row *nb_row(uint32_t id)
{
	pthread_once(&made, make);
	return id < table.count ? &table.rows[id] : NULL;
}

uint16_t nb_row_of(const void *origin)
{
	pthread_once(&made, make);
	for (size_t i = 0; i < table.count; i++)
		if (table.origin[i] == origin)
			return (uint16_t)i;
	return NB_NO_ROW;
}

const struct nb_field *nb_row_field(uint32_t id, const struct nb_field *fields, size_t count)
{
	const struct nb_row *row = nb_row(id);

	for (size_t i = 0; row && i < count; i++)
		if (table.origin[id] == &fields[i])
			return &fields[i];
	return NULL;
}

size_t nb_row_method_option(uint16_t id)
{
	const struct nb_row *row = nb_row(id), *owner = row ? nb_row(row->owner) : NULL;

	if (!row || !owner || row->kind != NB_ROW_OPTION ||
	    (owner->kind != NB_ROW_SEND && owner->kind != NB_ROW_RECEIVE))
		return SIZE_MAX;
	return (size_t)(id - owner->id - 1); /* a method's options follow its row */
}
