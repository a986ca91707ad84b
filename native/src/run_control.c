/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int nb_run_control_open(struct nb_run_control *control, struct nb_error *error)
{
	memset(control, 0, sizeof(*control));
	pthread_mutex_init(&control->lock, NULL);
	pthread_cond_init(&control->moved, NULL);
	control->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return control->notify >= 0
		       ? 0
		       : nb_fail_errno(error, "prepare run",
				       "raise the limit on open files (ulimit -n)", "eventfd");
}

void nb_run_control_move(struct nb_run_control *control, enum nb_gate gate)
{
	pthread_mutex_lock(&control->lock);
	control->gate = gate;
	pthread_cond_broadcast(&control->moved);
	pthread_mutex_unlock(&control->lock);
}

void nb_run_control_wait(struct nb_run_control *control, enum nb_gate gate)
{
	pthread_mutex_lock(&control->lock);
	while (control->gate < gate)
		pthread_cond_wait(&control->moved, &control->lock);
	pthread_mutex_unlock(&control->lock);
}

void nb_run_control_notify(struct nb_run_control *control)
{
	uint64_t one = 1;
	ssize_t written = write(control->notify, &one, sizeof(one));

	(void)written; /* full means that a notice is already there */
}

void nb_run_control_clear(struct nb_run_control *control)
{
	uint64_t count;
	ssize_t got = read(control->notify, &count, sizeof(count));

	(void)got; /* EAGAIN: there was no notice */
}

void nb_run_control_close(struct nb_run_control *control)
{
	close(control->notify);
	pthread_cond_destroy(&control->moved);
	pthread_mutex_destroy(&control->lock);
}
