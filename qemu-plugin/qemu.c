// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Registers and memory of a vCPU by QEMU's plugin interface. GByteArrays stay here.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/api.h"
#include "qemu-plugin/qemu.h"

struct qemu_regs {
	struct qemu_plugin_register *handle[QREGS];
	GByteArray *buf;
};

static const char *const reg_names[QREGS] = {
	[QREG_RAX] = "rax",   [QREG_RBX] = "rbx",	  [QREG_RCX] = "rcx",
	[QREG_RDX] = "rdx",   [QREG_RSI] = "rsi",	  [QREG_RDI] = "rdi",
	[QREG_RBP] = "rbp",   [QREG_RSP] = "rsp",	  [QREG_R8] = "r8",
	[QREG_R9] = "r9",     [QREG_R10] = "r10",	  [QREG_R11] = "r11",
	[QREG_R12] = "r12",   [QREG_R13] = "r13",	  [QREG_R14] = "r14",
	[QREG_R15] = "r15",   [QREG_RIP] = "rip",	  [QREG_EFLAGS] = "eflags",
	[QREG_CS] = "cs",     [QREG_CR0] = "cr0",	  [QREG_CR2] = "cr2",
	[QREG_CR3] = "cr3",   [QREG_CR4] = "cr4",	  [QREG_CR8] = "cr8",
	[QREG_EFER] = "efer", [QREG_FS_BASE] = "fs_base", [QREG_GS_BASE] = "gs_base",
};

struct qemu_regs *qemu_regs_new(void)
{
	struct qemu_regs *regs = calloc(1, sizeof(*regs));
	GArray *list = qemu_plugin_get_registers();
	unsigned int i, reg;

	if (!regs || !list)
		goto fail;
	for (i = 0; i < list->len; i++) {
		const struct qemu_plugin_reg_descriptor *d =
			&g_array_index(list, struct qemu_plugin_reg_descriptor, i);

		for (reg = 0; reg < QREGS; reg++) {
			if (!strcmp(d->name, reg_names[reg]))
				regs->handle[reg] = d->handle;
		}
	}
	for (reg = 0; reg < QREGS; reg++) {
		if (!regs->handle[reg])
			goto fail;
	}
	regs->buf = g_byte_array_sized_new(4096);
	g_array_free(list, TRUE);
	return regs;
fail:
	if (list)
		g_array_free(list, TRUE);
	free(regs);
	return NULL;
}

u64 qemu_read_reg(struct qemu_regs *regs, enum qemu_reg reg)
{
	u64 value = 0;

	regs->buf->len = 0;
	if (!qemu_plugin_read_register(regs->handle[reg], regs->buf))
		return 0;
	memcpy(&value, regs->buf->data, regs->buf->len < 8 ? regs->buf->len : 8);
	return value;
}

bool qemu_write_reg(struct qemu_regs *regs, enum qemu_reg reg, u64 value)
{
	/* The write needs the register's own size; a read of it tells. */
	regs->buf->len = 0;
	if (!qemu_plugin_read_register(regs->handle[reg], regs->buf) || regs->buf->len > 8)
		return false;
	memcpy(regs->buf->data, &value, regs->buf->len);
	return qemu_plugin_write_register(regs->handle[reg], regs->buf);
}

void qemu_go_to(u64 pc)
{
	qemu_plugin_set_pc(pc);
}

bool qemu_read_linear(struct qemu_regs *regs, u64 addr, void *buf, size_t len)
{
	if (!qemu_plugin_read_memory_vaddr(addr, regs->buf, len) || regs->buf->len < len)
		return false;
	memcpy(buf, regs->buf->data, len);
	return true;
}

bool qemu_read_physical(struct qemu_regs *regs, u64 addr, void *buf, size_t len)
{
	if (qemu_plugin_read_memory_hwaddr(addr, regs->buf, len) || regs->buf->len < len)
		return false;
	memcpy(buf, regs->buf->data, len);
	return true;
}

bool qemu_write_physical(struct qemu_regs *regs, u64 addr, const void *buf, size_t len)
{
	g_byte_array_set_size(regs->buf, (unsigned int)len);
	memcpy(regs->buf->data, buf, len);
	return !qemu_plugin_write_memory_hwaddr(addr, regs->buf);
}

bool qemu_translate(u64 linear, u64 *physical)
{
	return qemu_plugin_translate_vaddr(linear, physical);
}
