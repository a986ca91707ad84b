/* SPDX-License-Identifier: MIT */
#include "readback.h"

#include "job.h"
#include "tool.h"

const struct nb_field nb_readbacks[] = {
	[NB_READBACK_PORT] = { "port", "the port that the receiver listens on" },
	[NB_READBACK_SEND_BUFFER] = { "send_buffer", "SO_SNDBUF as the kernel has it",
				      .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_RECEIVE_BUFFER] = { "receive_buffer", "SO_RCVBUF as the kernel has it",
					 .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_CONGESTION] = { "congestion", "congestion control as the kernel has it",
				     .type = NB_TEXT,
				     .maximum = sizeof(((struct nb_job *)0)->congestion) },
	[NB_READBACK_RESIDENT] = { "resident",
				   "bytes of the source in the page cache before the run",
				   .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_SOURCE_SIZE] = { "source_size", "bytes in the source", .unit = NB_UNIT_BYTES,
				      .type = NB_SIZE },
	[NB_READBACK_RESIDENT_AFTER] = { "resident_after",
					 "bytes of the source in the page cache after "
					 "the run",
					 .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_SINK_RESIDENT] = { "sink_resident",
					"bytes of the sink in the page cache, before "
					"and after the run",
					.unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_SINK_DIRTY] = { "sink_dirty",
				     "bytes of them that were not on the disk yet "
				     "(cachestat(2), Linux 6.5)",
				     .unit = NB_UNIT_BYTES, .type = NB_SIZE },
	[NB_READBACK_FSYNC] = { "fsync_ns",
				"from the first fsync(2) of a sink to the end of the last",
				.unit = NB_UNIT_NS, .type = NB_TIME },
	[NB_READBACK_REJECTED] = { "rejected_connections",
				   "connections to the data port that did not send the "
				   "right token" },
	[NB_READBACK_LOST] = { "samples_lost", "samples for which there was no room" },
	[NB_READBACK_SILENCE] = { "silence",
				  "the longest time in which the controller sent nothing",
				  .unit = NB_UNIT_NS, .type = NB_TIME },
	[NB_READBACK_DIGEST] = { "digest", "FNV-1a of what was sent or arrived",
				 .per = NB_PER_STREAM },
	[NB_READBACK_SINK_DEVICE] = { "sink_device", "device of the file that is written",
				      .per = NB_PER_STREAM },
	[NB_READBACK_SINK_INODE] = { "sink_inode", "inode of the file that is written",
				     .per = NB_PER_STREAM },
	[NB_READBACK_STATUS] = { "tool_status",
				 "exit status of the tool, 128 + signal if it was killed" },
	[NB_READBACK_OUTPUT] = { "tool_output", "what the tool printed", .type = NB_TEXT,
				 .maximum = NB_TOOL_OUTPUT },
	[NB_READBACK_ERRORS] = { "tool_errors", "what the tool printed as errors", .type = NB_TEXT,
				 .maximum = NB_TOOL_ERRORS },
};
const size_t nb_readbacks_count = NB_LENGTH(nb_readbacks);
