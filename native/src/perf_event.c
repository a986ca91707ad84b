/* SPDX-License-Identifier: MIT */
#include "perf_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc_text.h"

int nb_perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	struct perf_event_attr sized = *attr;

	sized.size = sizeof(sized);
	return (int)syscall(SYS_perf_event_open, &sized, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static void explain_rights(char *why, size_t room)
{
	char level[16];

	if (nb_read_file("/proc/sys/kernel/perf_event_paranoid", level, sizeof(level)) > 0)
		snprintf(why, room, "root is needed: kernel.perf_event_paranoid is %.*s",
			 (int)strcspn(level, "\n"), level);
	else
		snprintf(why, room, "root is needed (perf_event_open: Permission denied)");
}

void nb_perf_explain(int number, char *why, size_t room)
{
	if (number == EACCES || number == EPERM)
		explain_rights(why, room);
	else if (number == ENOENT || number == EOPNOTSUPP || number == ENODEV)
		snprintf(
			why, room,
			"the CPU offers no such hardware counter (a virtual machine without one?)");
	else if (number == ENOSYS)
		snprintf(why, room, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	else
		snprintf(why, room, "perf_event_open: %s", strerrordesc_np(number));
}
