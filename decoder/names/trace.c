// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names of VMCSs from a whole trace: each stream's runs of guests, with their times. */
#include "decoder/vmpt-events.h"

/* The open run of a stream: consecutive packets of a guest. */
struct guest_run {
	bool open;
	u64 vmcs;
	struct vmpt_time start, end;
};

static int end_run(struct vmpt_names *names, struct guest_run *run, int cpu)
{
	bool open = run->open;

	run->open = false;
	return open ? vmpt_names_run(names, run->vmcs, cpu, &run->start, &run->end) : 0;
}

/* All of a batch has one owner. */
static int take_batch(struct vmpt_names *names, struct guest_run *run,
		      const struct vmpt_timed_batch *timed, int cpu)
{
	const struct vmpt_batch *batch = &timed->batch;
	bool guest = batch->owner.kind == VMPT_OWNER_VM && batch->owner.sure <= VMPT_ASSUMED;
	int ret = 0;

	if (!batch->count)
		return 0;
	if (run->open && (!guest || batch->owner.vmcs != run->vmcs || timed->back))
		ret = end_run(names, run, cpu);
	if (!guest)
		return ret;
	if (!run->open) {
		run->open = true;
		run->vmcs = batch->owner.vmcs;
		run->start = timed->time[0];
	}
	run->end = timed->time[batch->count - 1];
	return ret;
}

int vmpt_names_stream(struct vmpt_names *names, const struct vmpt_clocks *clocks, size_t stream,
		      int cpu, const struct vmpt_options *options)
{
	struct guest_run run = { 0 };
	struct vmpt_timed_batch batch;
	struct vmpt_timed *timed;
	int ret = vmpt_timed_open(&timed, clocks, stream, options), more = 0;

	if (ret)
		return ret;
	while (!ret && (more = vmpt_timed_next(timed, &batch)) > 0)
		ret = take_batch(names, &run, &batch, cpu);
	if (!ret)
		ret = more < 0 ? more : end_run(names, &run, cpu);
	vmpt_timed_close(timed);
	return ret;
}
