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
