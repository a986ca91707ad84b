/* SPDX-License-Identifier: MIT */
#include "readback.h"

#include "job.h"
#include "tool.h"

const struct nb_field nb_readbacks[] = {
	[NB_READBACK_PORT] = { .name = "port", .about = "the port that the receiver listens on" },
	[NB_READBACK_SEND_BUFFER] = { .name = "send_buffer",
				      .about = "SO_SNDBUF as the kernel has it",
				      .unit = NB_UNIT_BYTES,
				      .type = NB_SIZE },
	[NB_READBACK_RECEIVE_BUFFER] = { .name = "receive_buffer",
					 .about = "SO_RCVBUF as the kernel has it",
					 .unit = NB_UNIT_BYTES,
					 .type = NB_SIZE },
	[NB_READBACK_CONGESTION] = { .name = "congestion",
				     .about = "congestion control as the kernel has it",
				     .type = NB_TEXT,
				     .maximum = sizeof(((struct nb_job *)0)->congestion) },
	[NB_READBACK_RESIDENT] = { .name = "resident",
				   .about = "bytes of the source in the page cache before the run",
				   .unit = NB_UNIT_BYTES,
				   .type = NB_SIZE },
	[NB_READBACK_SOURCE_SIZE] = { .name = "source_size",
				      .about = "bytes in the source",
				      .unit = NB_UNIT_BYTES,
				      .type = NB_SIZE },
	[NB_READBACK_REJECTED] = { .name = "rejected_connections",
				   .about = "connections to the data port that did not send the "
					    "right token" },
	[NB_READBACK_LOST] = { .name = "samples_lost",
			       .about = "samples for which there was no room" },
	[NB_READBACK_SILENCE] = { .name = "silence",
				  .about = "the longest time in which the controller sent nothing",
				  .unit = NB_UNIT_NS,
				  .type = NB_TIME },
	[NB_READBACK_DIGEST] = { .name = "digest",
				 .about = "FNV-1a of what was sent or arrived",
				 .per = NB_PER_STREAM },
	[NB_READBACK_SINK_DEVICE] = { .name = "sink_device",
				      .about = "device of the file that is written",
				      .per = NB_PER_STREAM },
	[NB_READBACK_SINK_INODE] = { .name = "sink_inode",
				     .about = "inode of the file that is written",
				     .per = NB_PER_STREAM },
	[NB_READBACK_STATUS] = { .name = "tool_status",
				 .about =
					 "exit status of the tool, 128 + signal if it was killed" },
	[NB_READBACK_OUTPUT] = { .name = "tool_output",
				 .about = "what the tool printed",
				 .type = NB_TEXT,
				 .maximum = NB_TOOL_OUTPUT },
	[NB_READBACK_ERRORS] = { .name = "tool_errors",
				 .about = "what the tool printed as errors",
				 .type = NB_TEXT,
				 .maximum = NB_TOOL_ERRORS },
};
const size_t nb_readbacks_count = NB_LENGTH(nb_readbacks);
