/* SPDX-License-Identifier: MIT */
/* The worker as an executable: `helper`, or `mover [USER]`. It serves the controller on standard
 * input and output. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netbench.h"

static int serve(int count, char **words)
{
	if (count == 2 && !strcmp(words[1], "helper")) {
		/* it is in use, and not to be removed */
		utimensat(AT_FDCWD, "/proc/self/exe", NULL, 0);
		return nb_serve(STDIN_FILENO, STDOUT_FILENO, NB_HELPER, "");
	}
	if ((count == 2 || count == 3) && !strcmp(words[1], "mover"))
		return nb_serve(STDIN_FILENO, STDOUT_FILENO, NB_MOVER, count == 3 ? words[2] : "");
	return NB_ERR_REQUEST;
}

/* A flow that hangs in the kernel keeps the process, and what is still open: the controller sees
 * the end of a stream that is closed before. */
int main(int count, char **words)
{
	int code = serve(count, words);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	_exit(code);
}
