/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the rest of the plugin asks of QEMU: registers and memory of a vCPU as plain numbers.
 * qemu.c alone knows QEMU's interface (api.h). All of it is for the vCPU's own thread, in its
 * callbacks.
 */
#ifndef VMPT_QEMU_PLUGIN_QEMU_H
#define VMPT_QEMU_PLUGIN_QEMU_H

#include "arch/types.h"

/* Names as QEMU's gdb stub has them; see reg_names[] in qemu.c. */
enum qemu_reg {
	REG_RAX,
	REG_RBX,
	REG_RCX,
	REG_RDX,
	REG_RSI,
	REG_RDI,
	REG_RBP,
	REG_RSP,
	REG_R8,
	REG_R9,
	REG_R10,
	REG_R11,
	REG_R12,
	REG_R13,
	REG_R14,
	REG_R15,
	REG_RIP,
	REG_EFLAGS,
	REG_CS,
	REG_CR0,
	REG_CR3,
	REG_CR4,
	REG_CR8,
	REG_EFER,
	REG_FS_BASE,
	REG_GS_BASE,
	REGS
};

struct qemu_regs;

/* Of the vCPU whose callback this is. NULL: a register is missing, or no memory. */
struct qemu_regs *qemu_regs_new(void);

/*
 * Its value, 0 where it cannot be read. In callbacks of instructions RIP and EFLAGS are old;
 * in those of blocks they are exact.
 */
u64 qemu_read_reg(struct qemu_regs *regs, enum qemu_reg reg);
/* false: in a callback that may not write it. */
bool qemu_write_reg(struct qemu_regs *regs, enum qemu_reg reg, u64 value);

/* Leave the callback and go on at @pc (RIP, not linear). Needs RW_REGS_PC. */
void qemu_go_to(u64 pc) __attribute__((noreturn));

/* Guest memory: linear, as the vCPU is paged now; physical, as the vCPU reaches it. */
bool qemu_read_linear(struct qemu_regs *regs, u64 addr, void *buf, size_t len);
bool qemu_read_physical(struct qemu_regs *regs, u64 addr, void *buf, size_t len);
bool qemu_write_physical(struct qemu_regs *regs, u64 addr, const void *buf, size_t len);
bool qemu_translate(u64 linear, u64 *physical);

#endif
