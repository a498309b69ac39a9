// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Translates QEMU's plugin interface, with its handles, flags and arrays, to that of qemu.h.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/qemu/api.h"
#include "qemu-plugin/qemu/qemu.h"

struct qemu_regs {
	struct qemu_plugin_register *handle[QREGS];
	u8 size[QREGS];	 /* of registers that were written; 0: not known yet */
	GByteArray *buf; /* for any of them */
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
	/* A write needs the register's exact size, which a first read returns. */
	if (!regs->size[reg]) {
		regs->buf->len = 0;
		if (!qemu_plugin_read_register(regs->handle[reg], regs->buf) || regs->buf->len > 8)
			return false;
		regs->size[reg] = (u8)regs->buf->len;
	}
	regs->buf->len = regs->size[reg];
	memcpy(regs->buf->data, &value, sizeof(value));
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

/* ---- numbers per vCPU: scoreboards ---- */

struct qemu_slots *qemu_slots_new(size_t size)
{
	return (struct qemu_slots *)qemu_plugin_scoreboard_new(size);
}

void *qemu_slots_of(struct qemu_slots *slots, unsigned int vcpu)
{
	return qemu_plugin_scoreboard_find((struct qemu_plugin_scoreboard *)slots, vcpu);
}

static struct qemu_plugin_u64 entry(struct qemu_slots *slots, size_t offset)
{
	return (struct qemu_plugin_u64){ .score = (struct qemu_plugin_scoreboard *)slots,
					 .offset = offset };
}

/* ---- blocks ---- */

static struct qemu_plugin_tb *tb_of(const struct qemu_block *block)
{
	return (struct qemu_plugin_tb *)(uintptr_t)block;
}

size_t qemu_block_insns(const struct qemu_block *block)
{
	return qemu_plugin_tb_n_insns(tb_of(block));
}

void qemu_block_insn(const struct qemu_block *block, size_t i, struct qemu_insn *insn)
{
	struct qemu_plugin_insn *handle = qemu_plugin_tb_get_insn(tb_of(block), i);
	size_t size = qemu_plugin_insn_size(handle);

	if (size > sizeof(insn->bytes))
		size = sizeof(insn->bytes);
	insn->handle = handle;
	insn->vaddr = qemu_plugin_insn_vaddr(handle);
	insn->size = (u8)size;
	qemu_plugin_insn_data(handle, insn->bytes, size);
}

const void *qemu_block_host(const struct qemu_block *block)
{
	return qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb_of(block), 0));
}

static int flags_of(enum qemu_access access)
{
	return access == QEMU_LEAVES   ? QEMU_CB_RW_REGS_PC
	       : access == QEMU_WRITES ? QEMU_CB_RW_REGS
				       : QEMU_CB_R_REGS;
}

void qemu_call_block(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
		     void *user)
{
	qemu_plugin_register_vcpu_tb_exec_cb(tb_of(block), cb, flags_of(access), user);
}

void qemu_call_block_if(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			struct qemu_slots *slots, size_t offset, bool set, void *user)
{
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb_of(block), cb, flags_of(access),
						  set ? QEMU_COND_NE : QEMU_COND_EQ,
						  entry(slots, offset), 0, user);
}

void qemu_call_block_from(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			  struct qemu_slots *slots, size_t offset, u64 least, void *user)
{
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb_of(block), cb, flags_of(access), QEMU_COND_GE,
						  entry(slots, offset), least, user);
}

void qemu_call_insn(const struct qemu_insn *insn, qemu_callback cb, enum qemu_access access,
		    void *user)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn->handle, cb, flags_of(access), user);
}

void qemu_store(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn->handle, QEMU_INLINE_STORE,
							    entry(slots, offset), value);
}

void qemu_add(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn->handle, QEMU_INLINE_ADD,
							    entry(slots, offset), value);
}

/* QEMU encodes the size of an access in a number of its own, so its callback calls ours. */
struct load {
	qemu_load_callback cb;
	void *user;
};

static void loaded(unsigned int vcpu, qemu_plugin_meminfo info, uint64_t addr, void *user)
{
	const struct load *load = user;

	load->cb(vcpu, 1U << qemu_plugin_mem_size_shift(info), addr, load->user);
}

void qemu_call_load(const struct qemu_insn *insn, qemu_load_callback cb, void *user)
{
	struct load *load = malloc(sizeof(*load));

	/* Never freed, as it is not known when QEMU drops the block: LGDT and LIDT are few. */
	if (!load)
		return;
	load->cb = cb;
	load->user = user;
	qemu_plugin_register_vcpu_mem_cb(insn->handle, loaded, QEMU_CB_R_REGS, QEMU_MEM_R, load);
}

/* ---- the plugin as a whole ---- */

/* One per -plugin, as QEMU's callbacks have other arguments than ours. Never freed. */
struct listener {
	const struct qemu_events *events;
	void *user;
};

static void delivered(unsigned int vcpu, int type, uint64_t from, uint64_t to, void *user)
{
	const struct listener *listener = user;

	(void)type;
	listener->events->event(vcpu, from, to, listener->user);
}

static void translated(struct qemu_plugin_tb *tb, void *user)
{
	const struct listener *listener = user;

	listener->events->translate((struct qemu_block *)tb, listener->user);
}

void qemu_listen(u64 id, const struct qemu_events *events, void *user)
{
	struct listener *listener = malloc(sizeof(*listener));

	if (!listener) {
		fputs("vmpt: no memory\n", stderr);
		exit(1);
	}
	listener->events = events;
	listener->user = user;
	qemu_plugin_register_vcpu_init_cb(id, events->vcpu_init, user);
	qemu_plugin_register_vcpu_exit_cb(id, events->vcpu_exit, user);
	qemu_plugin_register_vcpu_idle_cb(id, events->vcpu_idle, user);
	qemu_plugin_register_vcpu_discon_cb(id, QEMU_DISCON_INTERRUPT, delivered, listener);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated, listener);
	qemu_plugin_register_flush_cb(id, events->flush, user);
	qemu_plugin_register_atexit_cb(id, events->at_exit, user);
}

void qemu_reset(u64 id, void (*cb)(void *user), void *user)
{
	qemu_plugin_reset(id, cb, user);
}
