// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A translated block becomes a struct block, and its code gets what the flow needs: a callback
 * at its beginning, a store that arms its last instruction, callbacks at sites.
 */
#include "qemu-plugin/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/api.h"
#include "qemu-plugin/flow.h"
#include "qemu-plugin/guest-view.h"
#include "qemu-plugin/host-view.h"
#include "qemu-plugin/mode.h"

/* Linear, in the segment that RESET loads (SDM 3 11.1.4). */
#define RESET_VECTOR 0xfffffff0ULL

int translate_open(struct plugin *plugin)
{
	plugin->score = qemu_plugin_scoreboard_new(sizeof(struct hot));
	return 0;
}

struct hot *translate_hot(struct plugin *plugin, unsigned int index)
{
	return qemu_plugin_scoreboard_find(plugin->score, index);
}

static struct qemu_plugin_u64 entry(struct plugin *plugin, size_t offset)
{
	return (struct qemu_plugin_u64){ .score = plugin->score, .offset = offset };
}

/* ---- the block's own memory ---- */

static void free_block(struct block *block)
{
	struct site *site, *next;

	for (site = block->sites; site; site = next) {
		next = site->next;
		free(site);
	}
	free(block);
}

void translate_free(struct plugin *plugin)
{
	struct block *block, *next;

	/* Truth files refer to their blocks until they are written. */
	if (plugin->options.truth)
		return;
	for (block = plugin->blocks; block; block = next) {
		next = block->next;
		free_block(block);
	}
	plugin->blocks = NULL;
}

static void keep(struct plugin *plugin, struct block *block)
{
	pthread_mutex_lock(&plugin->lock);
	block->next = plugin->blocks;
	plugin->blocks = block;
	plugin->translated++;
	pthread_mutex_unlock(&plugin->lock);
}

static struct block_code *copy_code(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), names = VCPUS * sizeof(struct block_name), done = 0;
	struct block_code *code = calloc(1, sizeof(*code) + names + n + n * 15);

	if (!code)
		return NULL;
	code->count = (u32)n;
	code->lengths = (u8 *)code + sizeof(*code) + names;
	code->bytes = code->lengths + n;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_size(insn);

		code->lengths[i] = (u8)size;
		qemu_plugin_insn_data(insn, code->bytes + done, size);
		done += size;
	}
	code->size = (u32)done;
	return code;
}

/* ---- sites ---- */

static void site_executes(unsigned int index, void *user)
{
	const struct site *site = user;
	struct plugin *plugin = site->block->plugin;
	struct vcpu *vcpu = plugin->vcpu[index];
	u64 ip;

	if (!flow_begin(vcpu))
		return;
	ip = site_ip(vcpu, site);
	if (site->hook == HOOK_IO && plugin->host && host_running(vcpu)) {
		host_exit(vcpu, ip, EXIT_IO);
		/* One that repeats itself is entered again with the block that follows. */
		if (site->block->kind != INSN_REP) {
			host_enter(vcpu, ip + site->size);
			vcpu->known = ip + site->size;
			vcpu->known_in = site->block;
		} else
			vcpu->tick = 1;
	}
	if (site->hook == HOOK_IF && plugin->events)
		flow_if(vcpu, site);
	if (plugin->guest && guest_hooks(plugin, site->hook))
		guest_site(vcpu, site);
	flow_done(vcpu);
}

/* LGDT and LIDT read their operand: the limit, two bytes, and behind it the base. */
static bool table_base(struct vcpu *vcpu, qemu_plugin_meminfo info, u64 vaddr, u64 *base)
{
	*base = 0;
	return qemu_plugin_mem_size_shift(info) == 1 &&
	       qemu_read_linear(vcpu->regs, vaddr + 2, base, vcpu->cpu.cs_l ? 8 : 4);
}

static void gdt_loads(unsigned int index, qemu_plugin_meminfo info, uint64_t vaddr, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];
	u64 base;

	if (!flow_begin(vcpu))
		return;
	if (table_base(vcpu, info, vaddr, &base))
		mode_gdt(vcpu, base);
	flow_done(vcpu);
}

static void idt_loads(unsigned int index, qemu_plugin_meminfo info, uint64_t vaddr, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];
	u64 base;

	if (!flow_begin(vcpu))
		return;
	if (table_base(vcpu, info, vaddr, &base))
		idt_load(vcpu, base);
	flow_done(vcpu);
}

static bool hooked(const struct plugin *plugin, unsigned int hook)
{
	return (hook == HOOK_IO && plugin->host) || (hook == HOOK_IF && plugin->events) ||
	       (plugin->guest && guest_hooks(plugin, hook));
}

static void add_site(struct plugin *plugin, struct block *block, struct qemu_plugin_insn *insn,
		     unsigned int hook, const u8 *bytes, size_t size)
{
	struct site *site = calloc(1, sizeof(*site));

	if (!site)
		return;
	site->block = block;
	site->vaddr = qemu_plugin_insn_vaddr(insn);
	site->hook = (u8)hook;
	site->size = (u8)size;
	memcpy(site->bytes, bytes, size);
	site->next = block->sites;
	block->sites = site;
	qemu_plugin_register_vcpu_insn_exec_cb(
		insn, site_executes, plugin->guest ? QEMU_CB_RW_REGS_PC : QEMU_CB_R_REGS, site);
}

/* Instruction @i of the block. @before: the kind of hook of the one before it. */
static unsigned int add_insn(struct plugin *plugin, struct block *block, struct qemu_plugin_tb *tb,
			     size_t i, unsigned int before)
{
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
	size_t size = qemu_plugin_insn_size(insn);
	struct insn what;
	u8 bytes[15];

	if (size > sizeof(bytes))
		size = sizeof(bytes);
	qemu_plugin_insn_data(insn, bytes, size);
	/* All that is stopped at in a block without flow has the two-byte opcodes' 0F. */
	if (block->whole || memchr(bytes, 0x0f, size))
		insn_classify(&what, bytes, size);
	else
		what = (struct insn){ .kind = INSN_PLAIN };
	if (plugin->options.truth)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_INLINE_STORE, entry(plugin, offsetof(struct hot, progress)),
			i + 1);
	block->last = qemu_plugin_insn_vaddr(insn);
	block->end = block->last + size;
	block->target = block->end + (u64)what.relative;
	block->kind = what.kind;
	block->halts = what.hook == HOOK_HLT;
	if (!i && block->start == RESET_VECTOR && hooked(plugin, HOOK_RESET))
		add_site(plugin, block, insn, HOOK_RESET, bytes, size);
	if (before == HOOK_CPUID && hooked(plugin, HOOK_BEHIND_CPUID))
		add_site(plugin, block, insn, HOOK_BEHIND_CPUID, bytes, size);
	if (hooked(plugin, what.hook))
		add_site(plugin, block, insn, what.hook, bytes, size);
	if (what.hook == HOOK_LGDT || what.hook == HOOK_LIDT)
		qemu_plugin_register_vcpu_mem_cb(insn,
						 what.hook == HOOK_LGDT ? gdt_loads : idt_loads,
						 QEMU_CB_R_REGS, QEMU_MEM_R, plugin);
	return what.hook;
}

/* ---- the block ---- */

/* Only what a block ends with can be armed: a branch in its middle is none. */
static void arm(struct plugin *plugin, const struct block *block, struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);

	if (block->kind == INSN_PLAIN || block->kind == INSN_REP || block->shows)
		return;
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
		insn, QEMU_INLINE_STORE, entry(plugin, offsetof(struct hot, armed)), 1);
}

static void call_back(struct plugin *plugin, struct block *block, struct qemu_plugin_tb *tb)
{
	qemu_vcpu_cb cb = plugin->options.truth ? flow_block_truth : flow_block;
	/* At a block's beginning all registers are in memory: asking for more costs nothing. */
	int flags = plugin->guest ? QEMU_CB_RW_REGS : QEMU_CB_R_REGS;

	if (plugin->always) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, cb, flags, block);
		return;
	}
	if (!block->whole) {
		if (block->sites)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, flow_block_sites, flags, block);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_cond_cb(
		tb, cb, flags, QEMU_COND_NE, entry(plugin, offsetof(struct hot, on)), 0, block);
	if (block->sites)
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, flow_block_sites, flags, QEMU_COND_EQ,
							  entry(plugin, offsetof(struct hot, on)),
							  0, block);
}

void translate_block(struct qemu_plugin_tb *tb, void *user)
{
	struct plugin *plugin = user;
	struct block *block = calloc(1, sizeof(*block));
	unsigned int before = HOOK_NONE;
	size_t n = qemu_plugin_tb_n_insns(tb);

	if (!block || !n)
		goto fail;
	block->plugin = plugin;
	block->whole = plugin->whole;
	block->start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	if (plugin->options.truth) {
		block->code = copy_code(tb);
		if (!block->code)
			goto fail;
	}
	/* Without a view there is nothing to call. */
	if (!plugin->always && !plugin->guest) {
		keep(plugin, block);
		return;
	}
	if (plugin->guest)
		guest_translates(plugin, block->start,
				 qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)));
	for (size_t i = 0; i < n; i++)
		before = add_insn(plugin, block, tb, i, before);
	block->shows =
		(block->kind == INSN_JCC || block->kind == INSN_JMP || block->kind == INSN_CALL) &&
		block->target - block->start > block->last - block->start;
	if (block->whole)
		arm(plugin, block, tb);
	call_back(plugin, block, tb);
	keep(plugin, block);
	return;
fail:
	free(block);
	if (n)
		fputs("vmpt: no memory: a block will be missing in the trace\n", stderr);
}
