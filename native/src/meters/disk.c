/* SPDX-License-Identifier: MIT */
/* What a sender's process made the kernel read from storage for a source of files: getrusage(2),
 * ru_inblock, which is read_bytes of /proc/PID/io in units of 512 bytes. Data that the page cache
 * held is not in it. */
#include <sys/resource.h>

#include "../meter.h"
#include "../method.h"

enum { SECTOR = 512 };

static const struct nb_field counters[] = {
	{ "read_bytes", "bytes read from storage, not from the page cache (ru_inblock)",
	  .unit = NB_UNIT_BYTES },
};

/* Where the kernel's NFS server reads the file, this process reads nothing. */
static int reads_files(const struct nb_reading *reading)
{
	const struct nb_flow *flow = reading->streams ? reading->flows : NULL;

	return flow && flow->job->role == NB_ROLE_SEND && !(flow->method->flags & NB_FETCHES) &&
	       (flow->job->source == NB_SOURCE_FILE || flow->job->source == NB_SOURCE_FILES);
}

static void read_disk(struct nb_reading *reading, uint64_t *numbers)
{
	struct rusage usage;

	*numbers = NB_MISSING;
	if (reads_files(reading) && !getrusage(RUSAGE_SELF, &usage))
		*numbers = (uint64_t)usage.ru_inblock * SECTOR;
}

const struct nb_meter nb_meter_disk = {
	.name = "disk",
	.about = "what the sender's process read from storage, of a source of files",
	.flags = NB_ALWAYS,
	NB_TABLE(counters),
	.read = read_disk,
};
