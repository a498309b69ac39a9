/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the plugin calls in QEMU, and how QEMU calls it. Only qemu.c and install.c know QEMU's
 * interface (api.h), which changes with each release.
 */
#ifndef VMPT_QEMU_PLUGIN_QEMU_H
#define VMPT_QEMU_PLUGIN_QEMU_H

#include "arch/types.h"

/* ---- registers and memory of a vCPU, in callbacks on its own thread ---- */

/* Registers that the plugin reads or writes. qemu.c maps them to the names of QEMU's gdbstub. */
enum qemu_reg {
	QREG_RAX,
	QREG_RBX,
	QREG_RCX,
	QREG_RDX,
	QREG_RSI,
	QREG_RDI,
	QREG_RBP,
	QREG_RSP,
	QREG_R8,
	QREG_R9,
	QREG_R10,
	QREG_R11,
	QREG_R12,
	QREG_R13,
	QREG_R14,
	QREG_R15,
	QREG_RIP,
	QREG_EFLAGS,
	QREG_CS,
	QREG_CR0,
	QREG_CR2,
	QREG_CR3,
	QREG_CR4,
	QREG_CR8,
	QREG_EFER,
	QREG_FS_BASE,
	QREG_GS_BASE,
	QREGS
};

struct qemu_regs;

/* For the vCPU that this callback is for. NULL: a register is missing, or no memory. */
struct qemu_regs *qemu_regs_new(void);

/*
 * 0 if it cannot be read. RIP and EFLAGS are stale in callbacks of instructions, and exact in those
 * of blocks and while a block is translated, which QEMU does right before it executes.
 */
u64 qemu_read_reg(struct qemu_regs *regs, enum qemu_reg reg);
/* false: this callback may not write it. */
bool qemu_write_reg(struct qemu_regs *regs, enum qemu_reg reg, u64 value);

/* Leave the callback and continue at @pc (RIP, not linear). Needs QEMU_LEAVES. */
void qemu_go_to(u64 pc) __attribute__((noreturn));

/* Guest memory by linear address under the vCPU's paging, and by physical address. */
bool qemu_read_linear(struct qemu_regs *regs, u64 addr, void *buf, size_t len);
bool qemu_read_physical(struct qemu_regs *regs, u64 addr, void *buf, size_t len);
bool qemu_write_physical(struct qemu_regs *regs, u64 addr, const void *buf, size_t len);
bool qemu_translate(u64 linear, u64 *physical);

/* ---- numbers per vCPU that translated code can write and test ---- */

struct qemu_slots;

/* @size bytes of 64-bit numbers for each vCPU. NULL: no memory. */
struct qemu_slots *qemu_slots_new(size_t size);
/* Those of @vcpu. They may move when a vCPU is added; QEMU then drops all blocks. */
void *qemu_slots_of(struct qemu_slots *slots, unsigned int vcpu);

/* ---- while a block is translated ---- */

struct qemu_block;

struct qemu_insn {
	u64 vaddr;
	u8 size;
	u8 bytes[15];
	void *handle;
};

/* The number of its instructions; the one with index @i. */
size_t qemu_block_insns(const struct qemu_block *block);
void qemu_block_insn(const struct qemu_block *block, size_t i, struct qemu_insn *insn);
/* Where its first byte is in QEMU's own memory; NULL: not in RAM. */
const void *qemu_block_host(const struct qemu_block *block);

typedef void (*qemu_callback)(unsigned int vcpu, void *user);
/* @size bytes were read at linear address @addr. */
typedef void (*qemu_load_callback)(unsigned int vcpu, unsigned int size, u64 addr, void *user);

/* What a callback may do: read registers, write them, and leave by qemu_go_to(). */
enum qemu_access { QEMU_READS, QEMU_WRITES, QEMU_LEAVES };

/* Call @cb each time the block is about to execute. */
void qemu_call_block(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
		     void *user);
/* The same, only if the number at @offset of @slots is not 0 (@set) or is 0 (not @set). */
void qemu_call_block_if(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			struct qemu_slots *slots, size_t offset, bool set, void *user);
/* The same, only if the number at @offset of @slots is at least @least. */
void qemu_call_block_from(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			  struct qemu_slots *slots, size_t offset, u64 least, void *user);
/* Call @cb each time the instruction is about to execute. */
void qemu_call_insn(const struct qemu_insn *insn, qemu_callback cb, enum qemu_access access,
		    void *user);
/* Call @cb each time the instruction has read from memory. */
void qemu_call_load(const struct qemu_insn *insn, qemu_load_callback cb, void *user);
/* Store @value at @offset of @slots each time the instruction is about to execute. */
void qemu_store(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value);
/* Add @value to it instead. */
void qemu_add(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value);

/* ---- the plugin as a whole ---- */

struct qemu_events {
	qemu_callback vcpu_init;
	qemu_callback vcpu_exit; /* it was unplugged, and its thread ends */
	qemu_callback vcpu_idle; /* it begins to wait, by HLT for example */
	/* An interrupt or exception was delivered. */
	void (*event)(unsigned int vcpu, u64 from, u64 to, void *user);
	/* With several vCPUs this is called on several threads at once. */
	void (*translate)(struct qemu_block *block, void *user);
	void (*flush)(void *user);   /* all blocks were dropped; no vCPU runs */
	void (*at_exit)(void *user); /* QEMU exits; registers can no longer be read */
};

/* Register @events, which stay the caller's, to be called with @user. @id: of plugin_install(). */
void qemu_listen(u64 id, const struct qemu_events *events, void *user);
/* As soon as no vCPU runs, drop all blocks and callbacks and call @cb, which registers again. */
void qemu_reset(u64 id, void (*cb)(void *user), void *user);

struct qemu_machine {
	unsigned int vcpus;	/* at the start */
	unsigned int max_vcpus; /* including those that can be plugged in */
};

#endif
