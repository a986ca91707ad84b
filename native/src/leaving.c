/* SPDX-License-Identifier: MIT */
#include "leaving.h"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "profile/sampler.h"
#include "scratch_files.h"

void nb_leaving_begin(struct nb_leaving *leaving)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, &leaving->mask);
	leaving->fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (leaving->fd < 0)
		nb_leaving_end(leaving);
}

int nb_leaving_asked(const struct nb_leaving *leaving)
{
	struct signalfd_siginfo info;

	return leaving->fd >= 0 && read(leaving->fd, &info, sizeof(info)) == sizeof(info);
}

void nb_leave(struct nb_worker *worker)
{
	struct nb_error ignored;

	if (worker->why && !worker->heartbeat.lost)
		nb_heartbeat_frame(&worker->heartbeat, NB_BYE, 0, worker->why, strlen(worker->why));
	if (worker->run)
		nb_run_halt(worker->run);
	nb_undo(&worker->undo, 0, &worker->client, &ignored);
	nb_worker_end_run(worker);
	if (worker->duty == NB_HELPER)
		nb_sampler_end();
	nb_scratch_files_close();
}

void nb_leaving_end(const struct nb_leaving *leaving)
{
	if (leaving->fd >= 0)
		close(leaving->fd);
	pthread_sigmask(SIG_SETMASK, &leaving->mask, NULL);
}
