// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which Intel PT features a processor has, and which of them a guest is offered (SDM 3 33.3.1,
 * 33.5.1). The offer is built from fields that the library knows: additions of later processors to
 * leaf 14H are never passed on.
 */
#include "vmm-lib/caps-rules.h"

#define MSR_VMX_BASIC	       0x480
#define MSR_VMX_PROCBASED      0x482
#define MSR_VMX_EXIT	       0x483
#define MSR_VMX_ENTRY	       0x484
#define MSR_VMX_MISC	       0x485
#define MSR_VMX_SECONDARY      0x48b
#define MSR_VMX_TRUE_PROCBASED 0x48e
#define MSR_VMX_TRUE_EXIT      0x48f
#define MSR_VMX_TRUE_ENTRY     0x490

/* Widths of a processor without leaf 80000008H. */
#define DEFAULT_MAXPHYADDR 36
#define DEFAULT_LINEAR	   48

/* Control bits of the six PT controls and of those they depend on. */
struct control_bit {
	u8 group; /* index into allowed[] */
	u8 bit;
	u16 vmx;   /* VMPT_VMX_… */
	u16 needs; /* others that must be present */
};

enum { SECONDARY, EXIT, ENTRY, GROUPS };

/* Table 33-52 and the rules of 33.5.1; a control comes after those it needs. */
static const struct control_bit controls[] = {
	{ SECONDARY, 1, VMPT_VMX_EPT, 0 },
	{ SECONDARY, 25, VMPT_VMX_TSC_SCALING, 0 },
	{ SECONDARY, 19, VMPT_VMX_CONCEAL_EXEC, VMPT_VMX_PT },
	{ EXIT, 24, VMPT_VMX_CONCEAL_EXIT, VMPT_VMX_PT },
	{ ENTRY, 17, VMPT_VMX_CONCEAL_ENTRY, VMPT_VMX_PT },
	{ EXIT, 25, VMPT_VMX_CLEAR_CTL, 0 },
	{ ENTRY, 18, VMPT_VMX_LOAD_CTL, 0 },
	{ SECONDARY, 24, VMPT_VMX_USE_GPA, VMPT_VMX_EPT | VMPT_VMX_CLEAR_CTL | VMPT_VMX_LOAD_CTL },
};

/* Models of family 6 on which PT and LBRs exclude each other (33.3.1.2). */
static const u8 no_lbr_models[] = { 0x3d, 0x47, 0x4e, 0x4f, 0x56, 0x5e };

/* An MSR that cannot be read counts as 0. */
static u64 read_msr(const struct vmpt_cpu_reader *reader, u32 msr)
{
	u64 value = 0;

	return reader->rdmsr(reader->opaque, msr, &value) ? 0 : value;
}

static void read_vmx(struct vmpt_caps *caps, const struct vmpt_cpu_reader *reader)
{
	bool true_controls = read_msr(reader, MSR_VMX_BASIC) >> 55 & 1;
	u32 allowed[GROUPS], procbased;
	size_t i;

	/* The high half of a capability MSR: controls that may be 1. */
	procbased = (u32)(read_msr(reader,
				   true_controls ? MSR_VMX_TRUE_PROCBASED : MSR_VMX_PROCBASED) >>
			  32);
	allowed[EXIT] =
		(u32)(read_msr(reader, true_controls ? MSR_VMX_TRUE_EXIT : MSR_VMX_EXIT) >> 32);
	allowed[ENTRY] =
		(u32)(read_msr(reader, true_controls ? MSR_VMX_TRUE_ENTRY : MSR_VMX_ENTRY) >> 32);
	/* Without "activate secondary controls" their MSR does not exist. */
	allowed[SECONDARY] = procbased >> 31 ? (u32)(read_msr(reader, MSR_VMX_SECONDARY) >> 32) : 0;

	if (caps->cpuid.present && read_msr(reader, MSR_VMX_MISC) >> 14 & 1)
		caps->vmx |= VMPT_VMX_PT;
	for (i = 0; i < VMPT_ARRAY_SIZE(controls); i++) {
		const struct control_bit *c = &controls[i];

		if (allowed[c->group] >> c->bit & 1 && (caps->vmx & c->needs) == c->needs)
			caps->vmx |= c->vmx;
	}
}

/* DisplayFamily_DisplayModel of CPUID.1:EAX. */
static bool excludes_lbr(u32 signature)
{
	u32 family = signature >> 8 & 0xf;
	u32 model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(no_lbr_models); i++)
		if (family == 6 && model == no_lbr_models[i])
			return true;
	return false;
}

static int cpuid(const struct vmpt_cpu_reader *reader, u32 leaf, u32 subleaf,
		 struct vmpt_cpuid_regs *regs)
{
	*regs = (struct vmpt_cpuid_regs){ 0 };
	return reader->cpuid(reader->opaque, leaf, subleaf, regs);
}

/*
 * A leaf above the last one returns the data of the last basic leaf, so @last, the highest leaf of
 * its range, is checked first. Zeros for a missing leaf.
 */
static int cpuid_below(const struct vmpt_cpu_reader *reader, u32 last, u32 leaf,
		       struct vmpt_cpuid_regs *regs)
{
	if (leaf <= last)
		return cpuid(reader, leaf, 0, regs);
	*regs = (struct vmpt_cpuid_regs){ 0 };
	return 0;
}

static int read_widths(struct vmpt_pt_cpuid *pt, const struct vmpt_cpu_reader *reader)
{
	struct vmpt_cpuid_regs regs;
	int err = cpuid(reader, 0x80000000, 0, &regs);

	pt->maxphyaddr = DEFAULT_MAXPHYADDR;
	pt->linear_bits = DEFAULT_LINEAR;
	if (err || regs.eax < 0x80000008 || regs.eax > 0x8000ffff)
		return err;
	err = cpuid(reader, 0x80000008, 0, &regs);
	pt->maxphyaddr = (u8)regs.eax;
	pt->linear_bits = (u8)(regs.eax >> 8);
	return err;
}

static int read_pt(struct vmpt_pt_cpuid *pt, const struct vmpt_cpu_reader *reader, u32 last)
{
	struct vmpt_cpuid_regs regs;
	int err = cpuid_below(reader, last, 7, &regs);

	pt->present = !err && last >= 0x14 && regs.ebx >> 25 & 1;
	if (err || !pt->present)
		return err;
	err = cpuid(reader, 0x14, 0, &pt->leaf14[0]);
	if (!err && pt->leaf14[0].eax >= 1)
		err = cpuid(reader, 0x14, 1, &pt->leaf14[1]);
	if (err)
		return err;
	err = cpuid_below(reader, last, 0x15, &regs);
	pt->tsc_denominator = regs.eax;
	pt->tsc_numerator = regs.ebx;
	pt->crystal_hz = regs.ecx;
	return err;
}

int vmpt_caps_read_abi(struct vmpt_caps *caps, const struct vmpt_cpu_reader *reader, u64 abi)
{
	struct vmpt_cpuid_regs first, one;
	int err;

	if (abi != VMPT_CAPS_ABI)
		return -VMPT_E_VERSION;
	if (!caps || !reader || !reader->cpuid)
		return -VMPT_E_INVAL;
	*caps = (struct vmpt_caps){ 0 };
	err = cpuid(reader, 0, 0, &first);
	if (!err)
		err = cpuid_below(reader, first.eax, 1, &one);
	if (!err)
		err = read_widths(&caps->cpuid, reader);
	if (!err)
		err = read_pt(&caps->cpuid, reader, first.eax);
	if (err)
		return err;
	if (caps->cpuid.present && excludes_lbr(one.eax))
		caps->vmx |= VMPT_VMX_NO_LBR;
	/* Without VMX (CPUID.1:ECX[5]) its MSRs do not exist. */
	if (reader->rdmsr && one.ecx >> 5 & 1)
		read_vmx(caps, reader);
	return 0;
}

/* Why a host with PT cannot offer any to a guest, or 0. */
static int check_host(const struct vmpt_caps *host, const struct vmpt_policy *policy,
		      struct vmpt_refusal *why)
{
	const struct vmpt_pt_cpuid *pt = &host->cpuid;

	if (!(host->vmx & VMPT_VMX_PT))
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_VMX_MISC,
				   "the host cannot trace in VMX operation", 1, 0);
	if (pt->maxphyaddr < 32 || pt->maxphyaddr > 52)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_MAXPHYADDR, "not 32 to 52",
				   pt->maxphyaddr, pt->maxphyaddr);
	if (pt->linear_bits != 48 && pt->linear_bits != 57)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_LINEAR, "not 48 or 57",
				   pt->linear_bits, pt->linear_bits);
	/* Which IPs the packets hold is fixed in the processor: it cannot be hidden. */
	if (policy->hide >> VMPT_CAP_LIP & 1 && vmpt_pt_cap_effective(pt, VMPT_CAP_LIP))
		return vmpt_refuse(why, VMPT_E_CAPS, vmpt_cap_field(VMPT_CAP_LIP),
				   "cannot be hidden: the packets hold LIPs", 0, 1);
	return 0;
}

int vmpt_caps_offer(const struct vmpt_caps *host, const struct vmpt_policy *policy,
		    struct vmpt_caps *guest, struct vmpt_refusal *why)
{
	struct vmpt_pt_cpuid offer;
	struct vmpt_leaf_fault fault;
	int err;

	*guest = *host;
	guest->vmx = 0;
	guest->cpuid.present = 0;
	memset(guest->cpuid.leaf14, 0, sizeof(guest->cpuid.leaf14));
	if (!host->cpuid.present || policy->no_pt)
		return 0;
	err = check_host(host, policy, why);
	if (err)
		return err;

	offer = guest->cpuid;
	switch (vmpt_leaf_offer(&host->cpuid, policy->hide, policy->ranges_max, &offer, &fault)) {
	case VMPT_LEAF_OK:
		guest->cpuid = offer;
		return 0;
	case VMPT_LEAF_OUTPUT:
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_OUTPUT,
				   "no output to memory is left: neither ToPA nor a single range",
				   fault.guest, fault.host);
	default:
		return vmpt_leaf_refuse(&fault, why);
	}
}
