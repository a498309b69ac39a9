// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PT state of a vCPU as bytes, for snapshots and migration: fields with a tag and a length,
 * little-endian, written and read byte by byte (docs/vmm-lib/state.md has the layout). The input
 * may be hostile: it is parsed completely, then each value is checked against the vCPU's
 * capabilities and the rules of SDM 3 33.2.8, and only then is the vCPU changed.
 */
#include "vmm-lib/caps-rules.h"
#include "vmm-lib/internal.h"
#include "vmm-lib/state-bytes.h"

enum tag {
	TAG_CAPS = NEEDED | 1,
	TAG_MSRS = NEEDED | 2,
	TAG_PMI = NEEDED | 3,
	TAG_MODES = NEEDED | 4,
	TAG_SCAN = 5,
	TAG_EVENTS = 6,
	TAG_TRACED = 7,
};

static const u8 magic[4] = { 'V', 'M', 'P', 'T' };

/* The MSRs in the order of their numbers. */
static const struct {
	u32 msr;
	const char *name;
} msrs[] = {
	{ VMPT_MSR_RTIT_OUTPUT_BASE, "IA32_RTIT_OUTPUT_BASE" },
	{ VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, "IA32_RTIT_OUTPUT_MASK_PTRS" },
	{ VMPT_MSR_RTIT_CTL, "IA32_RTIT_CTL" },
	{ VMPT_MSR_RTIT_STATUS, "IA32_RTIT_STATUS" },
	{ VMPT_MSR_RTIT_CR3_MATCH, "IA32_RTIT_CR3_MATCH" },
	{ VMPT_MSR_RTIT_ADDR0_A, "IA32_RTIT_ADDR0_A" },
	{ VMPT_MSR_RTIT_ADDR0_A + 1, "IA32_RTIT_ADDR0_B" },
	{ VMPT_MSR_RTIT_ADDR0_A + 2, "IA32_RTIT_ADDR1_A" },
	{ VMPT_MSR_RTIT_ADDR0_A + 3, "IA32_RTIT_ADDR1_B" },
	{ VMPT_MSR_RTIT_ADDR0_A + 4, "IA32_RTIT_ADDR2_A" },
	{ VMPT_MSR_RTIT_ADDR0_A + 5, "IA32_RTIT_ADDR2_B" },
	{ VMPT_MSR_RTIT_ADDR0_A + 6, "IA32_RTIT_ADDR3_A" },
	{ VMPT_MSR_RTIT_ADDR0_A + 7, "IA32_RTIT_ADDR3_B" },
};

/* The parsed state. */
struct saved {
	struct vmpt_caps guest;
	struct vmpt_pt_regs regs;
	struct vmpt_tsc_scan scan;
	u64 scan_base, scan_mask_ptrs, cut_gpa[2], traced;
	u32 events;
	u16 has_msr; /* bit n: msrs[n] */
	u16 has_tag; /* bit n: the field whose tag is n, without NEEDED */
	u8 xsave, global_status, pmi_seen, pmi_again, held_pend_pmi;
	u8 vmx_operation, in_smm, smm_trace_en, force_psb;
	u8 output_why, cut_len[2];
};

/* ---- save ---- */

static void put_caps(struct writer *w, const struct vmpt_vcpu *vcpu)
{
	const struct vmpt_pt_cpuid *pt = &vcpu->guest.cpuid;
	size_t start = begin(w, TAG_CAPS), i;

	put(w, pt->present, 1);
	put(w, pt->maxphyaddr, 1);
	put(w, pt->linear_bits, 1);
	put(w, vcpu->xsave, 1);
	for (i = 0; i < VMPT_PT_SUBLEAVES; i++) {
		put(w, pt->leaf14[i].eax, 4);
		put(w, pt->leaf14[i].ebx, 4);
		put(w, pt->leaf14[i].ecx, 4);
		put(w, pt->leaf14[i].edx, 4);
	}
	end(w, start);
}

static void put_msrs(struct writer *w, const struct vmpt_vcpu *vcpu)
{
	struct vmpt_pt_regs regs = vcpu->regs;
	size_t start = begin(w, TAG_MSRS), i;

	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++) {
		if (!vmpt_pt_msr_exists(&vcpu->rules, msrs[i].msr))
			continue;
		put(w, msrs[i].msr, 4);
		put(w, *vmpt_pt_reg(&regs, msrs[i].msr), 8);
	}
	end(w, start);
}

static void put_flags(struct writer *w, const struct vmpt_vcpu *vcpu)
{
	size_t start = begin(w, TAG_PMI);

	put(w, vcpu->global_status, 1);
	put(w, vcpu->pmi_seen, 1);
	put(w, vcpu->pmi_again, 1);
	put(w, vcpu->held_pend_pmi, 1);
	end(w, start);

	start = begin(w, TAG_MODES);
	put(w, vcpu->vmx_operation, 1);
	put(w, vcpu->in_smm, 1);
	put(w, vcpu->smm_trace_en, 1);
	put(w, vcpu->force_psb, 1);
	end(w, start);

	start = begin(w, TAG_EVENTS);
	put(w, vcpu->events & ~(u32)VMPT_EVENT_HOST, 4);
	put(w, vcpu->output_why, 1);
	end(w, start);
}

static void put_scan(struct writer *w, const struct vmpt_vcpu *vcpu)
{
	const struct vmpt_tsc_scan *scan = &vcpu->scan;
	size_t start = begin(w, TAG_SCAN), i;

	put(w, vcpu->scan_base, 8);
	put(w, vcpu->scan_mask_ptrs, 8);
	for (i = 0; i < VMPT_PT_SIZE_MAX; i++)
		put(w, i < scan->cut_size ? scan->cut[i] : 0, 1);
	put(w, scan->cut_size, 1);
	put(w, scan->block, 1);
	put(w, scan->lost != 0, 1);
	put(w, scan->high, 1);
	put(w, scan->wrapped, 1);
	put(w, scan->last, 8);
	put(w, scan->packets, 8);
	put(w, scan->tscs, 8);
	put(w, scan->tmas, 8);
	put(w, scan->errors, 8);
	for (i = 0; i < VMPT_ARRAY_SIZE(vcpu->cut_len); i++) {
		put(w, vcpu->cut_len[i] ? vcpu->cut_gpa[i] : 0, 8);
		put(w, vcpu->cut_len[i], 1);
	}
	end(w, start);

	start = begin(w, TAG_TRACED);
	put(w, vcpu->traced, 8);
	end(w, start);
}

int vmpt_vcpu_save(const struct vmpt_vcpu *vcpu, u8 *buf, size_t len)
{
	struct writer w = { buf, len, 0 };

	if (vcpu->entered || vcpu->lost)
		return -VMPT_E_STATE;
	put_header(&w, magic, VMPT_STATE_VERSION);
	put_caps(&w, vcpu);
	put_msrs(&w, vcpu);
	put_flags(&w, vcpu);
	if (vcpu->scan_set)
		put_scan(&w, vcpu);
	return put_size(&w);
}

/* ---- parse ---- */

static void get_caps(struct reader *r, struct saved *s)
{
	struct vmpt_pt_cpuid *pt = &s->guest.cpuid;
	size_t i;

	pt->present = get_flag(r);
	pt->maxphyaddr = (u8)get(r, 1);
	pt->linear_bits = (u8)get(r, 1);
	s->xsave = get_flag(r);
	for (i = 0; i < VMPT_PT_SUBLEAVES; i++) {
		pt->leaf14[i].eax = (u32)get(r, 4);
		pt->leaf14[i].ebx = (u32)get(r, 4);
		pt->leaf14[i].ecx = (u32)get(r, 4);
		pt->leaf14[i].edx = (u32)get(r, 4);
	}
}

/* Each MSR once, any order. */
static void get_msrs(struct reader *r, struct saved *s)
{
	while (r->left) {
		u32 msr = (u32)get(r, 4);
		u64 value = get(r, 8);
		size_t i = 0;

		while (i < VMPT_ARRAY_SIZE(msrs) && msrs[i].msr != msr)
			i++;
		if (i == VMPT_ARRAY_SIZE(msrs) || s->has_msr >> i & 1) {
			r->bad = true;
			return;
		}
		s->has_msr |= (u16)(1u << i);
		*vmpt_pt_reg(&s->regs, msr) = value;
	}
}

static void get_scan(struct reader *r, struct saved *s)
{
	struct vmpt_tsc_scan *scan = &s->scan;
	size_t i;

	s->scan_base = get(r, 8);
	s->scan_mask_ptrs = get(r, 8);
	for (i = 0; i < VMPT_PT_SIZE_MAX; i++)
		scan->cut[i] = (u8)get(r, 1);
	scan->cut_size = (u8)get(r, 1);
	scan->block = (u8)get(r, 1);
	scan->lost = get_flag(r);
	scan->high = (u8)get(r, 1);
	scan->wrapped = (u8)get(r, 1);
	scan->last = get(r, 8);
	scan->packets = get(r, 8);
	scan->tscs = get(r, 8);
	scan->tmas = get(r, 8);
	scan->errors = get(r, 8);
	for (i = 0; i < VMPT_ARRAY_SIZE(s->cut_len); i++) {
		s->cut_gpa[i] = get(r, 8);
		s->cut_len[i] = (u8)get(r, 1);
	}
}

/* One field. 0, or an error with @why. */
static int get_field(struct reader *r, u32 tag, struct saved *s, struct vmpt_refusal *why)
{
	switch (tag) {
	case TAG_CAPS:
		get_caps(r, s);
		break;
	case TAG_MSRS:
		get_msrs(r, s);
		break;
	case TAG_PMI:
		s->global_status = get_flag(r);
		s->pmi_seen = get_flag(r);
		s->pmi_again = get_flag(r);
		s->held_pend_pmi = get_flag(r);
		break;
	case TAG_MODES:
		s->vmx_operation = get_flag(r);
		s->in_smm = get_flag(r);
		s->smm_trace_en = get_flag(r);
		s->force_psb = get_flag(r);
		break;
	case TAG_SCAN:
		get_scan(r, s);
		break;
	case TAG_EVENTS:
		s->events = (u32)get(r, 4);
		s->output_why = (u8)get(r, 1);
		break;
	case TAG_TRACED:
		s->traced = get(r, 8);
		break;
	default:
		return get_unknown(tag, why);
	}
	return get_field_end(r, tag, &s->has_tag, why);
}

static int parse(struct saved *s, const u8 *buf, size_t len, struct vmpt_refusal *why)
{
	const u16 all = 1u << (TAG_CAPS & 0xf) | 1u << (TAG_MSRS & 0xf) | 1u << (TAG_PMI & 0xf) |
			1u << (TAG_MODES & 0xf);
	struct reader r = { buf, len, false }, field;
	u32 tag;
	int err;

	memset(s, 0, sizeof(*s));
	err = get_header(&r, magic, VMPT_STATE_VERSION, why);
	while (!err && r.left) {
		err = get_next(&r, &tag, &field, why);
		if (!err)
			err = get_field(&field, tag, s, why);
	}
	return err ? err : check_all(s->has_tag, all, why);
}

/* ---- check ---- */

static int differs(struct vmpt_refusal *why, const char *field, u64 saved, u64 here)
{
	if (saved == here)
		return 0;
	return vmpt_refuse(why, VMPT_E_CAPS, field, "the guest would see it change", saved, here);
}

/* The guest must be shown the same CPUID as before: it does not change. */
static int check_caps(const struct vmpt_vcpu *vcpu, const struct saved *s, struct vmpt_refusal *why)
{
	const struct vmpt_pt_cpuid *was = &s->guest.cpuid, *is = &vcpu->guest.cpuid;
	struct vmpt_caps here = vcpu->guest;
	unsigned int cap;
	int err;

	/*
	 * Check with this vCPU as the host of the saved one: the first refusal names what is
	 * missing.
	 */
	here.vmx = VMPT_VMX_PT;
	err = vmpt_caps_check(&here, &s->guest, why);
	if (!err)
		err = differs(why, VMPT_FIELD_PT, was->present, is->present ? 1 : 0);
	if (err || !was->present)
		return err;
	err = differs(why, VMPT_FIELD_MAXPHYADDR, was->maxphyaddr, is->maxphyaddr);
	if (!err)
		err = differs(why, VMPT_FIELD_LINEAR, was->linear_bits, is->linear_bits);
	if (!err)
		err = differs(why, "CPUID.0DH.1:ECX[8] XSAVE component 8", s->xsave, vcpu->xsave);
	for (cap = 0; !err && cap < VMPT_CAPS; cap++)
		err = differs(why, vmpt_cap_field(cap), vmpt_pt_cap(was, cap),
			      vmpt_pt_cap(is, cap));
	return err;
}

/* Check each MSR by the vCPU's rules. @s->regs becomes what the vCPU will hold. */
static int check_msrs(const struct vmpt_vcpu *vcpu, struct saved *s, struct vmpt_refusal *why)
{
	struct vmpt_pt_rules rules = vcpu->rules;
	struct vmpt_pt_regs regs;
	size_t i;

	rules.no_ctl_writes = s->vmx_operation;
	vmpt_pt_reset_cold(&regs);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++) {
		u64 value = *vmpt_pt_reg(&s->regs, msrs[i].msr);
		bool has = s->has_msr >> i & 1;
		enum vmpt_gp_reason gp;

		if (!has && vmpt_pt_msr_exists(&rules, msrs[i].msr))
			return invalid(why, msrs[i].name, "missing", 0);
		if (has && vmpt_pt_restore_msr(&rules, &regs, msrs[i].msr, value, &gp))
			return invalid(why, msrs[i].name, vmpt_gp_reason(gp), value);
	}
	s->regs = regs;
	return 0;
}

static int check_flags(const struct vmpt_vcpu *vcpu, const struct saved *s,
		       struct vmpt_refusal *why)
{
	if (s->global_status && !vcpu->rules.topa)
		return invalid(why, "IA32_PERF_GLOBAL_STATUS[55]", "the guest has no ToPA", 1);
	if ((s->pmi_seen || s->pmi_again) && !s->global_status)
		return invalid(why, "IA32_PERF_GLOBAL_STATUS[55]", "0 where a PMI is pending", 0);
	if (s->held_pend_pmi && !vcpu->rules.preserve)
		return invalid(why, "held PendTopaPMI", "the guest has no PMI preservation", 1);
	/* SMM saves TraceEn (33.2.9.3), which is 0 in VMX operation (33.2.9.4). */
	if (s->smm_trace_en && (!s->in_smm || s->vmx_operation || !vcpu->rules.present))
		return invalid(why, "TraceEn saved by SMI", "cannot be set in these modes", 1);
	if (s->events &
	    ~(u32)(VMPT_EVENT_PMI | VMPT_EVENT_STOP | VMPT_EVENT_ERROR | VMPT_EVENT_LOST))
		return invalid(why, "events", "an unknown bit", s->events);
	if (s->output_why >= VMPT_OUTPUT_ERRORS)
		return invalid(why, "reason of STATUS.Error", "unknown", s->output_why);
	return 0;
}

/* The rewriter continues from here and relies on a cut packet being one. */
static int check_scan(const struct vmpt_vcpu *vcpu, const struct saved *s, struct vmpt_refusal *why)
{
	const struct vmpt_tsc_scan *scan = &s->scan;
	u64 beyond = ~vmpt_mask64(vcpu->rules.maxphyaddr);
	struct vmpt_pt_packet packet;
	unsigned int block = scan->block, i;

	if (s->scan_base & ~vcpu->rules.base_mask)
		return invalid(why, "position of TSC adjustment", "a reserved bit is set",
			       s->scan_base);
	if (block && (block < 0x40 || block > 0x7f))
		return invalid(why, "block of TSC adjustment", "not a block context", block);
	if (scan->cut_size >= VMPT_PT_SIZE_MAX || s->cut_len[0] + s->cut_len[1] > scan->cut_size)
		return invalid(why, "cut packet of TSC adjustment", "longer than a packet",
			       scan->cut_size);
	if (scan->cut_size && !scan->lost &&
	    vmpt_pt_decode(&packet, scan->cut, scan->cut_size, block) != -VMPT_E_TRUNCATED)
		return invalid(why, "cut packet of TSC adjustment", "not the beginning of a packet",
			       scan->cut[0]);
	for (i = 0; i < VMPT_ARRAY_SIZE(s->cut_len); i++)
		if (s->cut_len[i] && s->cut_gpa[i] & beyond)
			return invalid(why, "cut packet of TSC adjustment", "beyond MAXPHYADDR",
				       s->cut_gpa[i]);
	if (scan->last >> 56)
		return invalid(why, "TSC of TSC adjustment", "has 56 bits", scan->last);
	return 0;
}

/* ---- restore ---- */

static void apply(struct vmpt_vcpu *vcpu, const struct saved *s)
{
	vcpu->regs = s->regs;
	vcpu->events = s->events;
	vcpu->output_why = s->output_why;
	vcpu->gp_why = VMPT_GP_NONE;
	vcpu->global_status = s->global_status;
	vcpu->pmi_seen = s->pmi_seen;
	vcpu->pmi_again = s->pmi_again;
	vcpu->held_pend_pmi = s->held_pend_pmi;
	vcpu->vmx_operation = s->vmx_operation;
	vcpu->rules.no_ctl_writes = s->vmx_operation;
	vcpu->in_smm = s->in_smm;
	vcpu->smm_trace_en = s->smm_trace_en;
	vcpu->force_psb = s->force_psb;
	vcpu->scan = s->scan;
	vcpu->scan_base = s->scan_base;
	vcpu->scan_mask_ptrs = s->scan_mask_ptrs;
	vcpu->scan_set = s->has_tag >> (TAG_SCAN & 0xf) & 1;
	/* An older version did not count it. */
	vcpu->traced = s->has_tag >> (TAG_TRACED & 0xf) & 1 ? s->traced : VMPT_ADJUST_TRACED;
	vcpu->adjust_more = false;
	memcpy(vcpu->cut_gpa, s->cut_gpa, sizeof(vcpu->cut_gpa));
	memcpy(vcpu->cut_len, s->cut_len, sizeof(vcpu->cut_len));
	vcpu->ran = false;
	vcpu->lost = false;
	/* They referred to the other host's page tables, and to memory at other addresses. */
	vcpu->cr3_given = false;
	vcpu->shadow.end = VMPT_SHADOW_NONE;
	vcpu->shadow.stale = vmpt_vcpu_shadowed(vcpu);
}

int vmpt_vcpu_restore(struct vmpt_vcpu *vcpu, const u8 *buf, size_t len, struct vmpt_refusal *why)
{
	struct saved s;
	int err;

	if (vcpu->entered)
		return vmpt_refuse(why, VMPT_E_STATE, "vCPU", "it is entered", 0, 0);
	err = parse(&s, buf, len, why);
	if (!err)
		err = check_caps(vcpu, &s, why);
	if (!err)
		err = check_msrs(vcpu, &s, why);
	if (!err)
		err = check_flags(vcpu, &s, why);
	if (!err)
		err = check_scan(vcpu, &s, why);
	if (!err)
		apply(vcpu, &s);
	return err;
}
