/* SPDX-License-Identifier: MIT */
/* How long it takes to read meters at an edge of the window: `edges TIMES METER...` prints the
 * nanoseconds of each reading, a line each. Compiled with the engine's own files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "job.h"
#include "window.h"

int main(int count, char **words)
{
	static struct nb_window window;
	static struct nb_job job = { .role = NB_ROLE_OBSERVE, .interface = "lo" };
	struct nb_error error;
	char *at = job.meters;

	for (int i = 2; i < count; i++)
		at = stpcpy(at, words[i]) + 1;
	if (count < 3 || nb_window_prepare(&window, &job, NULL, 0, NULL, &error)) {
		fprintf(stderr, "%s\n", count < 3 ? "edges TIMES METER..." : error.message);
		return 2;
	}
	for (long i = strtol(words[1], NULL, 10); i > 0; i--) {
		uint64_t begun = nb_now();

		nb_window_snapshot(&window, i % 2 ? NB_EDGE_OPEN : NB_EDGE_CLOSE);
		printf("%llu\n", (unsigned long long)(nb_now() - begun));
	}
	nb_window_free(&window);
	return 0;
}
