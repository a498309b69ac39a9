// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the plugin finds in QEMU, for one vCPU without a machine.
 */
#include "tests/qemu-plugin/stand-in.h"

#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/api.h"
#include "qemu-plugin/mode.h"
#include "qemu-plugin/translate.h"
#include "tests/support/support.h"

struct stand_in stand_in;
static struct hot hot;

/* ---- a translated block ---- */

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->n;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i)
{
	return (struct qemu_plugin_insn *)&tb->insn[i];
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len)
{
	memcpy(dest, insn->bytes, len);
	return len;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	return insn->size;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->vaddr;
}

void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return NULL;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_vcpu_cb cb, int flags,
					  void *user)
{
	ck_assert_int_ge(flags, QEMU_CB_R_REGS);
	tb->callback = cb;
	tb->user = user;
}

void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, qemu_vcpu_cb cb,
					       int flags, int cond, struct qemu_plugin_u64 entry,
					       uint64_t imm, void *user)
{
	(void)cond;
	(void)entry;
	(void)imm;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, cb, flags, user);
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_cb cb,
					    int flags, void *user)
{
	ck_assert_int_ge(flags, QEMU_CB_R_REGS);
	ck_assert_uint_lt(insn->callbacks, 4);
	insn->callback[insn->callbacks] = cb;
	insn->user[insn->callbacks++] = user;
}

void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int op,
							 struct qemu_plugin_u64 entry, uint64_t imm)
{
	ck_assert_int_eq(op, QEMU_INLINE_STORE);
	ck_assert_uint_lt(insn->stores, 4);
	insn->store[insn->stores].offset = entry.offset;
	insn->store[insn->stores++].value = imm;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int vcpu, qemu_plugin_meminfo info,
						 uint64_t vaddr, void *user),
				      int flags, int rw, void *user)
{
	ck_assert_int_ge(flags, QEMU_CB_R_REGS);
	ck_assert_int_eq(rw, QEMU_MEM_R);
	insn->load = cb;
	insn->load_user = user;
}

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo info)
{
	return info;
}

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size)
{
	ck_assert_uint_eq(size, sizeof(hot));
	return (struct qemu_plugin_scoreboard *)&hot;
}

void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu)
{
	ck_assert_uint_eq(vcpu, 0);
	return score;
}

/* ---- registers and memory: in place of qemu.c ---- */

u64 qemu_read_reg(struct qemu_regs *regs, enum qemu_reg reg)
{
	(void)regs;
	stand_in.reads += reg == QREG_RIP;
	return stand_in.reg[reg];
}

bool qemu_read_linear(struct qemu_regs *regs, u64 addr, void *buf, size_t len)
{
	(void)regs;
	if (addr < stand_in.page || addr + len > stand_in.page + sizeof(stand_in.bytes))
		return false;
	memcpy(buf, stand_in.bytes + (addr - stand_in.page), len);
	return true;
}

void qemu_go_to(u64 pc)
{
	ck_abort_msg("nobody asks to go to %#llx", (unsigned long long)pc);
}

/* ---- the machine ---- */

/* CR0: PE, PG; EFER: LMA; selectors 8: 64-bit code, 10H: 32-bit code of CPL 3 (as 13H). */
void stand_in_setup(void)
{
	static const u64 gdt[] = { 0, 0x00af9b000000ffff, 0x00cffb000000ffff, 0x00affb000000ffff };

	memset(&stand_in, 0, sizeof(stand_in));
	memset(&hot, 0, sizeof(hot));
	stand_in.reg[QREG_CR0] = 0x80000001;
	stand_in.reg[QREG_CR4] = 0x20;
	stand_in.reg[QREG_EFER] = 0x500;
	stand_in.reg[QREG_CS] = 8;
	stand_in.reg[QREG_CR3] = 0x1000;
	stand_in.page = 0xffff000000001000;
	memcpy(stand_in.bytes, gdt, sizeof(gdt));
	ck_assert_int_eq(translate_open(&stand_in.plugin), 0);
	stand_in.plugin.always = true;
	stand_in.plugin.whole = true;
	stand_in.plugin.vcpu[0] = &stand_in.vcpu;
	pthread_mutex_init(&stand_in.plugin.lock, NULL);
	stand_in.vcpu.plugin = &stand_in.plugin;
	stand_in.vcpu.tick = 1;
	stand_in.vcpu.hot = translate_hot(&stand_in.plugin, 0);
	stand_in.vcpu.hot->on = 1;
	mode_gdt(&stand_in.vcpu, stand_in.page);
}

static u8 digit(char c)
{
	return (u8)(c <= '9' ? c - '0' : c - 'a' + 10);
}

struct qemu_plugin_tb *stand_in_block(u64 vaddr, const char *code)
{
	struct qemu_plugin_tb *tb = calloc(1, sizeof(*tb));
	struct qemu_plugin_insn *insn;

	ck_assert_ptr_nonnull(tb);
	while (*code) {
		insn = &tb->insn[tb->n++];
		insn->vaddr = vaddr;
		for (; *code && *code != ' '; code += 2)
			insn->bytes[insn->size++] = (u8)(digit(code[0]) << 4 | digit(code[1]));
		vaddr += insn->size;
		code += *code == ' ';
	}
	translate_block(tb, &stand_in.plugin);
	ck_assert_ptr_nonnull(tb->callback);
	return tb;
}

void stand_in_run(struct qemu_plugin_tb *tb, u64 ip, size_t n)
{
	stand_in.reg[QREG_RIP] = ip;
	tb->callback(0, tb->user);
	for (size_t i = 0; i < (n ? n : tb->n); i++) {
		struct qemu_plugin_insn *insn = &tb->insn[i];

		for (unsigned int s = 0; s < insn->stores; s++)
			memcpy((char *)&hot + insn->store[s].offset, &insn->store[s].value, 8);
		for (unsigned int c = 0; c < insn->callbacks; c++)
			insn->callback[c](0, insn->user[c]);
	}
}

void stand_in_run_here(struct qemu_plugin_tb *tb)
{
	stand_in_run(tb, tb->insn[0].vaddr, 0);
}

void stand_in_gate(unsigned int vector, u64 to)
{
	u64 gate[2] = { (to & 0xffff) | 8 << 16 | 0x8e0000000000 | (to >> 16 & 0xffff) << 48,
			to >> 32 };

	memcpy(stand_in.bytes + 4096 + 16 * vector, gate, sizeof(gate));
}

void stand_in_event(u64 from, u64 to)
{
	flow_event(0, QEMU_DISCON_INTERRUPT, from, to, &stand_in.plugin);
}
