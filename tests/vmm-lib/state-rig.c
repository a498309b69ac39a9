// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Shared by the tests of a vCPU's saved state. */
#include "tests/support/support.h"
#include "tests/vmm-lib/state-rig.h"

struct vmpt_caps state_host;
static struct guest guest;

/* A vCPU whose guest is shown @shown; NULL: no PT. */
void state_make(struct vmpt_vcpu *vcpu, const struct vmpt_caps *shown)
{
	struct vmpt_caps none = { 0 };
	struct vmpt_vmx_plan plan;
	struct vmpt_refusal why = { 0 };
	struct vmpt_config config = { .host = &state_host,
				      .guest = shown ? shown : &none,
				      .plan = &plan,
				      .ops = &guest_memory_ops,
				      .opaque = &guest };

	ck_assert_int_eq(
		vmpt_vmx_plan(&plan, &state_host, shown ? VMPT_USE_GUEST : VMPT_USE_NONE, &why), 0);
	ck_assert_msg(!vmpt_vcpu_init(vcpu, &config, &why), "%s: %s", why.field, why.rule);
}

/* The guest of most tests: all that the library virtualizes. */
void state_make_full(struct vmpt_vcpu *vcpu, struct vmpt_caps *shown)
{
	guest_full_caps(&state_host);
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &vmpt_policy_all, shown, NULL), 0);
	state_make(vcpu, shown);
}

/* A state in the middle of a trace, each field with a different value. */
void state_fill(struct vmpt_vcpu *vcpu)
{
	static const u8 cut[] = { 0x02, 0x43, 0x11, 0x22, 0x33 }; /* of a PIP */

	vcpu->regs = (struct vmpt_pt_regs){
		.ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TOPA |
		       VMPT_CTL_BRANCH_EN | VMPT_CTL_INJECT | 2ULL << 32,
		.status = 0x0001234500000085 | VMPT_STATUS_PEND_PSB,
		.output_base = 0x0000000123456000,
		.output_mask_ptrs = 0x00000abc000000ff,
		.cr3_match = 0x00000000fedcb020,
		.addr = { 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xffff800000000080 },
	};
	vcpu->global_status = true;
	vcpu->pmi_again = true;
	vcpu->pmi_seen = true;
	vcpu->in_smm = true;
	vcpu->force_psb = true;
	vcpu->events = VMPT_EVENT_PMI | VMPT_EVENT_LOST | VMPT_EVENT_HOST;
	vcpu->output_why = VMPT_OUTPUT_PHYSADDR;
	vcpu->scan_set = true;
	vcpu->scan_base = 0x0000000123456000;
	vcpu->scan_mask_ptrs = 0x00000abc0000007f;
	memcpy(vcpu->scan.cut, cut, sizeof(cut));
	vcpu->scan.cut_size = sizeof(cut);
	vcpu->scan.high = 0x12;
	vcpu->scan.wrapped = 0x34;
	vcpu->scan.last = 0x00cba98765432100;
	vcpu->scan.packets = 0x1111;
	vcpu->scan.tscs = 0x2222;
	vcpu->scan.tmas = 0x3333;
	vcpu->scan.errors = 0x4444;
	vcpu->cut_gpa[0] = 0x123450ffe;
	vcpu->cut_len[0] = 2;
	vcpu->cut_gpa[1] = 0x123452000;
	vcpu->cut_len[1] = 3;
	vcpu->traced = 0x1234567;
}

/* clang-format off */
const u8 state_golden[STATE_GOLDEN] = {
	/* header: magic, version, 0, size 348 */
	'V', 'M', 'P', 'T', 1, 0, 0, 0, 0x5c, 1, 0, 0,
	/* capabilities: 36 bytes */
	0x01, 0x80, 36, 0, 1, 46, 48, 0,
	1, 0, 0, 0, 0xff, 1, 0, 0, 7, 0, 0, 0x80, 0, 0, 0, 0,
	4, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 13 MSRs: 156 bytes */
	0x02, 0x80, 156, 0,
	0x60, 5, 0, 0, 0x00, 0x60, 0x45, 0x23, 0x01, 0, 0, 0,
	0x61, 5, 0, 0, 0xff, 0, 0, 0, 0xbc, 0x0a, 0, 0,
	0x70, 5, 0, 0, 0x0d, 0x21, 0, 0, 2, 0, 0, 1,
	0x71, 5, 0, 0, 0xc5, 0, 0, 0, 0x45, 0x23, 1, 0,
	0x72, 5, 0, 0, 0x20, 0xb0, 0xdc, 0xfe, 0, 0, 0, 0,
	0x80, 5, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0,
	0x81, 5, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0,
	0x82, 5, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0,
	0x83, 5, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0,
	0x84, 5, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0,
	0x85, 5, 0, 0, 0x60, 0, 0, 0, 0, 0, 0, 0,
	0x86, 5, 0, 0, 0x70, 0, 0, 0, 0, 0, 0, 0,
	0x87, 5, 0, 0, 0x80, 0, 0, 0, 0, 0x80, 0xff, 0xff,
	/* PMI: GLOBAL_STATUS[55], seen, again, held */
	0x03, 0x80, 4, 0, 1, 1, 1, 0,
	/* modes: VMX operation, SMM, TraceEn saved by SMI, PSB+ wanted */
	0x04, 0x80, 4, 0, 0, 1, 0, 1,
	/* events, reason of STATUS.Error */
	0x06, 0x00, 5, 0, 9, 0, 0, 0, 4,
	/* TSC adjustment: 95 bytes */
	0x05, 0x00, 95, 0,
	0x00, 0x60, 0x45, 0x23, 0x01, 0, 0, 0, 0x7f, 0, 0, 0, 0xbc, 0x0a, 0, 0,
	0x02, 0x43, 0x11, 0x22, 0x33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x12, 0x34,
	0x00, 0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0,
	0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x22, 0x22, 0, 0, 0, 0, 0, 0,
	0x33, 0x33, 0, 0, 0, 0, 0, 0, 0x44, 0x44, 0, 0, 0, 0, 0, 0,
	0xfe, 0x0f, 0x45, 0x23, 1, 0, 0, 0, 2, 0x00, 0x20, 0x45, 0x23, 1, 0, 0, 0, 3,
	/* traced since there */
	0x07, 0x00, 8, 0, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0,
};
/* clang-format on */

size_t state_save(const struct vmpt_vcpu *vcpu, u8 buf[SAVED_MAX])
{
	int n = vmpt_vcpu_save(vcpu, buf, SAVED_MAX);

	ck_assert_int_gt(n, 0);
	return (size_t)n;
}

/* A refusal leaves the vCPU unchanged; the error, or 0 with @vcpu restored. */
int state_try(struct vmpt_vcpu *vcpu, const u8 *buf, size_t n, struct vmpt_refusal *why)
{
	u8 before[sizeof(*vcpu)], after[sizeof(*vcpu)];
	int err;

	memcpy(before, vcpu, sizeof(before));

	*why = (struct vmpt_refusal){ 0 };
	err = vmpt_vcpu_restore(vcpu, buf, n, why);
	memcpy(after, vcpu, sizeof(after));
	if (err && memcmp(before, after, sizeof(before)))
		ck_abort_msg("changed by a refusal: %s: %s", why->field, why->rule);
	if (err && (!why->field || !why->rule))
		ck_abort_msg("error %d without a field", err);
	return err;
}

/* What a vCPU must never hold, whatever the bytes were. */
void state_check_sane(const struct vmpt_vcpu *vcpu, const char *what, u64 at)
{
	const struct vmpt_pt_regs *r = &vcpu->regs;
	bool fine = !(r->ctl & (VMPT_CTL_FABRIC_EN | 0xfe7f000000000000 | 1ULL << 18 | 1ULL << 23 |
				0x70000000)) &&
		    !(r->status & 0xfffe0000ffffff08) && !(r->output_base & 0xffffc0000000007f) &&
		    (r->output_mask_ptrs & 0x7f) == 0x7f && !(r->cr3_match & 0x1f);
	unsigned int i;

	for (i = 0; i < 8; i++)
		fine = fine && (r->addr[i] >> 47 == 0 || r->addr[i] >> 47 == 0x1ffff);
	for (i = 0; i < 4; i++)
		fine = fine && (r->ctl >> (32 + 4 * i) & 0xf) <= 2;
	fine = fine && vcpu->scan.cut_size < 16 && vcpu->cut_len[0] + vcpu->cut_len[1] < 16 &&
	       !vcpu->entered && !vcpu->ran &&
	       (!vcpu->vmx_operation || !(r->ctl & VMPT_CTL_TRACE_EN));
	if (!fine)
		ck_abort_msg("%s %lu: an impossible state", what, at);
}

/* What was accepted is a state: saved and restored again it does not change. */
void state_check_stable(const struct vmpt_vcpu *vcpu, const struct vmpt_caps *shown,
			const char *what, u64 at)
{
	u8 one[SAVED_MAX], two[SAVED_MAX];
	struct vmpt_vcpu again;
	size_t n = state_save(vcpu, one);

	state_make(&again, shown);
	if (vmpt_vcpu_restore(&again, one, n, NULL) || state_save(&again, two) != n ||
	    memcmp(one, two, n))
		ck_abort_msg("%s %lu: not the same when saved again", what, at);
}
