// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events of VMX operation: VMPTRLD, VM entries and exits under the three ways
 * of tracing (33.5.2, Tables 33-53, 33-56) and failed entries (Table 33-54).
 */
#include "tests/tracegen/internal.h"

static bool in_root(struct tracegen *g, struct tg_cpu *p, const char *what)
{
	if (p->cur != &p->host)
		tg_fail(g, "%s: VM %s runs on this CPU", what, p->cur->name);
	else if (!p->vmx)
		tg_fail(g, "%s: the CPU is not in VMX operation", what);
	else
		return true;
	return false;
}

static struct tg_ctx *vm_word(struct tracegen *g, struct tg_node *n)
{
	const char *name = tg_next(n);
	struct tg_ctx *vm = name ? tg_vm_find(g, name) : NULL;

	if (!vm)
		tg_fail(g, name ? "no VM is called \"%s\"" : "%s needs a VM",
			name ? name : n->argv[0]);
	return vm;
}

static void vmxon(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	if (p->cur != &p->host || p->vmx) {
		tg_fail(g, "the CPU is in VMX operation");
		return;
	}
	tg_execute(g, p, TG_VMXON);
	p->vmx = true;
	p->vmcs = VMPT_PT_VMCS_NONE;
}

static void vmxoff(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	if (!in_root(g, p, "vmxoff"))
		return;
	tg_execute(g, p, TG_VMXOFF);
	p->vmx = false;
	p->vmcs = VMPT_PT_VMCS_NONE;
}

static void vmptrld(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *vm = vm_word(g, n);

	if (!vm || !in_root(g, p, "vmptrld"))
		return;
	tg_execute(g, p, TG_VMPTRLD);
	p->vmcs = vm->vmcs;
	if (tg_cpu_context_en(g, p))
		tg_emit1(g, p, VMPT_PT_VMCS, p->vmcs);
}

static void vmclear(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *vm = vm_word(g, n);

	if (!vm || !in_root(g, p, "vmclear"))
		return;
	tg_execute(g, p, TG_VMCLEAR);
	if (p->vmcs == vm->vmcs)
		p->vmcs = VMPT_PT_VMCS_NONE;
}

/* TraceEn goes to 0 with the transition (Table 33-56 cases 9 and 11). */
static void trace_disable(struct tracegen *g, struct tg_cpu *p)
{
	if (tg_packet_en(g, p)) {
		tg_emit_no_ip(g, p, VMPT_PT_TIP_PGD);
		tg_forget_calls(p);
	}
	tg_tnt_flush(g, p);
	p->trace_en = false;
}

static bool enter_check(struct tracegen *g, struct tg_cpu *p, struct tg_ctx *vm, bool load)
{
	if (!in_root(g, p, "enter"))
		return false;
	if (vm->on)
		tg_fail(g, "VM %s runs on CPU %d", vm->name, vm->on->out.cpu);
	else if (!load && p->vmcs != vm->vmcs)
		tg_fail(g, "the VMCS of %s is not current: vmptrld it first", vm->name);
	return !g->failed;
}

static void enter(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *vm = vm_word(g, n);
	bool load = tg_word(n, "load-vmcs"); /* as a VM entry that returns from SMM does */
	bool conceal;
	struct tg_insn i;
	struct tg_transfer x = { .cfe_ip = true, .cfe = VMPT_CFE_VMENTRY, .vmcs = load };

	if (!vm || !enter_check(g, p, vm, load))
		return;
	conceal = vm->conceal_entry;
	i = tg_fetch(g, p, TG_VMRESUME);
	if (g->failed)
		return;
	tg_retire(g, p, &i, i.ip + i.len);
	x.fup_ip = i.ip;
	x.no_pip = conceal;
	x.cfe = conceal ? 0 : VMPT_CFE_VMENTRY;
	x.context_after =
		g->set.trace == TG_SYSTEM && tg_trigger_en(p) && tg_context_en(g, vm->cpl, vm->cr3);
	tg_leave(g, p, &x);
	if (g->set.trace == TG_HOST) {
		if (g->set.fup_at_host_entry && x.packet_before)
			tg_emit_ip(g, p, VMPT_PT_FUP, i.ip + i.len);
		trace_disable(g, p);
	}
	if (load)
		p->vmcs = vm->vmcs;
	p->cur = vm;
	vm->on = p;
	if (g->set.trace != TG_SYSTEM)
		p->left = NULL;
	if (g->set.trace == TG_SYSTEM)
		tg_arrive(g, p, &x, vm->ip);
	else if (g->set.trace == TG_GUEST)
		tg_trace_enable(g, p, g->set.pip_at_guest_entry && !conceal);
	tg_count(p, vm->owner)->entries++;
	tg_count(p, vm->owner)->seen_entries += x.shown;
}

/* Why a VM exits: basic reasons of the VMX appendix, and the instruction that does it. */
static const struct reason {
	const char *name;
	unsigned int number, insn;
	bool event; /* an interrupt, exception or fault: CFE.VMEXIT_INTR */
} reasons[] = {
	{ "exception", 0, TG_NONE, true },     { "interrupt", 1, TG_NONE, true },
	{ "triple-fault", 2, TG_NONE, false }, { "init", 3, TG_NONE, false },
	{ "window", 7, TG_NONE, false },       { "cpuid", 10, TG_CPUID, false },
	{ "hlt", 12, TG_HLT, false },	       { "vmcall", 18, TG_VMCALL, false },
	{ "cr", 28, TG_MOV_CR3, false },       { "io", 30, TG_IN, false },
	{ "msr", 32, TG_WRMSR, false },	       { "ept", 48, TG_NONE, false },
	{ "timer", 52, TG_NONE, false },
};

static const struct reason *reason_word(struct tracegen *g, struct tg_node *n)
{
	const char *name = tg_next(n);
	size_t i;

	if (!name)
		name = "timer";
	for (i = 0; i < VMPT_ARRAY_SIZE(reasons); i++)
		if (!strcmp(reasons[i].name, name))
			return &reasons[i];
	tg_fail(g, "no exit reason is called \"%s\"", name);
	return NULL;
}

static void exit_packets(struct tg_transfer *x, const struct reason *r, u64 qualification,
			 bool qualification_first)
{
	x->cfe = r->event ? VMPT_CFE_VMEXIT_INTR : VMPT_CFE_VMEXIT;
	x->evds = 2;
	x->evd[qualification_first].type = VMPT_EVD_VMXR;
	x->evd[qualification_first].payload = r->number;
	x->evd[!qualification_first].type = VMPT_EVD_VMXQ;
	x->evd[!qualification_first].payload = qualification;
}

/* Guest to host, the guest's IP settled and known to be in x->fup_ip. */
static void exit_transition(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x)
{
	struct tg_ctx *vm = p->cur;
	bool conceal = vm->conceal_exit;

	x->no_pip = conceal;
	x->context_after = g->set.trace == TG_SYSTEM && tg_trigger_en(p) &&
			   tg_context_en(g, p->host.cpl, p->host.cr3);
	tg_leave(g, p, x);
	if (g->set.trace == TG_GUEST)
		trace_disable(g, p);
	p->cur = &p->host;
	vm->on = NULL;
	if (g->set.trace != TG_SYSTEM)
		p->left = NULL;
	/* A guest-only trace can be set to have NR's PIP whatever the new context is. */
	if (g->set.trace == TG_GUEST && g->set.pip_at_guest_exit && !conceal && g->set.os) {
		p->trace_en = true;
		tg_pip(g, p);
		p->trace_en = false;
	} else if (g->set.trace == TG_SYSTEM) {
		tg_arrive(g, p, x, p->host.ip);
	} else if (g->set.trace == TG_HOST) {
		tg_trace_enable(g, p, !conceal);
	}
	tg_count(p, vm->owner)->exits++;
	tg_count(p, vm->owner)->seen_exits += x->shown;
}

static void exit_event(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_transfer x = { .async = true, .cfe_ip = true };
	struct tg_ctx *vm = p->cur;
	const struct reason *r;
	u64 qualification = 0;

	if (vm == &p->host) {
		tg_fail(g, "no VM runs on this CPU");
		return;
	}
	r = reason_word(g, n);
	if (!r)
		return;
	tg_key(g, n, "qualification", &qualification);
	tg_key(g, n, "vector", &x.vector);
	exit_packets(&x, r, qualification, g->set.evd_qualification_first);
	if (vm->conceal_exit)
		x.cfe = 0;
	tg_settle(g, p);
	x.fup_ip = vm->ip;
	if (r->insn != TG_NONE) {
		/* The VMM emulates the instruction: the guest goes on after it. */
		struct tg_insn i = tg_fetch(g, p, r->insn);

		x.fup_ip = i.ip;
		exit_transition(g, p, &x);
		vm->ip = i.ip + i.len;
		return;
	}
	exit_transition(g, p, &x);
}

/* Through the entry's checks: CFE, PIP into the guest, PIP back, to the host's exit handler. */
static void fail_late(struct tracegen *g, struct tg_cpu *p, struct tg_ctx *vm, u64 ip, bool timing)
{
	struct tg_transfer x = { .fup_ip = ip, .cfe_ip = true, .context_after = true };

	x.cfe = vm->conceal_entry ? 0 : VMPT_CFE_VMENTRY;
	tg_leave(g, p, &x);
	p->left = NULL;
	if (tg_pip_wanted(g, p) && !vm->conceal_entry)
		tg_emit2(g, p, VMPT_PT_PIP, vm->cr3 & 0xfffffffffffe0ULL, !vm->conceal_exec);
	if (timing)
		tg_timing(g, p);
	if (tg_pip_wanted(g, p) && !vm->conceal_exit)
		tg_pip(g, p);
	if (x.packet_before)
		tg_emit_ip(g, p, VMPT_PT_TIP, p->host.ip);
}

static void failed_entry(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *vm = vm_word(g, n);
	bool late = tg_word(n, "late"), early = tg_word(n, "early"), timing = tg_word(n, "timing");
	struct tg_insn i;

	if (!vm || !enter_check(g, p, vm, false))
		return;
	if (late == early) {
		tg_fail(g, "failed-entry is early or late");
		return;
	}
	i = tg_fetch(g, p, TG_VMRESUME);
	if (g->failed)
		return;
	tg_retire(g, p, &i, i.ip + i.len);
	if (late)
		tg_count(p, vm->owner)->failed_late++;
	else
		tg_count(p, vm->owner)->failed_early++;
	/* Table 33-54: a guest-only trace has no packets of it. */
	if (g->set.trace == TG_GUEST)
		return;
	if (late && g->set.trace == TG_SYSTEM) {
		fail_late(g, p, vm, i.ip, timing);
		return;
	}
	if (late)
		tg_timing(g, p);
	if (tg_packet_en(g, p))
		tg_emit_ip(g, p, VMPT_PT_TIP, p->host.ip);
}

/* A VMM's changes to its guest while the guest does not run. */
static void modify(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *vm = vm_word(g, n);
	u64 mode, cpl, ip, old_mode, old_ip;

	(void)p;
	if (!vm)
		return;
	if (vm->on) {
		tg_fail(g, "VM %s runs on CPU %d", vm->name, vm->on->out.cpu);
		return;
	}
	old_mode = mode = vm->mode;
	cpl = vm->cpl;
	tg_key(g, n, "mode", &mode);
	tg_key(g, n, "cpl", &cpl);
	tg_key(g, n, "cr3", &vm->cr3);
	tg_key(g, n, "tsc_offset", &vm->tsc_offset);
	if (!tg_mode_valid(g, mode, cpl))
		return;
	ip = old_ip = vm->ip;
	if (tg_key(g, n, "ip", &ip) && tg_ip_valid(g, mode, ip))
		tg_region_at(g, vm, (unsigned int)mode, ip);
	else if (mode != old_mode)
		ip = tg_chunk(g, vm, (unsigned int)mode);
	vm->ip = ip;
	vm->mode = (u8)mode;
	vm->cpl = (u8)cpl;
	/* It does not return to the start of its loop. */
	if (mode != old_mode || ip != old_ip)
		vm->jump_count = 0;
}

bool tg_event_vmx(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	static const struct tg_event table[] = {
		{ "vmxon", vmxon },	{ "vmxoff", vmxoff },
		{ "vmptrld", vmptrld }, { "vmclear", vmclear },
		{ "enter", enter },	{ "exit", exit_event },
		{ "modify", modify },	{ "failed-entry", failed_entry },
		{ NULL, NULL },
	};

	return tg_event_run(table, g, p, n);
}
