/* SPDX-License-Identifier: MIT */
/* proc_net_tcp: the kernel's Documentation/networking/proc_net_tcp.rst. Sockets that listen come
 * first. */
#include "listening_port.h"

#include <stdio.h>

enum { LISTEN = 0x0a };

static int listens(const char *path, uint64_t port)
{
	FILE *table = fopen(path, "re");
	unsigned int local, state;
	char line[512];
	int found = 0;

	if (!table)
		return 0;
	if (fgets(line, sizeof(line), table)) /* the names of the columns */
		while (!found && fgets(line, sizeof(line), table) &&
		       sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) ==
			       2 &&
		       state == LISTEN)
			found = local == port;
	fclose(table);
	return found;
}

int nb_port_listens(uint64_t port)
{
	return listens("/proc/self/net/tcp", port) || listens("/proc/self/net/tcp6", port);
}
