/* SPDX-License-Identifier: MIT */
/* The state machine of a run. This file alone changes run->phase.
 *
 *   PREPARED -GO-> WARMING -time-> MEASURING -time, bytes, MARK-> CLOSED -STOP-> DRAINING -> DONE
 *
 * A bytes-bounded run opens its window while nothing moves: the sender goes from WARMING to WAITING
 * once its streams have stopped, the receiver waits from GO on; MARK takes both to WARMUP_DRAIN.
 * With fsync in the window, a receiver that is bounded by time goes from MEASURING to SYNCING: its
 * streams stop, force what they have to the disk, and go on once the window is closed.
 * A tool with marks waits for MARK too. A tool without a duration is measured from its start on. */
#include "run.h"

#include "clock.h"

#define TO(phase) (1u << (phase))

static const unsigned int successors[] = {
	[NB_PREPARED] = TO(NB_WARMING) | TO(NB_WAITING) | TO(NB_MEASURING),
	[NB_WARMING] = TO(NB_WAITING) | TO(NB_MEASURING),
	[NB_WAITING] = TO(NB_WARMUP_DRAIN),
	[NB_WARMUP_DRAIN] = TO(NB_MEASURING),
	[NB_MEASURING] = TO(NB_SYNCING) | TO(NB_CLOSED),
	[NB_SYNCING] = TO(NB_CLOSED),
	[NB_CLOSED] = TO(NB_DRAINING),
	[NB_DRAINING] = TO(NB_DONE),
	[NB_DONE] = 0,
};

/* The window is open: the run ends by time, unless bytes or the controller bound it. */
static void set_times(struct nb_run *run)
{
	uint64_t opened = run->window.edges[NB_EDGE_OPEN].ns;

	if (run->job.duration && !run->job.bytes && !run->job.marks)
		run->close_at = opened + run->job.duration;
	if (run->window.samples_room)
		run->sample_at = opened + run->job.sample;
	run->second_at = nb_run_asks(run) ? opened + NB_SECOND : 0;
	if (run->sample_at && run->job.report)
		run->report_at = opened + run->job.report;
}

int nb_phase_enter(struct nb_run *run, enum nb_phase next)
{
	enum nb_phase from = run->phase;
	uint64_t now;

	if (!(successors[from] & TO(next)))
		return -NB_ERR_PROTOCOL;
	run->phase = next;
	run->warm_at = run->close_at = 0;
	switch (next) {
	case NB_WARMING:
		run->warm_at = nb_now() + run->job.warmup;
		break;
	case NB_MEASURING:
		nb_window_snapshot(&run->window, NB_EDGE_OPEN);
		set_times(run);
		now = nb_now();
		atomic_store(&run->control.to,
			     run->job.bytes ? UINT64_MAX : now + run->job.duration);
		atomic_store(&run->control.from, now);
		atomic_store_explicit(&run->control.opened, 1, memory_order_release);
		if (from == NB_WARMUP_DRAIN) /* streams that stopped after their warm-up go on */
			nb_run_control_move(&run->control, NB_GATE_RUN);
		break;
	case NB_SYNCING:
		atomic_store(&run->control.abort, NB_STOP_PUMP);
		break;
	case NB_CLOSED:
		nb_window_snapshot(&run->window, NB_EDGE_CLOSE);
		run->sample_at = run->second_at = 0;
		nb_run_control_move(&run->control, NB_GATE_DRAIN);
		break;
	case NB_DONE:
		nb_window_snapshot(&run->window, NB_EDGE_DRAINED);
		break;
	default:
		break;
	}
	return 0;
}
