// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a struct block of a translated block, and adds to its code what the flow needs: a callback
 * at its beginning, a store of hot.armed before its last instruction, callbacks at sites.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/flow/mode.h"
#include "qemu-plugin/flow/units.h"

#define CR0_PE	  0x1ULL
#define EFLAGS_VM 0x20000ULL

int translate_open(struct plugin *plugin)
{
	plugin->slots = qemu_slots_new(sizeof(struct hot));
	if (plugin->slots)
		return 0;
	fputs("vmpt: no memory\n", stderr);
	return -1;
}

struct hot *translate_hot(struct plugin *plugin, unsigned int index)
{
	return qemu_slots_of(plugin->slots, index);
}

/* ---- memory of blocks ---- */

static void free_block(struct block *block)
{
	struct site *site, *next;

	for (site = block->sites; site; site = next) {
		next = site->next;
		free(site);
	}
	free(block->code);
	free(block->bytes);
	free(block);
}

/* Whether a truth file or RTIT's steps still need the block's code. */
static bool is_unwritten(const struct plugin *plugin, const struct block *block)
{
	for (unsigned int i = 0; block->code && i < plugin->machine.max_vcpus; i++) {
		const struct vcpu *vcpu = plugin->vcpu[i];

		if (vcpu && ((vcpu->truth && truth_holds(vcpu->truth, block->code)) ||
			     (vcpu->block && vcpu->block->code == block->code)))
			return true;
	}
	return false;
}

void translate_free(struct plugin *plugin)
{
	struct block *block, *next, *kept = NULL;

	for (block = plugin->blocks; block; block = next) {
		next = block->next;
		if (is_unwritten(plugin, block)) {
			block->next = kept;
			kept = block;
		} else {
			free_block(block);
		}
	}
	plugin->blocks = kept;
}

static void keep(struct plugin *plugin, struct block *block)
{
	pthread_mutex_lock(&plugin->lock);
	block->next = plugin->blocks;
	plugin->blocks = block;
	plugin->translated++;
	pthread_mutex_unlock(&plugin->lock);
}

static struct block_code *copy_code(const struct plugin *plugin, const struct qemu_block *qemu)
{
	size_t names = plugin->machine.max_vcpus * sizeof(struct block_name);
	size_t n = qemu_block_insns(qemu), done = 0;
	struct block_code *code = calloc(1, sizeof(*code) + names + n + n * 15);
	struct qemu_insn insn;

	if (!code)
		return NULL;
	code->count = (u32)n;
	code->lengths = (u8 *)code + sizeof(*code) + names;
	code->bytes = code->lengths + n;
	for (size_t i = 0; i < n; i++) {
		qemu_block_insn(qemu, i, &insn);
		code->lengths[i] = insn.size;
		memcpy(code->bytes + done, insn.bytes, insn.size);
		done += insn.size;
	}
	code->size = (u32)done;
	return code;
}

/* ---- sites ---- */

/* Exit qualification of an IN, OUT, INS or OUTS (SDM 3 table 28-5). */
static u64 io_qualification(struct vcpu *vcpu, const struct site *site)
{
	unsigned int bits = vcpu->cpu.cs_l ? 64 : vcpu->cpu.cs_d ? 32 : 16;
	struct insn_io io;

	if (!insn_io(&io, site->bytes, site->size, bits))
		return 0;
	if (!io.immediate)
		io.port = (u16)qemu_read_reg(vcpu->regs, QREG_RDX);
	return (u64)(io.width - 1) | (u64)io.in << 3 | (u64)io.string << 4 | (u64)io.rep << 5 |
	       (u64)io.immediate << 6 | (u64)io.port << 16;
}

static void count(struct vcpu *vcpu, const struct block *block, u64 insns)
{
	if (block->counts)
		vcpu->hot->counts[block->level].insns += insns;
}

static void site_executes(unsigned int index, void *user)
{
	const struct site *site = user;
	struct plugin *plugin = site->block->plugin;
	struct vcpu *vcpu = plugin->vcpu[index];
	u64 ip;

	if (!flow_begin(vcpu))
		return;
	ip = site_ip(vcpu, site);
	units_step(vcpu, ip);
	if (site->hook == HOOK_IO && vcpu->running) {
		plugin->host_ops->exit(vcpu, ip, EXIT_IO,
				       plugin->events ? io_qualification(vcpu, site) : 0);
		/* If it repeats, the VM entry is in the next block. */
		if (site->block->kind != INSN_REP) {
			plugin->host_ops->enter(vcpu, ip + site->size);
			vcpu->reached = ip + site->size;
			vcpu->walked = vcpu->reached;
			vcpu->reached_in = site->block;
		} else
			vcpu->tick = 1;
	}
	if (site->hook == HOOK_IF && plugin->events)
		flow_if(vcpu, site);
	if (plugin->guest && plugin->guest_ops->hooks(plugin, site->hook)) {
		/* If it leaves the block, what follows there executes in another one. */
		count(vcpu, site->block, -(u64)site->rest);
		plugin->guest_ops->site(vcpu, site);
		count(vcpu, site->block, site->rest);
	}
	flow_done(vcpu);
}

/* LGDT and LIDT read their operand: two bytes of limit, then the base. */
static bool table_base(struct vcpu *vcpu, unsigned int size, u64 vaddr, u64 *base)
{
	*base = 0;
	/* While nothing is traced, the mode is that of the last block with a site. */
	mode_control(vcpu);
	return size == 2 && qemu_read_linear(vcpu->regs, vaddr + 2, base, vcpu->cpu.cs_l ? 8 : 4);
}

static void table_loads(struct vcpu *vcpu, unsigned int size, u64 vaddr,
			void (*load)(struct vcpu *vcpu, u64 base))
{
	u64 base;

	if (!flow_begin(vcpu))
		return;
	if (table_base(vcpu, size, vaddr, &base))
		load(vcpu, base);
	flow_done(vcpu);
}

static void gdt_loads(unsigned int index, unsigned int size, u64 vaddr, void *user)
{
	struct plugin *plugin = user;

	table_loads(plugin->vcpu[index], size, vaddr, mode_gdt);
}

static void idt_loads(unsigned int index, unsigned int size, u64 vaddr, void *user)
{
	struct plugin *plugin = user;

	table_loads(plugin->vcpu[index], size, vaddr, idt_load);
}

/* LLDT's operand is a selector, in memory … */
static void ldt_loads(unsigned int index, unsigned int size, u64 vaddr, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];
	u16 selector;

	if (size != 2 || !flow_begin(vcpu))
		return;
	mode_control(vcpu);
	if (qemu_read_linear(vcpu->regs, vaddr, &selector, sizeof(selector)))
		mode_ldt(vcpu, selector);
	flow_done(vcpu);
}

/* … or in a register, whose number follows the opcode's bytes 0F 00 (SDM 2, LLDT). */
static void ldt_register(unsigned int index, void *user)
{
	static const u8 regs[16] = { QREG_RAX, QREG_RCX, QREG_RDX, QREG_RBX, QREG_RSP, QREG_RBP,
				     QREG_RSI, QREG_RDI, QREG_R8,  QREG_R9,  QREG_R10, QREG_R11,
				     QREG_R12, QREG_R13, QREG_R14, QREG_R15 };
	const struct site *site = user;
	struct vcpu *vcpu = site->block->plugin->vcpu[index];
	const u8 *opcode = memchr(site->bytes, 0x0f, site->size);
	unsigned int number = opcode[2] & 7;

	if (!flow_begin(vcpu))
		return;
	mode_control(vcpu);
	/* REX.B, which only 64-bit code has. */
	if (vcpu->cpu.cs_l && opcode > site->bytes && (opcode[-1] & 0xf1) == 0x41)
		number += 8;
	mode_ldt(vcpu, (u32)qemu_read_reg(vcpu->regs, regs[number]) & 0xffff);
	flow_done(vcpu);
}

static bool hooked(const struct plugin *plugin, unsigned int hook)
{
	return (hook == HOOK_IO && plugin->host) || (hook == HOOK_IF && plugin->events) ||
	       (plugin->guest && plugin->guest_ops->hooks(plugin, hook));
}

static struct site *new_site(struct block *block, const struct qemu_insn *insn, unsigned int hook)
{
	struct site *site = calloc(1, sizeof(*site));

	if (!site)
		return NULL;
	site->block = block;
	site->vaddr = insn->vaddr;
	site->hook = (u8)hook;
	site->size = insn->size;
	memcpy(site->bytes, insn->bytes, insn->size);
	site->next = block->sites;
	block->sites = site;
	return site;
}

static void add_site(struct plugin *plugin, struct block *block, const struct qemu_insn *insn,
		     unsigned int hook, size_t rest)
{
	struct site *site = new_site(block, insn, hook);

	if (!site)
		return;
	site->rest = (u16)rest;
	qemu_call_insn(insn, site_executes, plugin->guest ? QEMU_LEAVES : QEMU_READS, site);
}

/* Instructions that load a descriptor table, which the flow itself needs. */
static void add_table(struct plugin *plugin, struct block *block, const struct qemu_insn *insn,
		      unsigned int hook)
{
	const u8 *opcode = memchr(insn->bytes, 0x0f, insn->size);
	struct site *site;

	if (hook == HOOK_LGDT) {
		qemu_call_load(insn, gdt_loads, plugin);
	} else if (hook == HOOK_LIDT) {
		qemu_call_load(insn, idt_loads, plugin);
	} else if (hook == HOOK_LLDT && opcode && opcode[2] < 0xc0) {
		qemu_call_load(insn, ldt_loads, plugin);
	} else if (hook == HOOK_LLDT && opcode) {
		site = new_site(block, insn, hook);
		if (site)
			qemu_call_insn(insn, ldt_register, QEMU_READS, site);
	}
}

/* Instruction @i of the block; @before: the hook of the one before it. Returns its hook. */
static unsigned int add_insn(struct plugin *plugin, struct block *block,
			     const struct qemu_block *qemu, size_t i, unsigned int before)
{
	struct insn what = { .kind = INSN_PLAIN };
	size_t rest = qemu_block_insns(qemu) - i - 1;
	struct qemu_insn insn;

	qemu_block_insn(qemu, i, &insn);
	/* Without the flow only instructions with a 0F opcode byte need callbacks. */
	if (block->whole || (block->counts && !rest) || memchr(insn.bytes, 0x0f, insn.size))
		insn_classify(&what, insn.bytes, insn.size);
	if (plugin->options.truth)
		qemu_store(&insn, plugin->slots, offsetof(struct hot, progress), i + 1);
	block->last = insn.vaddr;
	block->end = block->last + insn.size;
	block->target = block->end + (u64)what.relative;
	block->kind = what.kind;
	block->halts = what.hook == HOOK_HLT;
	if (!i && block->start == RESET_VECTOR && hooked(plugin, HOOK_RESET))
		add_site(plugin, block, &insn, HOOK_RESET, rest);
	if (before == HOOK_CPUID && hooked(plugin, HOOK_AFTER_CPUID))
		add_site(plugin, block, &insn, HOOK_AFTER_CPUID, rest);
	if (i == 1 && plugin->guest && plugin->guest_ops->probes(plugin, block->start))
		add_site(plugin, block, &insn, HOOK_AFTER_PROBE, rest);
	if (hooked(plugin, what.hook))
		add_site(plugin, block, &insn, what.hook, rest);
	add_table(plugin, block, &insn, what.hook);
	return what.hook;
}

/* ---- the block ---- */

/* Only the last instruction can be armed: QEMU ends a block at each branch. */
static void arm(struct plugin *plugin, const struct block *block, const struct qemu_block *qemu)
{
	struct qemu_insn insn;

	if (block->kind == INSN_PLAIN || block->kind == INSN_REP || block->shows)
		return;
	qemu_block_insn(qemu, qemu_block_insns(qemu) - 1, &insn);
	qemu_store(&insn, plugin->slots, offsetof(struct hot, armed), 1);
}

static void call_back(struct plugin *plugin, struct block *block, struct qemu_block *qemu)
{
	qemu_callback cb = plugin->options.truth ? flow_block_truth : flow_block;
	/* All registers are in memory at the beginning of a block: write access costs nothing. */
	enum qemu_access access = plugin->guest ? QEMU_WRITES : QEMU_READS;
	size_t on = offsetof(struct hot, on);

	if (plugin->always) {
		qemu_call_block(qemu, cb, access, block);
		return;
	}
	if (!block->whole) {
		if (block->sites)
			qemu_call_block(qemu, flow_block_sites, access, block);
		return;
	}
	qemu_call_block_if(qemu, cb, access, plugin->slots, on, true, block);
	if (block->sites)
		qemu_call_block_if(qemu, flow_block_sites, access, plugin->slots, on, false, block);
}

/* Fills @block in. false: no memory. */
static bool describe(struct plugin *plugin, struct block *block, struct qemu_block *qemu)
{
	struct qemu_insn first;

	qemu_block_insn(qemu, 0, &first);
	block->plugin = plugin;
	block->whole = plugin->whole;
	block->counts = plugin->counts;
	block->start = first.vaddr;
	/* RTIT's steps need the lengths of instructions. */
	if (!plugin->options.truth && !(plugin->rtit && plugin->whole))
		return true;
	block->code = copy_code(plugin, qemu);
	return block->code;
}

/* All blocks are gone, and no vCPU runs. */
static void translate_again(void *user)
{
	struct plugin *plugin = user;

	plugin->whole |= __atomic_load_n(&plugin->whole_asked, __ATOMIC_RELAXED);
	plugin->counts |= __atomic_load_n(&plugin->counts_asked, __ATOMIC_RELAXED);
	qemu_listen(plugin->id, plugin->callbacks, plugin);
}

/* Of two requests at once QEMU drops the second: the first one does both. */
static bool ask(struct plugin *plugin, bool *asked)
{
	if (!__atomic_exchange_n(asked, true, __ATOMIC_RELAXED))
		qemu_reset(plugin->id, translate_again, plugin);
	return false;
}

bool flow_ready(struct vcpu *vcpu, const struct site *site)
{
	return site->block->whole || ask(vcpu->plugin, &vcpu->plugin->whole_asked);
}

bool flow_counts(struct vcpu *vcpu, const struct site *site)
{
	return site->block->counts || ask(vcpu->plugin, &vcpu->plugin->counts_asked);
}

/* ---- counting ---- */

/* The element of hot.counts for a block that is translated now: QEMU has a block for each CPL. */
static u8 level_now(const struct plugin *plugin)
{
	pthread_t self = pthread_self();
	u64 cr0;

	for (unsigned int i = 0; i < plugin->machine.max_vcpus; i++) {
		const struct vcpu *vcpu = plugin->vcpu[i];

		if (!vcpu || vcpu->gone || !pthread_equal(vcpu->thread, self))
			continue;
		cr0 = qemu_read_reg(vcpu->regs, QREG_CR0);
		if (cr0 & CR0_PE && qemu_read_reg(vcpu->regs, QREG_EFLAGS) & EFLAGS_VM)
			return 1;
		return cr0 & CR0_PE && qemu_read_reg(vcpu->regs, QREG_CS) & 3;
	}
	return 0;
}

static void reached(unsigned int index, void *user)
{
	const struct block *block = user;
	struct vcpu *vcpu = block->plugin->vcpu[index];

	if (!flow_begin(vcpu))
		return;
	vcpu->plugin->guest_ops->counted(vcpu);
	flow_done(vcpu);
}

/*
 * The test comes before the block is added: what it reports has executed. A block counts whole when
 * it begins, its branch when it executes.
 */
static void add_counts(struct plugin *plugin, struct block *block, struct qemu_block *qemu)
{
	size_t n = qemu_block_insns(qemu), at;
	struct qemu_insn insn;

	block->level = level_now(plugin);
	at = offsetof(struct hot, counts) + block->level * sizeof(struct hot_counts);
	qemu_call_block_from(qemu, reached, QEMU_READS, plugin->slots,
			     at + offsetof(struct hot_counts, insns), COUNTED, block);
	qemu_block_insn(qemu, 0, &insn);
	qemu_add(&insn, plugin->slots, at + offsetof(struct hot_counts, insns), n);
	if (!insn_is_branch(block->kind))
		return;
	qemu_block_insn(qemu, n - 1, &insn);
	qemu_add(&insn, plugin->slots, at + offsetof(struct hot_counts, branches), 1);
	if (block->kind == INSN_JMP_IND || block->kind == INSN_CALL_IND)
		qemu_add(&insn, plugin->slots, at + offsetof(struct hot_counts, indirect), 1);
}

void translate_block(struct qemu_block *qemu, void *user)
{
	struct plugin *plugin = user;
	struct block *block = calloc(1, sizeof(*block));
	unsigned int before = HOOK_NONE;
	size_t n = qemu_block_insns(qemu);

	if (!n || !block || !describe(plugin, block, qemu)) {
		free(block);
		if (n)
			fputs("vmpt: no memory: a block will be missing in the trace\n", stderr);
		return;
	}
	/* Without a view and a truth file there is nothing to call. */
	if (!plugin->always && !plugin->guest) {
		keep(plugin, block);
		return;
	}
	if (plugin->guest || plugin->watch_cr3)
		ram_translates(plugin, block->start, qemu_block_host(qemu));
	for (size_t i = 0; i < n; i++)
		before = add_insn(plugin, block, qemu, i, before);
	block->shows =
		(block->kind == INSN_JCC || block->kind == INSN_JMP || block->kind == INSN_CALL) &&
		block->target - block->start > block->last - block->start;
	if (block->whole)
		arm(plugin, block, qemu);
	if (plugin->code)
		code_translated(block, qemu);
	call_back(plugin, block, qemu);
	if (block->counts)
		add_counts(plugin, block, qemu);
	keep(plugin, block);
}
