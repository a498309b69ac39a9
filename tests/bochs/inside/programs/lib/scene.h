/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The stage of a fault scenario: one VM whose guest carries out a list of operations, and one line
 * with the result.
 */
#ifndef SCENE_H
#define SCENE_H

#include "arch/pt-packet.h"
#include "arch/pt-regs.h"

#include "guest.h"
#include "host-pt.h"
#include "kmsg.h"

/* The guest's output: a ToPA table with an entry for each of some pages and END to itself. */
#define TOPA_TABLE 0x200000
#define TOPA_PAGES 0x210000
#define PAGE_SIZE  4096u

#define CTL_TRACE \
	(VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TOPA | VMPT_CTL_BRANCH_EN)

#define MAX_OPS	  256
#define LINE_SIZE 256

enum scene_end {
	SCENE_DONE,
	SCENE_ENTRY_FAILED, /* reason in scene.reason */
	SCENE_INTERNAL,	    /* KVM's internal error: suberror in scene.reason */
	SCENE_OTHER,	    /* KVM's exit reason in scene.reason */
	SCENE_ERROR,	    /* KVM_RUN's errno in scene.reason */
};

struct scene {
	struct vm vm;
	struct vcpu vcpu;
	struct cpuid cpuid;
	bool cpuid_set;
	enum guest_mode mode;
	struct guest_op ops[MAX_OPS];
	u32 n;
	u64 reason;
	u32 outs; /* OUTs of the guest to GUEST_PORT_RESULT so far */
	struct kmsg kmsg;
	char line[LINE_SIZE];
	/* Called at each of these OUTs; may be NULL. */
	void (*on_out)(struct scene *scene, u32 word);
};

/* Opens a VM in 64-bit mode with the CPUID that KVM supports. PT's registers are reset. */
void scene_open(struct scene *scene, bool irqchip);

/*
 * The registers of a CPUID leaf, which is added if missing. scene_set_cpuid() passes all to KVM and
 * returns 0 or an errno; scene_load() does so if that has not been called.
 */
struct kvm_cpuid_entry2 *scene_leaf(struct scene *scene, u32 function, u32 index);
int scene_set_cpuid(struct scene *scene);

/* Add an operation; returns its place in ops. */
u32 scene_op(struct scene *scene, enum guest_opcode code, u32 arg, u64 value);

/* Operations that start tracing with ToPA output, and that stop it as stock KVM allows. */
u32 scene_op_start(struct scene *scene, u64 ctl);
u32 scene_op_stop(struct scene *scene, u64 ctl);

/* A ToPA table with that many pages of output; INT in every int_every-th entry, 0: none. */
void scene_topa(struct scene *scene, u32 pages, u32 int_every);

/* Load the operations, then run until the guest is done or cannot go on; copies them back. */
void scene_load(struct scene *scene);
enum scene_end scene_run(struct scene *scene);
const char *scene_end_name(enum scene_end end);

/* How many bytes of output there are, by the MSRs' position, in the first pass over the table. */
u64 scene_output(struct scene *scene);

/* How many packets of a kind there are in the first bytes of the output. */
u32 scene_packets(struct scene *scene, u64 size, enum vmpt_pt_kind kind);

/* Has the kernel printed this since scene_open()? Then the line is in scene.line. */
bool scene_said(struct scene *scene, const char *text);

#endif
