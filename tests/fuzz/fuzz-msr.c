// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A vCPU under any sequence of operations on its MSRs: WRMSR, the VMM's own writes, SMI and RSM,
 * VMXON, XSAVES and XRSTORS, RESET, save and restore; step by step against the oracle of the tests.
 * Input: 4 bytes of capabilities and modes, then steps of 10 bytes (operation, MSR, value).
 */
#include "arch/types.h"
#include "tests/arch/regs-oracle.h"
#include "vmm-lib/vmpt.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define MEMORY 0x10000u

static u8 memory[MEMORY];
static _Alignas(4096) u64 tables[2][VMPT_SHADOW_PER_PAGE];
static struct vmpt_shadow_origin origins[2 * VMPT_SHADOW_PER_PAGE];

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	(void)opaque;
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, memory + gpa, len);
	return 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque;
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(memory + gpa, buf, len);
	return 0;
}

static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque;
	if (gpa >= MEMORY)
		return VMPT_MEM_UNBACKED;
	*hpa = 0x100000000ULL + gpa;
	*size = MEMORY - gpa;
	return 0;
}

static void inject_pmi(void *opaque)
{
	(void)opaque;
}

static const struct vmpt_ops ops = {
	.guest_read = guest_read,
	.guest_write = guest_write,
	.guest_translate = guest_translate,
	.inject_pmi = inject_pmi,
};

struct fuzz {
	struct vmpt_vcpu v;
	struct oracle o;
	bool in_smm, saved; /* the oracle's side of SMM */
	u8 area[VMPT_XSAVE_SIZE];
	u8 state[VMPT_STATE_MAX];
	int state_size;
};

/* Bits 0–10 of @bits: hidden capabilities; 11: a shadow; 12–13: ranges. */
static bool start(struct fuzz *f, u32 bits)
{
	static const u8 hide[] = { VMPT_CAP_CR3_FILTER, VMPT_CAP_PSB_CYC,     VMPT_CAP_IP_FILTER,
				   VMPT_CAP_MTC,	VMPT_CAP_PTWRITE,     VMPT_CAP_POWER,
				   VMPT_CAP_PRESERVE,	VMPT_CAP_EVENT,	      VMPT_CAP_TNT_DISABLE,
				   VMPT_CAP_TOPA,	VMPT_CAP_SINGLE_RANGE };
	static struct vmpt_shadow_memory shadow = { .origin = origins, .pages = 2 };
	static struct vmpt_caps host, guest;
	struct vmpt_policy policy = { .ranges_max = (u8)(1 + (bits >> 12 & 3)) };
	struct vmpt_vmx_plan plan = { .use = VMPT_USE_GUEST, .guest_pt = true };
	struct vmpt_config config = {
		.host = &host, .guest = &guest, .plan = &plan, .ops = &ops, .xsave = true
	};
	size_t i;

	memset(&host, 0, sizeof(host));
	oracle_full(&host.cpuid);
	vmpt_pt_cap_set(&host.cpuid, VMPT_CAP_FABRIC, 0);
	host.vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_USE_GPA | VMPT_VMX_CLEAR_CTL |
		   VMPT_VMX_LOAD_CTL;
	for (i = 0; i < sizeof(hide); i++)
		if (bits >> i & 1)
			policy.hide |= 1u << hide[i];
	if (vmpt_caps_offer(&host, &policy, &guest, NULL) || !guest.cpuid.present)
		return false;
	for (i = 0; i < 2; i++) {
		shadow.page[i] = tables[i];
		shadow.page_hpa[i] = 0x200000000ULL + 4096 * i;
	}
	plan.shadow = bits >> 11 & 1;
	config.shadow = &shadow;
	CHECK(!vmpt_vcpu_init(&f->v, &config, NULL));
	f->in_smm = false;
	f->saved = false;
	f->state_size = 0;
	memset(f->area, 0, sizeof(f->area));
	oracle_init(&f->o, &f->v.guest.cpuid);
	return true;
}

static u64 *ctl(struct fuzz *f)
{
	return &f->o.value[oracle_index(VMPT_MSR_RTIT_CTL)];
}

static void clear_trace_en(struct fuzz *f)
{
	*ctl(f) &= ~1ULL;
	f->o.value[oracle_index(VMPT_MSR_RTIT_STATUS)] &= ~4ULL; /* TriggerEn */
}

static void compare(struct fuzz *f)
{
	u64 value, expected;
	size_t i;

	for (i = 0; i < ORACLE_MSRS; i++) {
		int ret = vmpt_vcpu_rdmsr(&f->v, oracle_msrs[i], &value);

		CHECK(ret == (oracle_read(&f->o, oracle_msrs[i], &expected) ? 0 : VMPT_GP));
		CHECK(ret || value == expected);
	}
	CHECK(f->v.in_smm == f->in_smm && f->v.smm_trace_en == f->saved);
}

static void smi_rsm(struct fuzz *f, bool smi)
{
	int ret = smi ? vmpt_vcpu_smi(&f->v) : vmpt_vcpu_rsm(&f->v);

	if (smi == f->in_smm) {
		CHECK(ret == -VMPT_E_STATE);
	} else if (smi) {
		CHECK(!ret);
		f->in_smm = true;
		f->saved = *ctl(f) & 1;
		clear_trace_en(f);
	} else if (*ctl(f) & 1 || (f->saved && !oracle_write(&f->o, 0x570, *ctl(f) | 1))) {
		CHECK(ret == VMPT_SHUTDOWN);
	} else {
		CHECK(!ret);
		f->in_smm = false;
		f->saved = false;
	}
}

/* 33.2.8.1: like WRMSR of each, CTL last; all or nothing. */
static void xrstors(struct fuzz *f)
{
	static const u32 order[] = {
		0x583, 0x582, 0x581, 0x580, 0x572, 0x571, 0x561, 0x560, 0x570
	};
	static const u8 offset[] = { 64, 56, 48, 40, 32, 24, 16, 8, 0 };
	struct oracle o = f->o;
	bool ok = !(*ctl(f) & 1);
	size_t i;

	for (i = 0; i < 9 && ok; i++) {
		u64 value = vmpt_load64(f->area + offset[i]);

		if (oracle_exists(o.cpuid, order[i]))
			ok = oracle_write(&o, order[i], value);
		else
			ok = !(value & ~(order[i] == 0x561 ? 0x7fULL : 0));
	}
	CHECK(vmpt_vcpu_xrstors(&f->v, f->area) == (ok ? 0 : VMPT_GP));
	if (ok)
		f->o = o;
}

static void vmx(struct fuzz *f, bool on)
{
	if (on) {
		CHECK(!vmpt_vcpu_vmxon(&f->v));
		clear_trace_en(f);
		f->saved = false;
	} else {
		CHECK(!vmpt_vcpu_vmxoff(&f->v));
	}
	f->o.no_ctl_writes = on;
}

/* Restore returns the saved values, whatever happened between. */
static void save_restore(struct fuzz *f)
{
	struct vmpt_vcpu before = f->v;

	f->state_size = vmpt_vcpu_save(&f->v, f->state, sizeof(f->state));
	CHECK(f->state_size > 0);
	vmpt_vcpu_reset(&f->v, false);
	CHECK(!vmpt_vcpu_restore(&f->v, f->state, (size_t)f->state_size, NULL));
	CHECK(!memcmp(&before.regs, &f->v.regs, sizeof(before.regs)));
}

static void step(struct fuzz *f, u8 what, u32 msr, u64 value)
{
	switch (what % 16) {
	case 0 ... 3:
		CHECK(vmpt_vcpu_wrmsr(&f->v, msr, value) ==
		      (oracle_write(&f->o, msr, value) ? 0 : VMPT_GP));
		break;
	case 4: /* 0 to a missing MSR is accepted */
		CHECK(vmpt_vcpu_set_msr(&f->v, msr, value) ==
		      (oracle_restore(&f->o, msr, value) ||
				       (!value && !oracle_exists(f->o.cpuid, msr))
			       ? 0
			       : VMPT_GP));
		break;
	case 5:
		smi_rsm(f, true);
		break;
	case 6:
		smi_rsm(f, false);
		break;
	case 7:
	case 8:
		vmx(f, what % 16 == 7);
		break;
	case 9:
		CHECK(!vmpt_vcpu_xsaves(&f->v, f->area));
		clear_trace_en(f);
		break;
	case 10:
		xrstors(f);
		break;
	case 11:
		memcpy(f->area + value % 15 * 8, &value, sizeof(value));
		break;
	case 12:
		save_restore(f);
		break;
	case 13:
		memcpy(memory + (value >> 32) % (MEMORY / 8) * 8, &value, sizeof(value));
		break;
	case 14:
		vmpt_shadow_invalidate(&f->v, value % MEMORY, value >> 32);
		break;
	default:
		vmpt_vcpu_pmi(&f->v);
		CHECK(!vmpt_vcpu_rdmsr(&f->v, 0x38e, &value));
		vmpt_vcpu_wrmsr(&f->v, 0x390, value);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct fuzz f;

	if (size < 4 || !start(&f, vmpt_load32(data)))
		return 0;
	for (data += 4, size -= 4; size >= 10; data += 10, size -= 10) {
		step(&f, data[0], oracle_msrs[data[1] % ORACLE_MSRS], vmpt_load64(data + 2));
		compare(&f);
	}
	return 0;
}
