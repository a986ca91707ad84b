/* SPDX-License-Identifier: MIT */
/* A job: what one run is to do, decoded from values by the table of options. */
#ifndef NB_JOB_H
#define NB_JOB_H

#include "fail.h"
#include "netbench.h"

enum { NB_METHOD_OPTIONS = 12, NB_METERS_MAX = 16, NB_CPUS_MAX = 1024 };
enum { NB_THREADS_MAX = 1024, NB_SINKS_MAX = 1024 };
enum { NB_SIZES_MAX = 16 };

enum nb_role { NB_ROLE_SEND, NB_ROLE_RECEIVE, NB_ROLE_TOOL, NB_ROLE_OBSERVE };
enum nb_source_kind { NB_SOURCE_MEMORY, NB_SOURCE_ZERO, NB_SOURCE_FILE, NB_SOURCE_FILES };
enum nb_sink_kind { NB_SINK_DISCARD, NB_SINK_FILE };
enum nb_cache { NB_CACHE_WARM, NB_CACHE_COLD };
enum nb_fsync { NB_FSYNC_NONE, NB_FSYNC_WINDOW, NB_FSYNC_AFTER };

struct nb_method;

/* CPUs in the order in which threads take them; the field of an option that is a list. */
struct nb_cpus {
	uint64_t count;
	uint64_t each[NB_CPUS_MAX];
};

static inline int nb_cpus_have(const struct nb_cpus *cpus, uint64_t cpu)
{
	for (uint64_t i = 0; i < cpus->count; i++)
		if (cpus->each[i] == cpu)
			return 1;
	return 0;
}

struct nb_job {
	uint64_t role;
	const struct nb_method *method;
	char method_name[32];
	char address[64];
	char local_address[64];
	char peer_address[64]; /* "": connections come from any */
	uint64_t port;	       /* to connect to */
	uint64_t port_low;     /* to listen on */
	uint64_t port_high;
	char token[NB_TOKEN_BYTES];
	uint64_t streams;
	uint64_t threads; /* that serve them; 0: one each, or one a CPU of `cpus` */
	uint64_t chunk;	  /* bytes a call; 0: a whole file */
	uint64_t align;
	uint64_t preamble;
	uint64_t socket_buffer; /* 0: the kernel's own */
	char congestion[16];	/* "": the kernel's own */
	uint64_t congestion_or_default;
	uint64_t rate;		  /* bits/s of this side, 0: no limit */
	struct nb_cpus cpus;	  /* to pin flows to */
	struct nb_cpus peer_cpus; /* the other side's on the same kernel */
	uint64_t bytes;		  /* 0: bounded by duration */
	uint64_t duration;
	uint64_t warmup;
	uint64_t sample;
	uint64_t report; /* how often samples are sent while the window is open; 0: after it */
	uint64_t source;
	char source_path[4096];
	uint64_t source_files;
	uint64_t source_size;
	uint64_t cache;
	uint64_t direct; /* files past the page cache */
	uint64_t sink;
	char sink_path[4096];
	uint64_t overwrite;
	char sink_files[NB_SINKS_MAX * 42]; /* of earlier runs, a stream's as DEVICE:INODE,
						 separated by NUL */
	uint64_t fsync;			    /* enum nb_fsync: when the sink is forced to its disk */
	uint64_t verify;
	char meters[256];	    /* names separated by NUL */
	char interface[32];	    /* of the data address; "": not known */
	uint64_t without_host_wide; /* another worker reads what is of the whole kernel */
	uint64_t footprint;	    /* bytes that each soaker goes through */
	char argv[16384];	    /* of a tool, separated by NUL */
	uint64_t await_port;	    /* a tool is ready once it listens there; 0: not asked */
	uint64_t ask;		    /* only whether it would be refused */
	uint64_t marks;		    /* a tool's window is opened and closed by NB_MARK */
	uint64_t seed;
	uint64_t requests[NB_SIZES_MAX + 1]; /* how many, and sizes as nb_size_of() takes them */
	uint64_t responses[NB_SIZES_MAX + 1];
	uint64_t extra[NB_METHOD_OPTIONS]; /* the method's own options */
};

extern const struct nb_field nb_job_options[];
extern const size_t nb_job_options_count;

/* Decode the values of a job. Everything is checked against its row's type and bounds. 0, or a
 * negative code with the error filled. */
int nb_job_decode(struct nb_job *job, const unsigned char *payload, size_t length,
		  struct nb_error *error);

#endif
