// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Accesses to PT MSRs from arbitrary bytes: see regs-walk.h. */
#include "tests/arch/regs-walk.h"

struct pair {
	struct vmpt_pt_cpuid cpuid;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;
	struct oracle oracle;
};

static void make_caps(struct vmpt_pt_cpuid *c, const u8 *head)
{
	memset(c, 0, sizeof(*c));
	c->present = head[0] != 0xff;
	c->maxphyaddr = (u8)(32 + head[1] % 21);
	c->linear_bits = head[0] & 1 ? 57 : 48;
	c->leaf14[0].eax = head[2] % 8 ? 1 : 0;
	c->leaf14[0].ebx = vmpt_load16(head + 4);
	c->leaf14[0].ecx = head[6];
	c->leaf14[1].eax = vmpt_load32(head + 8);
	c->leaf14[1].ebx = vmpt_load32(head + 12);
}

/*
 * As many bits of @value as @msr can hold at once. From the top down: CTL's output scheme and
 * encodings are settled before TraceEn depends on them.
 */
static u64 legalize(const struct vmpt_pt_cpuid *c, u32 msr, u64 value)
{
	u64 legal = 0;
	int bit;

	for (bit = 63; bit >= 0; bit--)
		if (value >> bit & 1 && oracle_value_ok(c, msr, legal | 1ULL << bit))
			legal |= 1ULL << bit;
	return legal;
}

static bool same(const struct vmpt_pt_regs *a, const struct vmpt_pt_regs *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* One access; @how: 0 read, 1 write, 2 restore. */
static const char *do_access(struct walk *w, struct pair *p, int how)
{
	const struct vmpt_pt_regs before = p->regs;
	enum vmpt_gp_reason why = VMPT_GP_REASONS;
	u64 got = 0, want = 0;
	bool ok;
	int err;

	if (how == 0) {
		err = vmpt_pt_rdmsr(&p->rules, &p->regs, w->msr, &got, &why);
		ok = oracle_read(&p->oracle, w->msr, &want);
	} else if (how == 1) {
		err = vmpt_pt_wrmsr(&p->rules, &p->regs, w->msr, w->value, &why);
		ok = oracle_write(&p->oracle, w->msr, w->value);
	} else {
		err = vmpt_pt_restore_msr(&p->rules, &p->regs, w->msr, w->value, &why);
		ok = oracle_restore(&p->oracle, w->msr, w->value);
	}
	w->legal += ok;
	w->faults += !ok;
	if (err != (ok ? 0 : VMPT_GP))
		return ok ? "a legal access is #GP" : "an illegal access is not #GP";
	if ((why == VMPT_GP_NONE) != ok || why >= VMPT_GP_REASONS)
		return "the reason does not fit the result";
	if ((!ok || how == 0) && !same(&before, &p->regs))
		return "a read or a #GP changed something";
	return got != want ? "a read returns another value" : NULL;
}

/* Events other than accesses. */
static void do_event(struct pair *p, unsigned int event, u64 value)
{
	struct oracle *o = &p->oracle;
	const bool no_ctl = o->no_ctl_writes, kept = p->cpuid.present && p->cpuid.leaf14[0].ebx & 4;

	if (event == 0) { /* cold reset, which leaves VMX operation */
		vmpt_pt_reset_cold(&p->regs);
		oracle_init(o, &p->cpuid);
		p->rules.no_ctl_writes = 0;
	} else if (event == 1 && !kept) {
		vmpt_pt_reset_warm(&p->rules, &p->regs);
		oracle_init(o, &p->cpuid);
		o->no_ctl_writes = no_ctl;
	} else if (event <= 3) { /* warm reset, SMI, XSAVES; VMXON and VMXOFF */
		if (event == 1)
			vmpt_pt_reset_warm(&p->rules, &p->regs);
		else
			vmpt_pt_clear_trace_en(&p->regs);
		o->value[2] &= ~1ULL;
		o->value[3] &= ~4ULL;
		o->no_ctl_writes = event == 3 ? !no_ctl : no_ctl;
		p->rules.no_ctl_writes = o->no_ctl_writes;
	} else if (p->regs.ctl & 1) { /* the processor traces: FilterEn, ContextEn, Error … */
		value &= 0x33;
		p->regs.status |= value;
		o->value[3] |= value;
		if (value & 0x30)
			o->value[3] &= ~4ULL;
	}
}

/* What holds after any sequence. */
static const char *check_state(struct walk *w, const struct pair *p)
{
	int i;

	for (i = 0; i < ORACLE_MSRS; i++) {
		u32 msr = oracle_msrs[i];
		u64 value = 0;

		if (!oracle_exists(&p->cpuid, msr)) {
			if (*vmpt_pt_reg((struct vmpt_pt_regs *)&p->regs, msr) !=
			    (msr == 0x561 ? 0x7f : 0))
				return "an MSR that does not exist has a value";
			continue;
		}
		w->msr = msr;
		if (vmpt_pt_rdmsr(&p->rules, &p->regs, msr, &value, NULL))
			return "an MSR that exists cannot be read";
		w->value = value;
		if (value != p->oracle.value[i])
			return "an MSR has another value";
		if (!oracle_value_ok(&p->cpuid, msr, value))
			return "an MSR has a value that is not legal";
	}
	if (p->oracle.no_ctl_writes && p->regs.ctl & 1)
		return "TraceEn is set in VMX operation";
	if (vmpt_pt_trigger_en(&p->regs) != ((p->regs.ctl & 1) && !(p->regs.status & 0x30)))
		return "TriggerEn";
	return NULL;
}

static const char *do_step(struct walk *w, struct pair *p, const u8 *step)
{
	u64 value = vmpt_load64(step + 2);

	w->msr = oracle_msrs[step[1] % ORACLE_MSRS];
	w->value = value;
	if (step[0] >= 0xe0) {
		do_event(p, step[1] % 5, value);
		return NULL;
	}
	if (step[0] >= 0xd8) {
		w->msr = 0x570;
		w->value = legalize(&p->cpuid, w->msr, value | 0x101);
	} else if (step[0] >= 0xd0) {
		w->value = p->oracle.value[oracle_index(w->msr)];
	} else if (step[0] & 0x40) {
		w->value = legalize(&p->cpuid, w->msr, value);
	} else if (step[0] & 0x20) {
		w->value = 1ULL << value % 64;
	}
	return do_access(w, p, step[0] % 16 < 12 ? 1 : step[0] % 16 < 14 ? 2 : 0);
}

void regs_walk(struct walk *w, const u8 *data, size_t size)
{
	struct pair p = { 0 };
	size_t at;

	w->wrong = NULL;
	w->step = 0;
	if (size < WALK_HEAD)
		return;
	make_caps(&p.cpuid, data);
	vmpt_pt_rules_init(&p.rules, &p.cpuid);
	vmpt_pt_reset_cold(&p.regs);
	oracle_init(&p.oracle, &p.cpuid);
	for (at = WALK_HEAD; size - at >= WALK_STEP; at += WALK_STEP) {
		w->wrong = do_step(w, &p, data + at);
		if (!w->wrong)
			w->wrong = check_state(w, &p);
		if (w->wrong)
			return;
		w->step++;
		w->enabled += p.regs.ctl & 1;
	}
}
