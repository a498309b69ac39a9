// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What QEMU provides to the plugin, for one vCPU without a machine.
 */
#include "tests/qemu-plugin/stand-in.h"

#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/flow/mode.h"
#include "tests/support/support.h"

struct stand_in stand_in;
static struct hot hot;
static struct qemu_block blocks[STAND_IN_BLOCKS];
static size_t used;

/* ---- a translated block, in place of qemu.c ---- */

size_t qemu_block_insns(const struct qemu_block *block)
{
	return block->n;
}

void qemu_block_insn(const struct qemu_block *block, size_t i, struct qemu_insn *insn)
{
	*insn = block->insn[i];
}

const void *qemu_block_host(const struct qemu_block *block)
{
	(void)block;
	return NULL;
}

void qemu_call_block(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
		     void *user)
{
	(void)access;
	block->callback = cb;
	block->user = user;
}

void qemu_call_block_if(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			struct qemu_slots *slots, size_t offset, bool set, void *user)
{
	(void)slots;
	(void)offset;
	(void)set;
	qemu_call_block(block, cb, access, user);
}

void qemu_call_block_from(struct qemu_block *block, qemu_callback cb, enum qemu_access access,
			  struct qemu_slots *slots, size_t offset, u64 least, void *user)
{
	(void)block;
	(void)cb;
	(void)access;
	(void)slots;
	(void)offset;
	(void)least;
	(void)user;
	ck_abort_msg("no counter runs");
}

static struct stand_in_insn *put_of(const struct qemu_insn *insn)
{
	return insn->handle;
}

void qemu_call_insn(const struct qemu_insn *insn, qemu_callback cb, enum qemu_access access,
		    void *user)
{
	struct stand_in_insn *put = put_of(insn);

	(void)access;
	ck_assert_uint_lt(put->callbacks, 4);
	put->callback[put->callbacks] = cb;
	put->user[put->callbacks++] = user;
}

void qemu_store(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value)
{
	struct stand_in_insn *put = put_of(insn);

	(void)slots;
	ck_assert_uint_lt(put->stores, 4);
	put->store[put->stores].offset = offset;
	put->store[put->stores++].value = value;
}

void qemu_add(const struct qemu_insn *insn, struct qemu_slots *slots, size_t offset, u64 value)
{
	(void)insn;
	(void)slots;
	(void)offset;
	(void)value;
	ck_abort_msg("no counter runs");
}

void qemu_call_load(const struct qemu_insn *insn, qemu_load_callback cb, void *user)
{
	put_of(insn)->load = cb;
	put_of(insn)->load_user = user;
}

struct qemu_slots *qemu_slots_new(size_t size)
{
	ck_assert_uint_eq(size, sizeof(hot));
	return (struct qemu_slots *)&hot;
}

void *qemu_slots_of(struct qemu_slots *slots, unsigned int vcpu)
{
	ck_assert_uint_eq(vcpu, 0);
	return slots;
}

void qemu_listen(u64 id, const struct qemu_events *events, void *user)
{
	(void)id;
	(void)events;
	(void)user;
	ck_abort_msg("all blocks are translated whole");
}

void qemu_reset(u64 id, void (*cb)(void *user), void *user)
{
	(void)id;
	(void)cb;
	(void)user;
	ck_abort_msg("all blocks are translated whole");
}

/* ---- registers and memory ---- */

u64 qemu_read_reg(struct qemu_regs *regs, enum qemu_reg reg)
{
	(void)regs;
	stand_in.reads += reg == QREG_RIP;
	return stand_in.reg[reg];
}

bool qemu_read_physical(struct qemu_regs *regs, u64 addr, void *buf, size_t len)
{
	(void)regs, (void)addr, (void)buf, (void)len;
	return false;
}

bool qemu_read_linear(struct qemu_regs *regs, u64 addr, void *buf, size_t len)
{
	(void)regs;
	if (addr < stand_in.page || addr + len > stand_in.page + sizeof(stand_in.bytes))
		return false;
	memcpy(buf, stand_in.bytes + (addr - stand_in.page), len);
	return true;
}

bool qemu_translate(u64 linear, u64 *physical)
{
	*physical = linear & 0xffffffffff;
	return true;
}

void qemu_go_to(u64 pc)
{
	ck_abort_msg("unexpected jump to %#llx", (unsigned long long)pc);
}

/* ---- the machine ---- */

/* CR0: PE, PG; EFER: LMA; selectors 8: 64-bit code, 10H: 32-bit code of CPL 3 (as 13H). */
void stand_in_setup(void)
{
	static const u64 gdt[] = { 0, 0x00af9b000000ffff, 0x00cffb000000ffff, 0x00affb000000ffff };

	memset(&stand_in, 0, sizeof(stand_in));
	memset(&hot, 0, sizeof(hot));
	memset(blocks, 0, sizeof(blocks));
	used = 0;
	stand_in.reg[QREG_CR0] = 0x80000001;
	stand_in.reg[QREG_CR4] = 0x20;
	stand_in.reg[QREG_EFER] = 0x500;
	stand_in.reg[QREG_CS] = 8;
	stand_in.reg[QREG_CR3] = 0x1000;
	stand_in.page = 0xffff000000001000;
	memcpy(stand_in.bytes, gdt, sizeof(gdt));
	ck_assert_int_eq(translate_open(&stand_in.plugin), 0);
	stand_in.plugin.machine = (struct qemu_machine){ .vcpus = 1, .max_vcpus = 1 };
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

struct qemu_block *stand_in_block(u64 vaddr, const char *code)
{
	struct qemu_block *tb = &blocks[used++];
	struct qemu_insn *insn;

	ck_assert_uint_le(used, STAND_IN_BLOCKS);
	while (*code) {
		insn = &tb->insn[tb->n];
		insn->handle = &tb->put[tb->n++];
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

void stand_in_run(struct qemu_block *tb, u64 ip, size_t n)
{
	stand_in.reg[QREG_RIP] = ip;
	tb->callback(0, tb->user);
	for (size_t i = 0; i < (n ? n : tb->n); i++) {
		const struct stand_in_insn *put = &tb->put[i];

		for (unsigned int s = 0; s < put->stores; s++)
			memcpy((char *)&hot + put->store[s].offset, &put->store[s].value, 8);
		for (unsigned int c = 0; c < put->callbacks; c++)
			put->callback[c](0, put->user[c]);
	}
}

void stand_in_run_here(struct qemu_block *tb)
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
	flow_event(0, from, to, &stand_in.plugin);
}
