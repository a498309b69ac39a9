// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A VMM around the hand-over, for its tests. */
#include <stdlib.h>
#include <string.h>

#include "tests/vmm-lib/handover-rig.h"

#define HOST_CTL \
	(VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_TOPA | VMPT_CTL_BRANCH_EN | VMPT_CTL_TSC_EN)
#define HOST_CR3_MATCH	0x7777000ULL
#define GUEST_CR3_MATCH 0x2222000ULL
#define SHADOW_HPA	0x280000000ULL

static u64 host_addr(u32 i)
{
	return 0xffffffff81000000ULL + 0x1000 * i;
}

static u64 guest_addr(u32 i)
{
	return 0x400000ULL + 0x1000 * i;
}

enum rig_mode rig_mode(void)
{
	const char *mode = getenv("VMPT_HANDOVER");

	if (!mode || !strcmp(mode, "restore"))
		return RIG_RESTORE;
	return !strcmp(mode, "ctl") ? RIG_LEAN_CTL : RIG_LEAN;
}

/* ---- what is in the MSRs ---- */

static bool shared(const struct rig *rig, u32 msr)
{
	return vmpt_pt_msr_exists(&rig->v.rules, msr) && vmpt_pt_msr_exists(&rig->m.rules, msr);
}

/* How many of the MSRs that both have hold the host's values, and how many others. */
static void whose(struct rig *rig, u32 *hosts, u32 *others)
{
	const struct vmpt_pt_regs *regs = &rig->m.regs;
	u32 i;

	*hosts = regs->output_base - MACHINE_HPA < sizeof(rig->m.host);
	*others = !*hosts;
	if (!rig->config.restore_host)
		return; /* it uses no other */
	if (shared(rig, VMPT_MSR_RTIT_CR3_MATCH))
		++*(regs->cr3_match == HOST_CR3_MATCH ? hosts : others);
	for (i = 0; i < 8; i++)
		if (shared(rig, VMPT_MSR_RTIT_ADDR0_A + i))
			++*(regs->addr[i] == host_addr(i) ? hosts : others);
}

static void look(struct rig *rig, const char *when, int step)
{
	enum vmpt_msr_owner owner = vmpt_vcpu_pmi_owner(&rig->v);
	bool tracing = rig->m.regs.ctl & VMPT_CTL_TRACE_EN;
	const char *fault = NULL;
	u32 hosts, others;

	if (rig->unchecked)
		return;
	whose(rig, &hosts, &others);
	if (owner == VMPT_OWNED_BY_HOST && others && rig->config.restore_host)
		fault = "the guest's values while the host owns them";
	else if (owner == VMPT_OWNED_BY_GUEST && (hosts || tracing) && !rig->m.in_guest)
		fault = "the host's values or TraceEn while the guest owns them";
	else if (hosts && others && tracing)
		fault = "TraceEn while the values are mixed";
	else if (others && tracing && !rig->m.in_guest)
		fault = "the host is traced to the guest";
	else if (rig->m.faults && !rig->host_tracer.rude)
		fault = "a #GP";
	else if (rig->m.leaks || rig->m.mixed)
		fault = "bytes or a PMI went astray";
	if (fault)
		ck_abort_msg("%s %d, seed %llu: %s (%u host's, %u others, owner %d, CTL %#llx)",
			     when, step, (unsigned long long)rig->seed, fault, hosts, others,
			     (int)owner, (unsigned long long)rig->m.regs.ctl);
}

void rig_check_host(struct rig *rig)
{
	u32 hosts, others;

	whose(rig, &hosts, &others);
	if ((others && (rig->config.restore_host || rig->host_tracer.wants)) ||
	    vmpt_vcpu_pmi_owner(&rig->v) != VMPT_OWNED_BY_HOST ||
	    !!(rig->m.regs.ctl & VMPT_CTL_TRACE_EN) != rig->host_tracer.wants)
		ck_abort_msg("seed %llu: %u others, CTL %#llx, wants %d",
			     (unsigned long long)rig->seed, others,
			     (unsigned long long)rig->m.regs.ctl, rig->host_tracer.wants);
}

/* ---- the host's NMI handler ---- */

static void set_host_ctl(struct rig *rig, u64 ctl)
{
	if (machine_wrmsr(&rig->m, VMPT_MSR_RTIT_CTL, ctl))
		ck_abort_msg("seed %llu: the host's WRMSR", (unsigned long long)rig->seed);
}

void rig_nmi(struct rig *rig)
{
	struct rig_tracer *tracer = &rig->host_tracer;

	rig->m.nmi = false;
	tracer->nmis++;
	if (tracer->rude) {
		if (!(rig->m.regs.ctl & VMPT_CTL_TRACE_EN) && !rig->m.in_guest)
			set_host_ctl(rig, tracer->ctl);
		return;
	}
	if (vmpt_vcpu_pmi_owner(&rig->v) != VMPT_OWNED_BY_HOST) {
		if (tracer->hands_off)
			tracer->hands_off(rig);
		return;
	}
	look(rig, "NMI", -1);
	if (rig->m.global_status & VMPT_GLOBAL_TOPA_PMI) {
		if (rig->m.pmi_of != BY_HOST)
			ck_abort_msg("seed %llu: the host's handler takes the guest's PMI",
				     (unsigned long long)rig->seed);
		rig->m.global_status &= ~VMPT_GLOBAL_TOPA_PMI;
		tracer->pmis++;
	}
	if (tracer->hands_on)
		tracer->hands_on(rig);
}

/* ---- callbacks ---- */

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	return machine_rdmsr(&((struct rig *)opaque)->m, msr, value);
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	return machine_wrmsr(&((struct rig *)opaque)->m, msr, value);
}

static int set_guest_ctl(void *opaque, u64 ctl)
{
	struct rig *rig = opaque;

	if (rig->fail_set_ctl)
		return -1;
	rig->set_ctl = ctl;
	rig->m.guest_ctl = ctl;
	vmpt_vmx_lists(&rig->plan, ctl, &rig->m.lists);
	return 0;
}

static int host_ctl(void *opaque, u64 *ctl)
{
	*ctl = ((struct rig *)opaque)->m.regs.ctl;
	return 0;
}

/* A tracer knows what it would write to MSRs that may be the guest's. */
void rig_host_keeps(struct rig *rig, struct vmpt_pt_regs *regs)
{
	if (regs->output_base != VMPT_HOST_UNKNOWN)
		return;
	regs->output_base = MACHINE_HPA;
	regs->output_mask_ptrs = rig->host_tracer.at.output_mask_ptrs;
	regs->status = rig->host_tracer.at.status;
}

static int host_state(void *opaque, struct vmpt_pt_regs *regs)
{
	struct rig *rig = opaque;
	struct rig_tracer *tracer = &rig->host_tracer;

	tracer->asked++;
	if (rig->fail_host_state)
		return -VMPT_E_IO;
	if (!(regs->ctl & VMPT_CTL_TRACE_EN) && tracer->wants)
		rig_host_keeps(rig, regs);
	regs->ctl = tracer->wants ? tracer->ctl : tracer->ctl & ~VMPT_CTL_TRACE_EN;
	if (tracer->moved)
		regs->output_mask_ptrs = tracer->mask_ptrs;
	return 0;
}

static bool has_hosts(const struct rig *rig)
{
	return rig->m.regs.output_base - MACHINE_HPA < sizeof(rig->m.host);
}

static void note_position(struct rig *rig)
{
	if (has_hosts(rig))
		rig->host_tracer.at = rig->m.regs;
}

static void host_pmi(void *opaque)
{
	struct rig *rig = opaque;

	ck_assert_uint_eq(rig->m.pmi_of, BY_HOST);
	rig->host_tracer.pmis++;
	if (rig->stop_by_host_pmi)
		rig->host_tracer.wants = false;
}

static void check_position(const struct rig *rig)
{
	const struct vmpt_pt_regs *was = &rig->verified, *is = &rig->m.regs;

	if (is->ctl & VMPT_CTL_TRACE_EN || rig->host_tracer.moved || !rig->is_verified ||
	    rig->unchecked || !has_hosts(rig))
		return;
	if (was->output_mask_ptrs != is->output_mask_ptrs ||
	    (was->status ^ is->status) & ~VMPT_STATUS_READ_ONLY)
		ck_abort_msg("seed %llu: the host's position or STATUS is not what it was",
			     (unsigned long long)rig->seed);
}

static void on_step(void *opaque, enum vmpt_step step)
{
	struct rig *rig = opaque;

	if (rig->stepped < RIG_STEPS) {
		rig->steps[rig->stepped] = (u8)step;
		rig->owners[rig->stepped++] = (u8)vmpt_vcpu_pmi_owner(&rig->v);
	}
	look(rig, "step", (int)step);
	if (step == VMPT_STEP_ENTER_BEGIN)
		rig->is_verified = false;
	if (step == VMPT_STEP_HOST_VERIFIED) {
		note_position(rig);
		rig->is_verified = has_hosts(rig);
		rig->verified = rig->m.regs;
	}
	if (step == VMPT_STEP_HOST_OWNS)
		check_position(rig);
	if (!rig->m.in_guest)
		machine_run(&rig->m, rig->host_runs);
	if (rig->m.nmi || rig->nmi_steps >> step & 1)
		rig_nmi(rig);
	look(rig, "after step", (int)step);
}

static int read_guest(void *opaque, u64 gpa, void *buf, size_t len)
{
	return guest_read(&((struct rig *)opaque)->guest, gpa, buf, len);
}

static int write_guest(void *opaque, u64 gpa, const void *buf, size_t len)
{
	return guest_write(&((struct rig *)opaque)->guest, gpa, buf, len);
}

static int translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	return guest_translate(&((struct rig *)opaque)->guest, gpa, hpa, size);
}

static void inject(void *opaque)
{
	guest_pmi(&((struct rig *)opaque)->guest);
}

/* ---- set up ---- */

static void host_program(struct rig *rig)
{
	struct vmpt_pt_regs *regs = &rig->m.regs;
	u32 i;

	rig->host_tracer.ctl = HOST_CTL;
	regs->output_base = MACHINE_HPA;
	regs->status = 0;
	if (rig->m.rules.psb_cyc)
		regs->status = 1ULL << VMPT_STATUS_BYTES_SHIFT;
	if (rig->m.rules.cr3_filter)
		regs->cr3_match = HOST_CR3_MATCH;
	for (i = 0; i < 2u * rig->m.rules.ranges; i++)
		regs->addr[i] = host_addr(i);
	regs->ctl = HOST_CTL & ~VMPT_CTL_TRACE_EN;
	rig->host_tracer.at = *regs;
}

void rig_init_caps(struct rig *rig, unsigned int use)
{
	struct vmpt_refusal why = { "", "", 0, 0 };
	int err;

	guest_init(&rig->guest, RIG_PAGES);
	guest_shuffle(&rig->guest, 7);
	machine_init(&rig->m, &rig->host, &rig->guest);
	ck_assert_int_eq(vmpt_vmx_plan(&rig->plan, &rig->host, use, NULL), 0);
	rig->m.secondary = rig->plan.secondary.value;
	rig->m.exit = rig->plan.exit.value;
	rig->m.entry = rig->plan.entry.value;
	rig->shadow_page = aligned_alloc(GUEST_PAGE, GUEST_PAGE);
	rig->origin = calloc(VMPT_SHADOW_PER_PAGE, sizeof(*rig->origin));
	ck_assert(rig->shadow_page && rig->origin);
	rig->shadow.page[0] = rig->shadow_page;
	rig->shadow.page_hpa[0] = SHADOW_HPA;
	rig->shadow.origin = rig->origin;
	rig->shadow.pages = 1;
	rig->m.shadow = &rig->shadow;
	rig->ops = (struct vmpt_ops){
		.guest_read = read_guest,
		.guest_write = write_guest,
		.guest_translate = translate,
		.inject_pmi = inject,
		.hw_rdmsr = hw_rdmsr,
		.hw_wrmsr = hw_wrmsr,
		.set_guest_ctl = set_guest_ctl,
		.host_state = host_state,
		.host_ctl = rig_mode() == RIG_LEAN_CTL ? host_ctl : NULL,
		.host_pmi = host_pmi,
		.step = on_step,
	};
	rig->caps.vmx = 0;
	if (!rig->plan.guest_pt)
		rig->caps.cpuid.present = 0;
	rig->config = (struct vmpt_config){
		.host = &rig->host,
		.guest = &rig->caps,
		.plan = &rig->plan,
		.ops = &rig->ops,
		.opaque = rig,
		.restore_host = rig_mode() == RIG_RESTORE,
		.shadow = rig->plan.shadow ? &rig->shadow : NULL,
	};
	err = vmpt_vcpu_init(&rig->v, &rig->config, &why);
	if (err)
		ck_abort_msg("init: %s: %s", why.field, why.rule);
	host_program(rig);
	rig->regions = 4;
}

void rig_init(struct rig *rig, u32 vmx, unsigned int use)
{
	memset(rig, 0, sizeof(*rig));
	guest_full_caps(&rig->host);
	rig->host.vmx = vmx;
	rig->caps = rig->host;
	rig_init_caps(rig, use);
}

void rig_free(struct rig *rig)
{
	guest_free(&rig->guest);
	machine_free(&rig->m);
	free(rig->shadow_page);
	free(rig->origin);
}

static void guest_writes(struct rig *rig, u32 msr, u64 value)
{
	if (vmpt_pt_msr_exists(&rig->v.rules, msr))
		ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig->v, msr, value), 0);
}

void rig_guest_on(struct rig *rig, u64 more)
{
	u32 i;

	for (i = 0; i < rig->regions; i++)
		guest_put64(&rig->guest, RIG_TABLE + 8 * i,
			    RIG_REGIONS + i * GUEST_PAGE + (i & 1 ? VMPT_TOPA_INT : 0) +
				    (rig->line && i + 1 == rig->regions ? VMPT_TOPA_STOP : 0));
	guest_put64(&rig->guest, RIG_TABLE + 8 * i, RIG_TABLE | VMPT_TOPA_END);
	guest_writes(rig, VMPT_MSR_RTIT_OUTPUT_BASE, RIG_TABLE);
	guest_writes(rig, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
	guest_writes(rig, VMPT_MSR_RTIT_STATUS, 0);
	guest_writes(rig, VMPT_MSR_RTIT_CR3_MATCH, GUEST_CR3_MATCH);
	for (i = 0; i < 8; i++)
		guest_writes(rig, VMPT_MSR_RTIT_ADDR0_A + i, guest_addr(i));
	guest_writes(rig, VMPT_MSR_RTIT_CTL, RIG_CTL | more | VMPT_CTL_TRACE_EN);
}

void rig_guest_off(struct rig *rig)
{
	guest_writes(rig, VMPT_MSR_RTIT_CTL, rig->v.regs.ctl & ~VMPT_CTL_TRACE_EN);
}

void rig_guest_ack(struct rig *rig)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_vcpu_rdmsr(&rig->v, VMPT_MSR_PERF_GLOBAL_STATUS, &value), 0);
	if (value & VMPT_GLOBAL_TOPA_PMI)
		ck_assert_int_eq(
			vmpt_vcpu_wrmsr(&rig->v, VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI),
			0);
}

void rig_host_on(struct rig *rig)
{
	const struct vmpt_pt_regs *at = &rig->host_tracer.at;

	rig->host_tracer.wants = true;
	if (!has_hosts(rig)) {
		ck_assert(!machine_wrmsr(&rig->m, VMPT_MSR_RTIT_OUTPUT_BASE, MACHINE_HPA));
		ck_assert(!machine_wrmsr(&rig->m, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
					 at->output_mask_ptrs));
		ck_assert(!machine_wrmsr(&rig->m, VMPT_MSR_RTIT_STATUS, at->status));
	}
	set_host_ctl(rig, rig->host_tracer.ctl);
}

void rig_host_off(struct rig *rig)
{
	rig->host_tracer.wants = false;
	set_host_ctl(rig, rig->host_tracer.ctl & ~VMPT_CTL_TRACE_EN);
	note_position(rig);
}

void rig_forget(struct rig *rig)
{
	rig->stepped = 0;
	rig->m.reads = 0;
	rig->m.writes = 0;
}

int rig_round(struct rig *rig, u32 n)
{
	enum vmpt_exit_kind kind;
	int err = vmpt_vcpu_enter(&rig->v);

	if (err)
		return err;
	kind = machine_enter(&rig->m);
	if (kind == VMPT_EXIT_NORMAL) {
		look(rig, "in the guest", 0);
		/* The PMI's NMI causes an exit. */
		for (; n && !rig->m.nmi && !rig->m.violation; n--)
			machine_run(&rig->m, 1);
		machine_exit(&rig->m);
		if (rig->m.nmi)
			rig_nmi(rig);
	}
	err = vmpt_vcpu_exit(&rig->v, kind);
	if (rig->m.nmi)
		rig_nmi(rig);
	return err;
}

void rig_check_streams(struct rig *rig)
{
	u64 ring = rig->regions * GUEST_PAGE, logged = rig->m.logged;
	u64 at = logged < ring ? 0 : logged - ring;
	u8 *buf;

	ck_assert(machine_host_stream_ok(&rig->m));
	buf = malloc(ring);
	guest_get(&rig->guest, RIG_REGIONS, buf, ring);
	for (; at < logged; at++)
		if (buf[at % ring] != rig->m.log[at])
			ck_abort_msg("seed %llu: byte %llu of the guest's stream",
				     (unsigned long long)rig->seed, (unsigned long long)at);
	free(buf);
	ck_assert_uint_eq(rig->m.leaks, 0);
	ck_assert_uint_eq(rig->m.mixed, 0);
}
