/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../clock.h"
#include "../proc_text.h"
#include "../wire.h"
#include "around.h"

struct nb_undo_entry {
	struct nb_undo_entry *before;
	const struct nb_op *op;
	struct nb_target target; /* its words are this entry's */
	struct nb_target look;	 /* likewise, of a program */
	char *value;		 /* that `get`, or `look`, read before the change */
	char *after;		 /* of what is held beside a change: what it read after that */
	int armed;		 /* `value` is what of it the change has moved, or its undo may */
	uint32_t scope;
	unsigned int index;	/* of the interface that it is of, or 0 */
	struct nb_error failed; /* why it could not be undone */
	size_t number;		/* of the entries up to this one, */
	size_t bytes;		/* and of their texts */
};

static void free_entry(struct nb_undo_entry *entry)
{
	if (!entry)
		return;
	free((char *)entry->target.words);
	free((char *)entry->look.words);
	free(entry->value);
	free(entry->after);
	free(entry);
}

/* Longer than a helper that lives may hear nothing before it undoes, too; half of it for a new one
 * to come in the place of one that is dead. */
enum { TURN_TRIES = (NB_SILENCE_SECONDS + 2) * 100 };

int nb_undo_push(struct nb_undo_entry **stack, uint32_t scope, const struct nb_op *op,
		 const struct nb_target *target, const struct nb_target *look, const char *value,
		 struct nb_error *error)
{
	size_t number = (*stack ? (*stack)->number : 0) + 1;
	size_t bytes = (*stack ? (*stack)->bytes : 0) + target->length + strlen(value);
	struct nb_undo_entry *entry;

	if (number > NB_UNDO_ENTRIES || bytes > NB_UNDO_BYTES)
		return nb_fail(
			error, NB_ERR_REQUEST, "operation",
			"set less at a time: fewer settings, or ones that read shorter texts",
			"the helper would hold %zu changes (%zu bytes) for undo, and keeps "
			"%d (%d bytes) at most",
			number, bytes, NB_UNDO_ENTRIES, NB_UNDO_BYTES);
	if (nb_note_held(scope, error))
		return -(int)error->code;
	entry = calloc(1, sizeof(*entry));
	if (entry) {
		entry->op = op;
		entry->scope = scope;
		entry->number = number;
		entry->bytes = bytes;
		entry->target = (struct nb_target){ nb_text_copy(target->words, target->length),
						    target->length };
		if (look->words)
			entry->look = (struct nb_target){ nb_text_copy(look->words, look->length),
							  look->length };
		entry->value = nb_text_copy(value, strlen(value));
		entry->index = op->words && !op->keep ? nb_link_index(target->words) : 0;
		entry->before = *stack;
	}
	if (entry && entry->target.words && entry->value && !entry->look.words == !look->words) {
		*stack = entry;
		return 0;
	}
	free_entry(entry);
	return nb_fail_memory(error, "what was read");
}

void nb_undo_release(struct nb_undo_entry **stack)
{
	struct nb_undo_entry *entry = *stack;

	*stack = entry->before;
	nb_note_undone(entry->scope, 0);
	free_entry(entry);
}

int nb_undo_check_scope(const struct nb_undo_entry *top, uint32_t scope, struct nb_error *error)
{
	if (!top || top->scope <= scope)
		return 0;
	return nb_fail(error, NB_ERR_REQUEST, "operation", "undo the scopes above it first",
		       "operations nest: scope %u is asked for while scope %u is held", scope,
		       top->scope);
}

static int shown(const char *line)
{
	size_t length = strcspn(line, "\n");

	return length < 70 ? (int)length : 70;
}

static int fail_difference(const struct nb_undo_entry *entry, const char *now,
			   struct nb_error *error)
{
	size_t at = nb_text_differs(now, entry->value);
	const char *reads = now + at, *was = entry->value + at;
	const char *key = nb_target_word(&entry->target, 1);

	return nb_fail(error, NB_ERR_SYSTEM, "undo",
		       entry->op->words ? "another program has changed it since: restore it by hand"
					: "what undoes it leaves it changed: put it back by hand, "
					  "then `restore` sees that",
		       "%s %.60s%s%.20s reads '%.*s' after the undo, but was '%.*s'",
		       entry->op->name, entry->target.words, *key ? " " : "", key, shown(reads),
		       reads, shown(was), was);
}

/* Of a text whose lines each need permission those that have it, for free(); a line of a section is
 * asked for below its header. */
static char *permitted_lines(const struct nb_undo_entry *entry, const struct nb_client *client)
{
	const char *header = "", *line = entry->value;
	struct nb_op_request request = { .op = entry->op, .target = entry->target, .hold = 1 };
	struct nb_error ignored;
	char *permitted = NULL, *value;
	size_t room;
	FILE *text = open_memstream(&permitted, &room);

	for (; text && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		int length = (int)strcspn(line, "\n");

		header = *line == ' ' ? header : line;
		if (asprintf(&value, "%.*s\n%.*s\n", (int)strcspn(header, "\n"), header,
			     *line == ' ' ? length : 0, line) < 0)
			break;
		request.value = value;
		if (!client->permit(client, &request, &ignored))
			fprintf(text, "%.*s\n", length, line);
		free(value);
	}
	if (text)
		fclose(text);
	return permitted;
}

/* The lines of a text that are the same in two others, or differ there, for free(); NULL: no
 * memory, or no text. */
static char *lines(const struct nb_op *op, const char *text, const char *one, const char *other,
		   int same)
{
	char *kept = NULL;
	size_t length;
	FILE *stream = text && one && other ? open_memstream(&kept, &length) : NULL;

	if (stream) {
		op->keep(text, one, other, same, stream);
		if (!fclose(stream))
			return kept;
		free(kept);
	}
	return NULL;
}

static int write_back(const struct nb_undo_entry *entry, const struct nb_client *client,
		      struct nb_error *error)
{
	struct nb_op_request whole = {
		.op = entry->op, .target = entry->target, .value = entry->value, .hold = 1
	};
	struct nb_error ignored;
	char *permitted, *refused, *now;
	int status;

	if (!entry->op->lines || !client || !client->permit ||
	    !client->permit(client, &whole, &ignored))
		return nb_op_restore(entry->op, &entry->target, entry->value, error);
	permitted = permitted_lines(entry, client);
	status = permitted ? nb_op_restore(entry->op, &entry->target, permitted, error)
			   : nb_fail_memory(error, "what may be written");
	free(permitted);
	if (status || !entry->op->keep)
		return status;
	now = nb_op_read(entry->op, &entry->target, NULL);
	whole.value = refused = lines(entry->op, entry->value, entry->value, now, 0);
	status = refused ? client->permit(client, &whole, error) : 0;
	free(refused);
	free(now);
	return status;
}

/* `was` and `now`: what it read before, where that differs, and what it reads, both for free(). */
static int restore(const struct nb_undo_entry *entry, const struct nb_client *client, char **was,
		   char **now, struct nb_error *error)
{
	const struct nb_op *op = entry->op;

	if (op->keep)
		return entry->armed ? write_back(entry, client, error) : 0;
	*was = nb_op_read(op, &entry->target, NULL);
	if (*was && !strcmp(*was, entry->value)) {
		*now = *was;
		*was = NULL;
		return 0;
	}
	if (write_back(entry, client, error) || !(*now = nb_op_read(op, &entry->target, error)))
		return -(int)error->code;
	return strcmp(*now, entry->value) != 0 ? fail_difference(entry, *now, error) : 0;
}

static int undo_one(const struct nb_undo_entry *entry, const struct nb_client *client,
		    struct nb_error *error)
{
	struct nb_deed deed = { .verb = "undo", .op = entry->op, .target = &entry->target };
	char *was = NULL, *now = NULL;
	int status;

	if (entry->op->words) {
		status = restore(entry, client, &was, &now, error);
	} else {
		now = nb_op_read(entry->op, &entry->target, error);
		if (now && entry->look.words) {
			free(now);
			now = nb_op_read(entry->op, &entry->look, error);
		}
		status = !now ? -(int)error->code : 0;
		if (now && entry->look.words && strcmp(now, entry->value) != 0)
			status = fail_difference(entry, now, error);
	}
	deed.before = was;
	deed.after = entry->op->set && !status ? now : NULL;
	deed.error = status ? error : NULL;
	nb_audit(client, &deed);
	free(was);
	free(now);
	return status;
}

static void add_count(struct nb_error *error, size_t others)
{
	char last[192];

	snprintf(last, sizeof(last), "%.191s", error->message);
	snprintf(error->message, sizeof(error->message), "%s; %zu more could not be restored", last,
		 others);
}

static int is_beside(const struct nb_undo_entry *entry)
{
	return entry && entry->op->keep;
}

void nb_undo_note(struct nb_undo_entry *top, int is_after)
{
	struct nb_undo_entry *beside = top ? top->before : NULL;
	char **noted = beside && is_after ? &beside->after : beside ? &beside->value : NULL;
	char *now = is_beside(beside) ? nb_op_read(beside->op, &beside->target, NULL) : NULL;

	if (now) {
		free(*noted);
		*noted = now;
	} else if (is_beside(beside)) {
		beside->value[0] = 0; /* what it was is not known */
	}
}

static void take(char **text, char *other)
{
	if (!other)
		return;
	free(*text);
	*text = other;
}

/* Before a change is undone: of what is held beside it, leave what others have changed since. What
 * the change reads, for free(), where more than what is known to move with it is held. */
static char *arm(const struct nb_undo_entry *entry)
{
	struct nb_undo_entry *beside = entry->before;
	char *now, *kept;

	if (!is_beside(beside) || !beside->after || beside->armed)
		return NULL;
	now = nb_op_read(beside->op, &beside->target, NULL);
	kept = lines(beside->op, beside->value, beside->after, now, 1);
	free(now);
	take(&beside->value, kept);
	beside->armed = kept != NULL;
	return kept && entry->op->words && strcmp(beside->target.words, "only") != 0
		       ? nb_op_read(entry->op, &entry->target, NULL)
		       : NULL;
}

/* What differs after a change was undone is the kernel's doing, or somebody changed it meanwhile.
 * So it is put back, and the change made and undone again: what moves as before is the kernel's,
 * and alone is left to put back; what does not is given what it had. Returns `failed`, or what
 * this undo has. */
static int repeat(struct nb_undo_entry *entry, const char *changed, int failed,
		  const struct nb_client *client)
{
	struct nb_deed deed = { "set", entry->value, changed, entry->op, &entry->target, NULL };
	struct nb_undo_entry *beside = entry->before, part = *beside;
	char *first = nb_op_read(part.op, &part.target, NULL), *again = NULL;
	char *moved = lines(part.op, part.value, part.value, first, 0);
	struct nb_error ignored;
	int redone;

	take(&beside->value, moved);
	if (moved && *moved) {
		part.value = moved;
		write_back(&part, client, &ignored);
		redone = !nb_op_restore(entry->op, &entry->target, changed, &ignored);
		deed.error = redone ? NULL : &ignored;
		nb_audit(client, &deed);
		nb_heartbeat();
		failed = undo_one(entry, client, &entry->failed);
		again = redone ? nb_op_read(part.op, &part.target, NULL) : NULL;
		part.value = lines(part.op, first, moved, again, 1);
		if (part.value)
			write_back(&part, client, &ignored);
		free(part.value);
		take(&beside->value, lines(part.op, moved, first, again, 1));
	}
	free(first);
	free(again);
	return failed;
}

/* Whether what failed reads as it did by now: what was undone below it may have put it back. It is
 * not written: what it read before lay above that, and may be in its way. 0, or a negative code. */
static int look_again(const struct nb_undo_entry *entry)
{
	const struct nb_op *op = entry->op;
	char *now = nb_op_read(op, &entry->target, NULL);
	char *differs = op->keep ? lines(op, entry->value, entry->value, now, 0) : NULL;
	int same = differs ? !*differs : now && !strcmp(now, entry->value);

	free(now);
	free(differs);
	return same ? 0 : -(int)entry->failed.code;
}

/* Give its target the name that its interface has by now: 0; 1: that has gone; <0: not known. */
static int follow(struct nb_undo_entry *entry, struct nb_error *error)
{
	int gone, length, more = nb_target_word(&entry->target, 1)[0];
	char of[PATH_MAX], *words;

	gone = nb_link_follow(entry->index, entry->target.words, of);
	if (gone < 0)
		return nb_fail_errno(error, "undo", "run `netbench restore`", "the interface of %s",
				     entry->target.words);
	if (gone || !entry->index || !strcmp(of, entry->target.words))
		return gone;
	length = asprintf(&words, "%s%c%s", of, 0, nb_target_word(&entry->target, 1));
	if (length < 0)
		return nb_fail_memory(error, "a name");
	free((char *)entry->target.words);
	entry->target = (struct nb_target){ words, more ? (size_t)length : strlen(of) };
	return 0;
}

int nb_undo(struct nb_undo_entry **stack, uint32_t scope, const struct nb_client *client,
	    struct nb_error *error)
{
	struct nb_undo_entry *entry, *again = NULL, **last = &again;
	int tries = scope ? 0 : TURN_TRIES, gone, status, code = 0;
	size_t failures = 0;
	char *changed;

	for (entry = scope ? NULL : *stack; entry; entry = entry->before)
		nb_note_leaving(entry->scope);
	while ((entry = *stack) && entry->scope >= scope) {
		if (!scope && !nb_await_turn(entry->scope, &tries))
			break;
		*stack = entry->before;
		gone = follow(entry, &entry->failed);
		changed = arm(entry);
		status = gone < 0 ? gone : gone ? 0 : undo_one(entry, client, &entry->failed);
		if (changed && !gone)
			status = repeat(entry, changed, status, client);
		free(changed);
		if (status) {
			*last = entry;
			last = &entry->before;
			*last = NULL;
			nb_note_undone(entry->scope, 1); /* nobody is to wait for it */
		} else {
			nb_note_undone(entry->scope, 0);
			free_entry(entry);
		}
		nb_heartbeat();
	}
	while ((entry = again)) {
		again = entry->before;
		status =
			!entry->op->words || follow(entry, &entry->failed) < 0 || look_again(entry);
		nb_note_undone(entry->scope, status);
		if (status) {
			failures++;
			code = -(int)entry->failed.code;
			if (error)
				*error = entry->failed;
		}
		free_entry(entry);
	}
	if (failures > 1 && error)
		add_count(error, failures - 1);
	if (!failures && !scope && *stack)
		code = nb_fail(error, NB_ERR_SYSTEM, "undo", "run `netbench restore`",
			       "what another run has changed since is in the way: its helper has "
			       "ended without undoing it, or does not end");
	return code;
}
