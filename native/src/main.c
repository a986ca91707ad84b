/* SPDX-License-Identifier: MIT */
/* The worker as an executable: serves the controller on standard input and output. */
#include <unistd.h>

#include "netbench.h"

int main(void)
{
	return nb_serve(STDIN_FILENO, STDOUT_FILENO);
}
