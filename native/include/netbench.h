/* SPDX-License-Identifier: MIT */
/*
 * netbench's native engine: the C API and the frames between controller and worker.
 *
 * One definition for both sides: C includes this file, cffi reads it preprocessed with NB_CDEF. So
 * constants are enums, structs are explicit (no implicit padding, fixed widths), and nothing here
 * depends on a method, a meter or an option by name: those are described by rows (struct nb_row)
 * that the worker's hello carries.
 *
 * Wire: every frame is struct nb_frame followed by `length` bytes. Jobs and operations are
 * sequences of struct nb_value, results and samples sequences of struct nb_vector. All numbers are
 * in the worker's byte order; the hello says which.
 */
#ifndef NETBENCH_H
#define NETBENCH_H

#ifndef NB_CDEF
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#endif

enum {
	NB_PROTOCOL = 3,       /* version of this file's frames */
	NB_MAGIC = 0x4e42454e, /* "NBEN" in a little-endian worker's hello */
	NB_BYTE_ORDER = 0x01020304,
	NB_FRAME_MAX = 4 * 1024 * 1024, /* longest payload either side accepts */
	NB_NO_ROW = 0xffff,
	NB_STREAMS_MAX = 10000,
	NB_TOKEN_BYTES = 16,
	NB_SAMPLES_MAX = 100000,	    /* of a run */
	NB_SAMPLES_BYTES = 8 * 1024 * 1024, /* of the numbers in them */
	NB_SMALL_BUFFERS = 8 << 20,	    /* bytes: a stream has more buffers where they fit in */
	NB_HEARTBEAT_SECONDS = 3,	    /* an idle side sends NB_HEARTBEAT this often */
	NB_SILENCE_SECONDS = 10, /* after so long without a frame the other side counts as lost */
};

enum nb_frame_type {
	NB_HELLO = 1, /* both ways: struct nb_hello, from the worker followed by its rows */
	NB_JOB,	      /* values: one run (or tool, or observation) to prepare */
	NB_READY,     /* vectors: read-backs, for a receiver its port */
	NB_GO,	      /* start moving data */
	NB_MARK,      /* u64 per stream: open the measured window once so many bytes have arrived; a
			 tool: open or close it now */
	NB_EDGE,  /* u32 enum nb_edge, u32 0: that edge has been passed; NB_EDGE_WARM: and u64 bytes
		     of each stream */
	NB_STOP,  /* stop moving data, drain, send the result */
	NB_ABORT, /* give the run up; answered by NB_ERROR with code NB_ERR_ABORTED */
	NB_RESULT,    /* vectors: everything that was counted */
	NB_SAMPLES,   /* vectors: interval samples, before NB_RESULT, in as many frames as it takes;
			 with the option `report` also while the window is open */
	NB_ERROR,     /* struct nb_error; the worker is idle again */
	NB_HEARTBEAT, /* nothing: I am alive */
	NB_OP,	      /* values: read or change something of the host */
	NB_OP_DONE,   /* vectors: what was read before and after */
	NB_UNDO,   /* nothing, or u32 little-endian scope: put back what is held in it and above, in
		      reverse */
	NB_UNDONE, /* nothing */
	NB_BYE,	   /* nothing: undo everything, exit. From the worker, text: it does so
		      by itself, for that reason */
	NB_PRINTED, /* nothing: wait until a tool has printed more; answered once, by that text */
	NB_FRAME_TYPES
};

/* What a process does for its controller. Operations that only read are for both. */
enum nb_duty {
	NB_MOVER = 1, /* jobs: data, sources, sinks, tools, meters of the process */
	NB_HELPER,    /* operations that change the host */
};

enum nb_edge {
	NB_EDGE_OPEN = 0,    /* the measured window opens */
	NB_EDGE_CLOSE = 1,   /* it closes */
	NB_EDGE_DRAINED = 2, /* everything sent has arrived or been given up */
	NB_EDGE_WARM = 3,    /* warm-up done and acknowledged (bytes-bounded runs) */
};

enum nb_row_kind {
	NB_ROW_SEND = 1, /* a send method */
	NB_ROW_RECEIVE,	 /* a receive method */
	NB_ROW_METER,	 /* a group of counters read at both edges */
	NB_ROW_OP,	 /* an operation on the host */
	NB_ROW_OPTION,	 /* something a job or an operation can carry; owner: a method, or none for
			    every run */
	NB_ROW_COUNTER,	 /* a number read at an edge; owner: a meter */
	NB_ROW_PROOF,	 /* a number that shows what the mechanism did; owner: a method */
	NB_ROW_READBACK, /* something a run read back while it was prepared */
};

enum nb_type { NB_COUNT = 1, NB_SIZE, NB_TIME, NB_RATE, NB_FLAG, NB_WORD, NB_TEXT };

enum nb_unit {
	NB_UNIT_NONE = 0,
	NB_UNIT_BYTES,
	NB_UNIT_NS,
	NB_UNIT_US,
	NB_UNIT_TICKS, /* 1 / struct nb_hello.clock_ticks of a second */
	NB_UNIT_CALLS,
	NB_UNIT_PACKETS,
	NB_UNIT_BITS_PER_SECOND,
};

enum nb_per {
	NB_PER_RUN = 0,
	NB_PER_STREAM,
	NB_PER_CPU,
	NB_PER_BUCKET, /* count, sum and most; then buckets that hold some, each with how many */
};

enum nb_flags {
	/* methods */
	NB_DELIVERS = 1 << 0,	 /* receive: bytes reach user space or the sink; send: real bytes of
				    the source leave */
	NB_NO_DATA = 1 << 1,	 /* moves nothing: pairs only with its like, has no throughput */
	NB_FROM_MEMORY = 1 << 2, /* sources it can take from */
	NB_FROM_ZERO = 1 << 3,
	NB_FROM_FILE = 1 << 4,
	NB_WHOLE_FILE = 1 << 5, /* `chunk: file` makes one call a file */
	NB_TO_DISCARD = 1 << 6, /* sinks it can fill */
	NB_TO_FILE = 1 << 7,
	/* meters */
	NB_ALWAYS = 1 << 8,    /* read in every run, asked for or not */
	NB_HOST_WIDE = 1 << 9, /* counts the whole kernel, not this process */
	NB_SAMPLED = 1 << 10,  /* also read at every sample */
	NB_GAUGE = 1 << 11,    /* counter: a level at an instant; differences mean nothing */
	NB_SLICED = 1 << 20,   /* also read at every sample of a job that only observes */
	/* options */
	NB_USER = 1 << 12,     /* a key of the campaign's `transfer:` */
	NB_LIST = 1 << 13,     /* text: items separated by NUL; a number: given once for each */
	NB_CPU_TIME = 1 << 14, /* counter: adds to the CPU time that its meter accounts */
	/* proofs */
	NB_MUST_MOVE = 1 << 15,	    /* a run in which it stays 0 did not engage its mechanism */
	NB_MUST_NOT_MOVE = 1 << 16, /* a run in which it moves did not fully engage its mechanism */
	/* methods */
	NB_ALONE = 1 << 17,	  /* its steps wait: each stream has a thread of its own */
	NB_THREAD_EACH = 1 << 26, /* likewise where a number of threads is not asked for */
	NB_FETCHES = 1 << 18, /* bytes come by a way of the kernels' own, not over the connection:
				goes with its namesake */
	NB_BUFFERS = 1 << 19, /* each stream has a buffer of a chunk in user space */
	NB_DIRECT = 1 << 24, /* reads a source, or writes a sink, by calls with a buffer of its own:
				the file may be open with O_DIRECT */
	/* meters */
	NB_BY_HELPER = 1 << 21,	   /* where it needs root, a helper opens its files */
	NB_WITHOUT_SOAK = 1 << 22, /* a soaker on every CPU would change what it counts */
	NB_IDLE_TIME = 1 << 25,	   /* counter: time in which CPUs of its meter did not work */
	/* methods */
	NB_REQUESTS = 1 << 27, /* its steps are transactions: goes with its namesake */
};

enum nb_code {
	NB_OK = 0,
	NB_ERR_REQUEST,	    /* the job or operation is wrong */
	NB_ERR_UNSUPPORTED, /* not possible on this host */
	NB_ERR_SYSTEM,	    /* a system call failed: see errno */
	NB_ERR_PEER,	    /* the other side closed or did not connect */
	NB_ERR_PROTOCOL,    /* a frame was malformed, too long or out of order */
	NB_ERR_ABORTED,	    /* aborted by the controller */
	NB_ERR_MEMORY,
};

struct nb_frame {
	uint32_t length; /* of what follows this header */
	uint16_t type;	 /* enum nb_frame_type */
	uint16_t tag;	 /* of a request, repeated in its answer */
};

struct nb_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t byte_order;
	uint32_t rows;	 /* number of struct nb_row that follow; 0 from the controller */
	uint64_t layout; /* hash of this file as it was compiled */
	uint32_t pid;
	uint32_t clock_ticks; /* per second, of NB_UNIT_TICKS */
	uint32_t cpus;	      /* configured: the length of NB_PER_CPU vectors */
	uint32_t page_size;
	uint32_t user;	       /* id that it runs as */
	uint32_t tick_rate;    /* of the kernel, a second (CONFIG_HZ) */
	uint64_t network;      /* its network namespace: the cookie, or the inode */
	char architecture[32]; /* uname -m */
	char kernel[96];       /* uname -r */
	char boot_id[48];
	char machine[48]; /* machine-id(5), or "" */
	char engine[32];  /* version of the engine's code */
};

struct nb_row {
	uint16_t id;	/* its place in the table; what values and vectors name */
	uint16_t owner; /* id of the method, meter or operation that it belongs to, or NB_NO_ROW */
	uint8_t kind;	/* enum nb_row_kind */
	uint8_t type;	/* enum nb_type */
	uint8_t unit;	/* enum nb_unit */
	uint8_t per;	/* enum nb_per */
	uint32_t flags; /* enum nb_flags */
	uint32_t reserved;
	uint64_t minimum; /* of an option; of a method: how many buffers of a chunk each stream has
			     unless queue_depth says it, 0: one */
	uint64_t maximum; /* of an option; of a method: how many where all fit in NB_SMALL_BUFFERS
			   */
	char name[32];
	char about[200];
	char words[64]; /* NB_WORD: the allowed words, separated by spaces */
	char why[200];	/* why it cannot be used on this host, or "" */
};

struct nb_value {
	uint32_t row;
	uint32_t bytes; /* of text that follows, with a NUL or more padded to 8; 0 for numbers */
	uint64_t number;
};

struct nb_vector {
	uint32_t row;
	uint16_t edge;	/* enum nb_edge; for samples 0 */
	uint16_t text;	/* 1: `bytes` of text, padded to 8; 0: `count` u64 */
	uint32_t count; /* of numbers */
	uint32_t bytes; /* of text */
	uint64_t ns;	/* CLOCK_MONOTONIC when it was read */
};

struct nb_error {
	uint32_t code;	/* enum nb_code */
	uint32_t error; /* errno, or 0 */
	char operation[64];
	char message[256];
	char remedy[256];
};

/* Serve one controller on a pair of descriptors until it sends GOODBYE, disconnects, is silent
 * for too long, or the process gets SIGTERM, SIGHUP or SIGINT. `user`: whom root becomes first, or
 * "": nobody else. A flow may hang in the kernel afterwards: leave the process by _exit(2). Returns
 * an enum nb_code. */
int nb_serve(int in, int out, enum nb_duty duty, const char *user);

/* Fill up to `room` rows with everything this library offers on this host; returns how many there
 * are. Sources: each method's and meter's file. */
size_t nb_describe(struct nb_row *rows, size_t room);

/* Fill a hello for this library and host. */
void nb_fill_hello(struct nb_hello *hello);

#endif
