/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks=FILE: whose page tables a CR3 is, of a Linux guest, read from its memory while it runs:
 * where CR3 changes, and then again and again, ever more seldom, as names and maps may change.
 * The vCPU itself reads, between two blocks, so that none of its processes is missed.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_TASKS_H
#define VMPT_QEMU_PLUGIN_HOST_TASKS_H

#include "qemu-plugin/flow/vcpu.h"
#include "qemu-plugin/host/tasks-file.h"

struct tasks;

struct tasks_vcpu {
	u64 space; /* CR3 as it was looked at last, by the bits that count */
	u64 due;   /* when it is to be looked at again */
	struct tasks_pending pending;
};

/* NULL: printed why. */
struct tasks *tasks_open(struct plugin *plugin, const char *vm);
/* QEMU exits, and no vCPU runs. Prints what is missing. */
void tasks_close(struct tasks *tasks);

void tasks_look(struct tasks *tasks, struct vcpu *vcpu, struct tasks_vcpu *tv, u64 tsc);
/* A run is in the trace, @moved later than it was executed. */
void tasks_run(struct tasks *tasks, struct tasks_vcpu *tv, u64 moved);

/* Between two blocks of a run. */
static inline void tasks_tick(struct tasks *tasks, struct vcpu *vcpu, struct tasks_vcpu *tv,
			      u64 tsc)
{
	if (tsc >= tv->due || (vcpu->mode.cr3 & vcpu->plugin->watch_cr3) != tv->space)
		tasks_look(tasks, vcpu, tv, tsc);
}

#endif
