/* SPDX-License-Identifier: MIT */
#include "nic_question.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 48, WORDS = 64 };

/* One of all answers is told: rather that an interface was accepted than another reason (EPERM),
 * and either rather than that it cannot be done there. */
struct answer {
	int error;
	char name[IFNAMSIZ];
	char words[WORDS];
};

static int rank(const struct nb_nic_question *question, int error)
{
	return error == question->accepted ? 3 : error && error != EOPNOTSUPP ? 2 : error ? 1 : 0;
}

static void add_name(char *names, const char *name)
{
	size_t used = strlen(names);

	if (used + strlen(name) + sizeof(", ...") < NAMES)
		snprintf(names + used, NAMES - used, "%s%s", used ? ", " : "", name);
	else if (used + sizeof(", ...") <= NAMES && !strstr(names, ", ..."))
		snprintf(names + used, NAMES - used, ", ...");
}

static void tell(const struct nb_nic_question *question, const struct answer *answer,
		 const char *names, char *why, size_t room)
{
	const char *open = answer->words[0] ? " (" : "", *close = answer->words[0] ? ")" : "";

	if (answer->error == question->accepted)
		snprintf(why, room,
			 "%s; to %s on %s, without the memory that netbench cannot lend yet, it "
			 "answers: %s",
			 question->has, question->name, answer->name, strerror(answer->error));
	else if (!answer->error)
		snprintf(why, room, "%s, but there is no network interface", question->has);
	else
		snprintf(why, room, "%s, but refuses %s on %s: %s%s%s%s%s", question->has,
			 question->name, answer->error == EOPNOTSUPP ? names : answer->name,
			 strerror(answer->error), open, answer->words, close,
			 answer->error == EPERM ? "; it needs CAP_NET_ADMIN" : "");
}

void nb_ask_nics(const struct nb_nic_question *question, int handle, char *why, size_t room)
{
	struct if_nameindex *all = if_nameindex();
	struct answer told = { 0 };
	char names[NAMES] = "";

	for (size_t i = 0; all && all[i].if_index; i++) {
		struct answer one = { 0 };

		one.error = question->ask(handle, all[i].if_index, one.words, sizeof(one.words));
		snprintf(one.name, sizeof(one.name), "%s", all[i].if_name);
		if (one.error == EOPNOTSUPP)
			add_name(names, one.name);
		if (rank(question, one.error) > rank(question, told.error))
			told = one;
	}
	if (all)
		if_freenameindex(all);
	tell(question, &told, names, why, room);
}
