/* SPDX-License-Identifier: MIT */
/* Who asks for operations: the account that started this process, and the campaign; what it may ask
 * for; and what the host's own log tells of it. */
#ifndef NB_CLIENT_H
#define NB_CLIENT_H

#include <sys/types.h>

#include "../wire.h"
#include "op.h"

/* An operation that is asked for, whose texts are another's; numbers as a frame has them. */
struct nb_op_request {
	const char *kind;
	const struct nb_op *op;	 /* of that kind */
	struct nb_target target; /* its words NULL: there is none, as of `undo` */
	struct nb_target undo, look;
	const char *value; /* NULL: only read */
	uint64_t hold;
	uint64_t restore;
	uint64_t ask; /* only whether it is allowed */
	uint64_t scope;
};

struct nb_client {
	char user[64];	   /* that logged in */
	char campaign[64]; /* as it names itself when it locks the host */
	int by_sudo;	   /* a user who is not root started this process by sudo(8) or the like */
	uid_t id;	   /* of that user */
	/* Whether it may ask for this: 0, or a negative code; NULL: for anything. */
	int (*permit)(const struct nb_client *client, const struct nb_op_request *request,
		      struct nb_error *error);
};

/* The client of this process, which becomes one that it cannot disturb where it came by sudo(8): no
 * environment, limits or groups of the user's are left. `in` is what it is heard by. */
void nb_client_begin(struct nb_client *client, int in);

/* The account that the last client is of. */
uid_t nb_client_account(void);

/* A mover has no undo: it takes locks, which end with it, and otherwise only reads. */
int nb_permit_mover(const struct nb_client *client, const struct nb_op_request *request,
		    struct nb_error *error);
/* A helper does what /etc/netbench/allow lists (docs/explanation/safety.md). */
int nb_permit_helper(const struct nb_client *client, const struct nb_op_request *request,
		     struct nb_error *error);

/* What was done to what; what it read before and after, and its error, may each be NULL. */
struct nb_deed {
	const char *verb, *before, *after;
	const struct nb_op *op;
	const struct nb_target *target;
	const struct nb_error *error;
};

/* Write one line to the system's log, or to a file where it has none, without waiting for who reads
 * it; `client` NULL: nobody is to know. */
void nb_audit(const struct nb_client *client, const struct nb_deed *deed);

/* The undo stack: what held operations read before they changed it, undone in reverse. */

enum { NB_UNDO_ENTRIES = 4096, NB_UNDO_BYTES = 16 << 20 };

struct nb_undo_entry;

/* Scopes nest: nothing is held in a scope while one above it holds something. 0, or a negative
 * code. */
int nb_undo_check_scope(const struct nb_undo_entry *top, uint32_t scope, struct nb_error *error);
/* Push what undoes an operation, as a copy: `value` is what its target reads now or, of a program,
 * `look`, which may have no words. Refused where the stack would have more than NB_UNDO_ENTRIES, or
 * texts of more than NB_UNDO_BYTES. */
int nb_undo_push(struct nb_undo_entry **stack, uint32_t scope, const struct nb_op *op,
		 const struct nb_target *target, const struct nb_target *look, const char *value,
		 struct nb_error *error);
/* Note what is held beside the last entry (an operation with `keep`), right before its change is
 * made and right after: when it is undone, what others have changed since is left. */
void nb_undo_note(struct nb_undo_entry *top, int is_after);
/* Pop the last entry without undoing it. */
void nb_undo_release(struct nb_undo_entry **stack);
/* Undo what is held in this scope and those above it, in reverse, and check that it reads as it
 * did. What fails is looked at again once the rest is undone, which may have put it back. Reports
 * the last failure and how many are left. The host's log says for whom (NULL: nobody) it was done.
 * Scope 0 is all of it, without a controller: scopes of other processes that are above are waited
 * for, by their common log. What is below one that stays is left to `restore`, which undoes both in
 * turn: what lies above read what it is to put back. */
int nb_undo(struct nb_undo_entry **stack, uint32_t scope, const struct nb_client *client,
	    struct nb_error *error);

/* Tell the campaign's log, if there is one (`undone`), that this process holds a scope (0, or a
 * negative code where that cannot be), undoes all that it holds, or has undone one, or failed to.
 * What reads it later knows what nobody has undone, where this process is no more. */
int nb_note_held(uint32_t scope, struct nb_error *error);
void nb_note_leaving(uint32_t scope);
void nb_note_undone(uint32_t scope, int failed);
/* Whether another process, which lives, writes into the log that this one has looked into. */
int nb_log_has(pid_t pid);
/* Processes that change one kernel have one stack: wait while others hold a scope above this one.
 * Not for long for one that died, or whose controller is still there: *tries counts down, for all
 * entries together; nor for ever for one that is stopped while it undoes. Whether it is free. */
int nb_await_turn(uint32_t scope, int *tries);

/* The folder of this account's locks, made where it is missing: /run/netbench/locks for root, which
 * no other account can open; for others one of their own in /tmp, since a home may be another
 * host's too, and a login has a folder that a job of cron's has not. A descriptor for close(), or
 * -1 with errno: there is no place that only this account writes. */
int nb_lock_folder(void);
/* A file there: a descriptor, or -1 with errno. */
int nb_lock_open(const char *name, int flags);

/* Lock a byte of a file (F_OFD_SETLK, fcntl_locking(2)): 0, or -1 with errno. */
int nb_lock_byte(int fd, off_t at);
/* Whether one of these bytes is locked, by what else than `fd`; `length` 0: of all that follow; -1
 * with errno. */
int nb_lock_held(int fd, off_t at, off_t length);

/* Decode one NB_OP payload, in which the request's texts stay. 0, or a negative code with the error
 * filled. */
int nb_op_decode(struct nb_op_request *request, const unsigned char *payload, size_t length,
		 struct nb_error *error);

/* Execute one NB_OP payload; where it is to be held, *stack grows. Writes what was read before and
 * after. 0, or a negative code with the error filled: also where the client may not ask for it. */
int nb_op_execute(const unsigned char *payload, size_t length, struct nb_client *client,
		  struct nb_undo_entry **stack, struct nb_writer *answer, struct nb_error *error);

#endif
