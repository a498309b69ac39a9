/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a code stream (util/code-stream.h): the bytes of each block as it is first executed, by
 * physical address, and at which linear addresses of which address spaces its pages are executed.
 *
 * QEMU runs a block wherever its physical page is mapped, and translates it once. So bytes and
 * mappings are two kinds of records, and both are made when a block begins, not when it is
 * translated. Most blocks have nothing new: the vCPU has seen the page there, in the state in which
 * it had the block's bytes. Each state of a page has a number of its own, its epoch.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_CODE_H
#define VMPT_QEMU_PLUGIN_FLOW_CODE_H

#include "qemu-plugin/flow/vcpu.h"
#include "util/code-stream.h"

#define CODE_SEEN 256u

/* What a vCPU has executed since a page or a mapping changed last. */
struct code_vcpu {
	u64 changes; /* plugin->code_changes then */
	u64 records; /* of the stream, when the last run was noted there */
	struct code_seen {
		u64 linear; /* number of the page; ~0: none */
		u64 space;  /* code_space() */
		u64 epoch;  /* of its physical page */
	} seen[CODE_SEEN];
};

/* Opens code= for the machine @vm. NULL: printed why. */
struct code *code_open(struct plugin *plugin, const char *vm);
/* Ends it, and prints what is missing. */
void code_close(struct code *code);

/* A vCPU was added. 0, or -1: no memory. */
int code_vcpu_open(struct vcpu *vcpu);

/* @block was translated from @qemu: take its bytes. */
void code_translated(struct block *block, const struct qemu_block *qemu);

/* Write what is not in the file yet: the trace of a run never comes before its code. */
void code_flush(struct code *code);

/* A run that is in the trace: its TSCs when it was executed, and how much later they are there. */
struct code_run {
	u64 vmcs, begin, end, moved;
};
void code_run(struct vcpu *vcpu, const struct code_run *run);

/* CR3 as PIP has it, and the mode. */
static inline u64 code_space(const struct vcpu *vcpu)
{
	return (vcpu->mode.cr3 & ~0x1fULL) | (u64)vcpu->cpu.cs_l << 1 | vcpu->cpu.cs_d;
}

static inline bool code_is_seen(const struct vcpu *vcpu, const struct block_part *part, u64 space,
				u64 linear)
{
	const struct code_seen *seen = &vcpu->code->seen[linear % CODE_SEEN];

	return seen->epoch == part->epoch && seen->linear == linear && seen->space == space;
}

void code_record(struct vcpu *vcpu, struct block *block, u64 ip);

/* @block begins at linear address @ip. */
static inline void code_runs(struct vcpu *vcpu, struct block *block, u64 ip)
{
	u64 changes = __atomic_load_n(&vcpu->plugin->code_changes, __ATOMIC_RELAXED);
	u64 space = code_space(vcpu), linear = ip / CODE_PAGE;
	const struct block_part *part = block->part;

	if (vcpu->code->changes != changes || !code_is_seen(vcpu, part, space, linear) ||
	    (part[1].size && !code_is_seen(vcpu, part + 1, space, linear + 1)))
		code_record(vcpu, block, ip);
}

#endif
