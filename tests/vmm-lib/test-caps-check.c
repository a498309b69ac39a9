// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/caps-check.c: each rule by a table, and all of a host's capability bits against all of a
 * guest's, in groups without rules between them, by an oracle on the registers.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

/* ---- one rule per row: a host that has everything, its full offer, one thing changed ---- */

enum what { EAX0, EBX0, ECX0, EDX0, EAX1, EBX1, ECX1, EDX1, MAXPA, LINEAR, PRESENT, VMX, WHATS };

static void ignore_pmi(void *opaque)
{
	(void)opaque;
}

static void put(struct vmpt_caps *caps, unsigned int what, u32 value)
{
	struct vmpt_cpuid_regs *r = caps->cpuid.leaf14;
	u32 *const reg[] = { &r[0].eax, &r[0].ebx, &r[0].ecx, &r[0].edx,
			     &r[1].eax, &r[1].ebx, &r[1].ecx, &r[1].edx };

	if (what < MAXPA)
		*reg[what] = value;
	else if (what == MAXPA)
		caps->cpuid.maxphyaddr = (u8)value;
	else if (what == LINEAR)
		caps->cpuid.linear_bits = (u8)value;
	else if (what == PRESENT)
		caps->cpuid.present = (u8)value;
	else
		caps->vmx = value;
}

#define SAME WHATS

/* Host: field and value (SAME: as guest_full_caps()); guest: two of them. */
static const struct {
	u8 host;
	u32 host_value;
	u8 guest;
	u32 guest_value;
	u8 guest2;
	u32 guest_value2;
	const char *field, *rule;
	u64 why_guest, why_host;
} refusals[] = {
	{ PRESENT, 0, SAME, 0, SAME, 0, "CPUID.7.0:EBX[25] Intel PT", "the host has no PT", 1, 0 },
	{ VMX, 0x1fe, SAME, 0, SAME, 0, "IA32_VMX_MISC[14]",
	  "the host cannot trace in VMX operation", 1, 0 },
	{ SAME, 0, VMX, VMPT_VMX_PT, SAME, 0, "VMX controls for PT",
	  "PT is not offered to L2 guests", 1, 0x1ff },
	/* the machine */
	{ SAME, 0, MAXPA, 47, SAME, 0, "CPUID.80000008H:EAX[7:0] MAXPHYADDR",
	  "more address bits than the host has", 47, 46 },
	{ SAME, 0, MAXPA, 31, SAME, 0, "CPUID.80000008H:EAX[7:0] MAXPHYADDR", "not 32 to 52", 31,
	  46 },
	{ MAXPA, 63, MAXPA, 53, SAME, 0, "CPUID.80000008H:EAX[7:0] MAXPHYADDR", "not 32 to 52", 53,
	  63 },
	{ SAME, 0, LINEAR, 57, SAME, 0, "CPUID.80000008H:EAX[15:8] linear-address width",
	  "more address bits than the host has", 57, 48 },
	{ SAME, 0, LINEAR, 47, SAME, 0, "CPUID.80000008H:EAX[15:8] linear-address width",
	  "not 48 or 57", 47, 48 },
	{ LINEAR, 64, LINEAR, 58, SAME, 0, "CPUID.80000008H:EAX[15:8] linear-address width",
	  "not 48 or 57", 58, 64 },
	/* subleaves */
	{ SAME, 0, EAX0, 2, SAME, 0, "CPUID.14H.0:EAX last subleaf",
	  "more subleaves than are virtualized", 2, 1 },
	{ EAX0, 7, EAX0, 2, SAME, 0, "CPUID.14H.0:EAX last subleaf",
	  "more subleaves than are virtualized", 2, 7 },
	{ EAX0, 0, EAX0, 1, SAME, 0, "CPUID.14H.0:EAX last subleaf", "more than the host has", 1,
	  0 },
	{ SAME, 0, EAX0, 0, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "its subleaf is beyond the last one", 4, 4 },
	{ SAME, 0, EAX0, 0, EAX1, 0x10000, "CPUID.14H.1:EAX[31:16] MTC periods",
	  "its subleaf is beyond the last one", 1, 0xffff },
	/* a capability that the host lacks */
	{ EBX0, 0x1fe, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[0] CR3 filtering", "missing on the host",
	  1, 0 },
	{ EBX0, 0x1fd, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[1] configurable PSB and CYC",
	  "missing on the host", 1, 0 },
	{ EBX0, 0x1fb, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[2] IP filtering", "missing on the host",
	  1, 0 },
	{ EBX0, 0x1f7, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[3] MTC", "missing on the host", 1, 0 },
	{ EBX0, 0x1ef, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[4] PTWRITE", "missing on the host", 1,
	  0 },
	{ EBX0, 0x1df, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[5] power events", "missing on the host",
	  1, 0 },
	{ EBX0, 0x1bf, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[6] PSB and PMI preservation",
	  "missing on the host", 1, 0 },
	{ EBX0, 0x17f, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[7] Event Trace", "missing on the host", 1,
	  0 },
	{ EBX0, 0x0ff, SAME, 0, SAME, 0, "CPUID.14H.0:EBX[8] TNT disable", "missing on the host", 1,
	  0 },
	{ ECX0, 0x80000006, SAME, 0, SAME, 0, "CPUID.14H.0:ECX[0] ToPA", "missing on the host", 1,
	  0 },
	{ ECX0, 0x80000005, SAME, 0, SAME, 0, "CPUID.14H.0:ECX[1] ToPA of many entries",
	  "missing on the host", 1, 0 },
	{ ECX0, 0x80000003, SAME, 0, SAME, 0, "CPUID.14H.0:ECX[2] single-range output",
	  "missing on the host", 1, 0 },
	/* the host's own field without its parent does not count */
	{ ECX0, 0x80000006, ECX0, 0x80000006, SAME, 0, "CPUID.14H.0:ECX[1] ToPA of many entries",
	  "missing on the host", 1, 0 },
	/* never (D11): not even if the host has it */
	{ ECX0, 0x8000000f, ECX0, 0x8000000f, SAME, 0, "CPUID.14H.0:ECX[3] trace transport",
	  "never virtualized", 1, 1 },
	/* LIP, both ways */
	{ ECX0, 0x00000007, SAME, 0, SAME, 0, "CPUID.14H.0:ECX[31] LIP",
	  "differs from the host's packets", 1, 0 },
	{ SAME, 0, ECX0, 0x00000007, SAME, 0, "CPUID.14H.0:ECX[31] LIP",
	  "differs from the host's packets", 0, 1 },
	/* ranges */
	{ EAX1, 0xffff0002, SAME, 0, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "more than the host has", 4, 2 },
	{ SAME, 0, EAX1, 0xffff0005, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "more than four address ranges", 5, 4 },
	{ EAX1, 0xffff0007, EAX1, 0xffff0007, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "more than four address ranges", 7, 4 },
	/* encodings */
	{ EAX1, 0x02490004, EAX1, 0x024b0004, SAME, 0, "CPUID.14H.1:EAX[31:16] MTC periods",
	  "an encoding that the host lacks", 0x24b, 0x249 },
	{ EBX1, 0x003f1fff, EBX1, 0x003f3fff, SAME, 0, "CPUID.14H.1:EBX[15:0] cycle thresholds",
	  "an encoding that the host lacks", 0x3fff, 0x1fff },
	{ EBX1, 0x003f1fff, EBX1, 0x007f1fff, SAME, 0, "CPUID.14H.1:EBX[31:16] PSB frequencies",
	  "an encoding that the host lacks", 0x7f, 0x3f },
	/* parents */
	{ SAME, 0, ECX0, 0x80000006, SAME, 0, "CPUID.14H.0:ECX[1] ToPA of many entries",
	  "the field it belongs to is 0", 1, 1 },
	{ SAME, 0, EBX0, 0x1fb, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "the field it belongs to is 0", 4, 4 },
	{ SAME, 0, EBX0, 0x1f7, SAME, 0, "CPUID.14H.1:EAX[31:16] MTC periods",
	  "the field it belongs to is 0", 0xffff, 0xffff },
	{ SAME, 0, EBX0, 0x1fd, SAME, 0, "CPUID.14H.1:EBX[15:0] cycle thresholds",
	  "the field it belongs to is 0", 0xffff, 0xffff },
	{ SAME, 0, EBX0, 0x1fd, EBX1, 0xffff0000, "CPUID.14H.1:EBX[31:16] PSB frequencies",
	  "the field it belongs to is 0", 0xffff, 0xffff },
	/* features without a value */
	{ SAME, 0, EAX1, 0xffff0000, SAME, 0, "CPUID.14H.1:EAX[2:0] RANGECNT",
	  "its feature needs at least one value", 0, 4 },
	{ SAME, 0, EAX1, 0x00000004, SAME, 0, "CPUID.14H.1:EAX[31:16] MTC periods",
	  "its feature needs at least one value", 0, 0xffff },
	{ SAME, 0, EBX1, 0xffff0000, SAME, 0, "CPUID.14H.1:EBX[15:0] cycle thresholds",
	  "its feature needs at least one value", 0, 0xffff },
	{ SAME, 0, EBX1, 0x0000ffff, SAME, 0, "CPUID.14H.1:EBX[31:16] PSB frequencies",
	  "its feature needs at least one value", 0, 0xffff },
	/* the host lacks what a guest without them would trace with */
	{ EBX1, 0x003effff, EBX0, 0x1fd, EBX1, 0, "CPUID.14H.1:EBX[31:16] PSB frequencies",
	  "cannot be hidden: the host does not list encoding 0", 0, 0x3e },
	/* no output */
	{ SAME, 0, ECX0, 0x80000000, SAME, 0, "CPUID.14H.0:ECX[2,0] output schemes",
	  "neither ToPA nor a single range", 0, 5 },
	/* reserved bits: the first and the last of each gap (D10) */
	{ EBX0, 0xffffffff, EBX0, 0x5ff, SAME, 0, "CPUID.14H.0:EBX", "a reserved bit is set", 0x5ff,
	  0x1ff },
	/* A2: Trigger Tracing without the host's, and more of it than the host has */
	{ SAME, 0, EBX0, 0x3ff, SAME, 0, "CPUID.14H.0:EBX", "a reserved bit is set", 0x3ff, 0x1ff },
	{ EAX1, 0xffff0304, EAX1, 0xffff0404, SAME, 0, "CPUID.14H.1:EAX", "a reserved bit is set",
	  0xffff0404, 0xffff0007 },
	{ ECX1, 0x8001, ECX1, 0x8002, SAME, 0, "CPUID.14H.1:ECX", "a reserved bit is set", 0x8002,
	  0 },
	{ ECX1, 0xffffffff, ECX1, 4, SAME, 0, "CPUID.14H.1:ECX", "a reserved bit is set", 4, 0 },
	{ SAME, 0, EBX0, 0x800001ff, SAME, 0, "CPUID.14H.0:EBX", "a reserved bit is set",
	  0x800001ff, 0x1ff },
	{ ECX0, 0xffffffff, ECX0, 0x80000017, SAME, 0, "CPUID.14H.0:ECX", "a reserved bit is set",
	  0x80000017, 0x8000000f },
	{ SAME, 0, ECX0, 0xc0000007, SAME, 0, "CPUID.14H.0:ECX", "a reserved bit is set",
	  0xc0000007, 0x8000000f },
	{ EDX0, 1, EDX0, 1, SAME, 0, "CPUID.14H.0:EDX", "a reserved bit is set", 1, 0 },
	{ SAME, 0, EAX1, 0xffff000c, SAME, 0, "CPUID.14H.1:EAX", "a reserved bit is set",
	  0xffff000c, 0xffff0007 },
	{ SAME, 0, EAX1, 0xffff8004, SAME, 0, "CPUID.14H.1:EAX", "a reserved bit is set",
	  0xffff8004, 0xffff0007 },
	{ ECX1, 0x80000000, ECX1, 0x80000000, SAME, 0, "CPUID.14H.1:ECX", "a reserved bit is set",
	  0x80000000, 0 },
	{ SAME, 0, EDX1, 1, SAME, 0, "CPUID.14H.1:EDX", "a reserved bit is set", 1, 0 },
};

/* D12: each wrong value that KVM_SET_CPUID2 could have is refused, with its field. */
START_TEST(refused)
{
	struct vmpt_caps host, guest;
	struct vmpt_refusal why;

	guest_full_caps(&host);
	guest = host;
	guest.vmx = 0;
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, &why), 0);
	if (refusals[_i].host != SAME)
		put(&host, refusals[_i].host, refusals[_i].host_value);
	if (refusals[_i].guest != SAME)
		put(&guest, refusals[_i].guest, refusals[_i].guest_value);
	if (refusals[_i].guest2 != SAME)
		put(&guest, refusals[_i].guest2, refusals[_i].guest_value2);
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, refusals[_i].field);
	ck_assert_str_eq(why.rule, refusals[_i].rule);
	ck_assert_uint_eq(why.guest, refusals[_i].why_guest);
	ck_assert_uint_eq(why.host, refusals[_i].why_host);
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, NULL), -VMPT_E_CAPS);
	/* PT that is not shown may have any values. */
	guest.cpuid.present = 0;
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, NULL), 0);
}
END_TEST

/*
 * A host with Trigger Tracing can support its own leaf; a guest is neither offered nor shown the
 * bits, and has no more of PT than the same host without them gives it.
 */
START_TEST(a2_a_host_with_triggers)
{
	struct vmpt_vmx_plan plan;
	struct vmpt_caps plain, host, guest, offer, plain_offer;
	struct vmpt_cpuid_regs shown;
	struct vmpt_refusal why;
	struct guest memory;
	struct vmpt_vcpu vcpu;
	struct vmpt_ops ops = { .guest_read = guest_read,
				.guest_write = guest_write,
				.inject_pmi = ignore_pmi };
	struct vmpt_config config = {
		.host = &host, .guest = &guest, .plan = &plan, .ops = &ops, .opaque = &memory
	};

	guest_full_caps(&plain);
	host = plain;
	ck_assert_uint_eq(vmpt_pt_triggers(&host.cpuid), 0);
	put(&host, EBX0, 0x3ff);
	put(&host, EAX1, 0xffff0404);
	put(&host, ECX1, 0x8003);
	ck_assert_uint_eq(vmpt_pt_triggers(&host.cpuid), 4);
	guest = host;
	guest.vmx = 0;
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, &why), 0);
	ck_assert_int_eq(vmpt_caps_check(&plain, &guest, &why), -VMPT_E_CAPS);

	ck_assert_int_eq(vmpt_caps_offer(&host, &vmpt_policy_all, &offer, NULL), 0);
	ck_assert_int_eq(vmpt_caps_offer(&plain, &vmpt_policy_all, &plain_offer, NULL), 0);
	ck_assert_mem_eq(offer.cpuid.leaf14, plain_offer.cpuid.leaf14, sizeof(offer.cpuid.leaf14));

	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, NULL), 0);
	ck_assert_int_eq(vmpt_vcpu_init(&vcpu, &config, &why), 0);
	vmpt_vcpu_cpuid(&vcpu, 0x14, 0, &shown);
	ck_assert_uint_eq(shown.ebx, 0x1ff);
	vmpt_vcpu_cpuid(&vcpu, 0x14, 1, &shown);
	ck_assert_uint_eq(shown.eax, 0xffff0004);
	ck_assert_uint_eq(shown.ecx, 0);
}
END_TEST

/* ---- all against all ---- */

static bool subset(u32 a, u32 b)
{
	return !(a & ~b);
}

/* Tables 33-11 and 33-12 on bare registers, for machines that otherwise agree. */
static bool oracle(const struct vmpt_cpuid_regs h[2], const struct vmpt_cpuid_regs g[2])
{
	u32 ranges = h[1].eax & 7, g_ranges = g[1].eax & 7, topa = h[0].ecx & 3;
	struct vmpt_cpuid_regs h1 = h[1];

	if (!h[0].eax)
		h1 = (struct vmpt_cpuid_regs){ 0 };
	if (!(h[0].ebx & 4) || !h[0].eax)
		ranges = 0;
	if (!(h[0].ebx & 8))
		h1.eax &= 0xffff;
	if (!(h[0].ebx & 2))
		h1.ebx = 0;
	if (!(topa & 1))
		topa = 0;
	if (g[0].eax > 1 || g[0].eax > h[0].eax)
		return false;
	if (!subset(g[0].ebx, h[0].ebx & 0x1ff) ||
	    !subset(g[0].ecx & 0x7fffffff, topa | (h[0].ecx & 4)))
		return false;
	if ((g[0].ecx ^ h[0].ecx) >> 31 || !(g[0].ecx & 5) || (g[0].ecx & 3) == 2)
		return false;
	if (g[0].edx || g[1].ecx || g[1].edx || g[1].eax & 0xfff8)
		return false;
	if (g_ranges > (ranges < 4 ? ranges : 4) || !subset(g[1].eax >> 16, h1.eax >> 16) ||
	    !subset(g[1].ebx, h1.ebx))
		return false;
	/* Each feature of subleaf 0 with its values, or neither. */
	if (!g[0].eax && (g[1].eax || g[1].ebx))
		return false;
	/* PSBFreq 0 is what a guest without EBX[1] traces with. */
	if (!(g[0].ebx & 2) && h[0].ebx & 2 && !(h1.ebx & 0x10000))
		return false;
	return !!(g[0].ebx & 4) == !!g_ranges && !!(g[0].ebx & 8) == !!(g[1].eax >> 16) &&
	       !!(g[0].ebx & 2) == !!(g[1].ebx >> 16) && !!(g[0].ebx & 2) == !!(g[1].ebx & 0xffff);
}

static void fail_pair(const char *what, const struct vmpt_caps *host, const struct vmpt_caps *guest)
{
	const struct vmpt_cpuid_regs *h = host->cpuid.leaf14, *g = guest->cpuid.leaf14;

	ck_abort_msg("%s: host %x %x %x %x, %x %x %x %x guest %x %x %x %x, %x %x %x %x", what,
		     h[0].eax, h[0].ebx, h[0].ecx, h[0].edx, h[1].eax, h[1].ebx, h[1].ecx, h[1].edx,
		     g[0].eax, g[0].ebx, g[0].ecx, g[0].edx, g[1].eax, g[1].ebx, g[1].ecx,
		     g[1].edx);
}

/* The check is the oracle, and nothing that passes is more than the offer. */
static bool compare(const struct vmpt_caps *host, const struct vmpt_caps *offer, bool offered,
		    const struct vmpt_caps *guest)
{
	const struct vmpt_cpuid_regs *g = guest->cpuid.leaf14, *o = offer->cpuid.leaf14;
	bool fits = oracle(host->cpuid.leaf14, g);
	struct vmpt_refusal why = { 0 };

	if ((vmpt_caps_check(host, guest, &why) == 0) != fits)
		fail_pair(fits ? why.field : "passed", host, guest);
	if (!fits)
		return false;
	if (!offered || !subset(g[0].ebx, o[0].ebx) || !subset(g[0].ecx, o[0].ecx) ||
	    g[0].eax > o[0].eax || (g[1].eax & 7) > (o[1].eax & 7) ||
	    !subset(g[1].eax >> 16, o[1].eax >> 16) || !subset(g[1].ebx, o[1].ebx))
		fail_pair("more than was offered", host, guest);
	return true;
}

/*
 * Whether any guest can be supported. EBX[1] needs thresholds and frequencies, and without it a
 * guest has PSBFreq 0.
 */
static bool can_offer(const struct vmpt_cpuid_regs h[2])
{
	u32 ebx1 = h[0].eax ? h[1].ebx : 0;

	if (!(h[0].ecx & 5))
		return false;
	return !(h[0].ebx & 2) || ebx1 & 0x10000 || (ebx1 & 0xffff && ebx1 >> 16);
}

/* The offer for @host passes the check; whether there is one. */
static bool offer_for(const struct vmpt_caps *host, struct vmpt_caps *offer)
{
	int err = vmpt_caps_offer(host, &vmpt_policy_all, offer, NULL);

	if (err && !can_offer(host->cpuid.leaf14)) {
		if (err != -VMPT_E_CAPS || offer->cpuid.present)
			fail_pair("refused, but present", host, offer);
		return false;
	}
	if (err || !offer->cpuid.present || !oracle(host->cpuid.leaf14, offer->cpuid.leaf14) ||
	    vmpt_caps_check(host, offer, NULL))
		fail_pair("offer", host, offer);
	return true;
}

/* All 9 flags of EBX of host and guest, with and without the values of subleaf 1. */
START_TEST(all_of_ebx)
{
	static const u32 values[][2] = { { 0xffff0004, 0xffffffff },
					 { 0, 0 },
					 { 0x00010001, 0x00010001 } };
	struct vmpt_caps host, guest, offer;
	u32 h, g, i, fits = 0;
	bool offered;

	guest_full_caps(&host);
	guest = host;
	guest.vmx = 0;
	for (h = 0; h < 0x200; h++) {
		host.cpuid.leaf14[0].ebx = h;
		offered = offer_for(&host, &offer);
		for (g = 0; g < 0x200; g++) {
			guest.cpuid.leaf14[0].ebx = g;
			for (i = 0; i < VMPT_ARRAY_SIZE(values); i++) {
				guest.cpuid.leaf14[1].eax =
					g & 8 || i < 2 ? values[i][0] : values[i][0] & 7;
				if (!(g & 4))
					guest.cpuid.leaf14[1].eax &= 0xffff0000;
				guest.cpuid.leaf14[1].ebx = g & 2 || i < 2 ? values[i][1] : 0;
				fits += compare(&host, &offer, offered, &guest);
			}
		}
	}
	ck_assert_uint_gt(fits, 1000);
}
END_TEST

/* Output schemes, LIP and the transport, with the last subleaf of both. */
START_TEST(all_of_ecx_and_eax)
{
	struct vmpt_caps host, guest, offer;
	u32 h, g, h_eax, g_eax, bare, fits = 0;
	bool offered;

	for (h = 0; h < 0x100; h++) {
		h_eax = h >> 5 & 3;
		guest_full_caps(&host);
		if (h >> 7) /* a host that can be offered without subleaf 1 */
			host.cpuid.leaf14[0].ebx &= ~2u;
		host.cpuid.leaf14[0].eax = h_eax;
		host.cpuid.leaf14[0].ecx = (h & 0xf) | (h >> 4 & 1) << 31;
		offered = offer_for(&host, &offer);
		for (g = 0; g < 0x400; g++) {
			g_eax = g >> 8;
			bare = g >> 7 & 1; /* a guest without any of subleaf 1 */
			guest = host;
			guest.vmx = 0;
			guest.cpuid.leaf14[0].eax = g_eax;
			guest.cpuid.leaf14[0].ecx =
				(g & 0x1f) | (g >> 5 & 1) << 31 | (g >> 6 & 1) << 30;
			if (bare) {
				guest.cpuid.leaf14[0].ebx &= 0x1f1;
				memset(&guest.cpuid.leaf14[1], 0, sizeof(guest.cpuid.leaf14[1]));
			}
			fits += compare(&host, &offer, offered, &guest);
		}
	}
	ck_assert_uint_gt(fits, 50);
}
END_TEST

/* RANGECNT of both, and IP filtering of both. */
START_TEST(all_ranges)
{
	struct vmpt_caps host, guest, offer;
	u32 n, fits = 0;
	bool offered;

	for (n = 0; n < 0x100; n++) {
		guest_full_caps(&host);
		guest = host;
		guest.vmx = 0;
		host.cpuid.leaf14[1].eax = 0xffff0000 | (n & 7);
		guest.cpuid.leaf14[1].eax = 0xffff0000 | (n >> 3 & 7);
		host.cpuid.leaf14[0].ebx ^= n >> 6 & 1 ? 4 : 0;
		guest.cpuid.leaf14[0].ebx ^= n >> 7 & 1 ? 4 : 0;
		offered = offer_for(&host, &offer);
		fits += compare(&host, &offer, offered, &guest);
	}
	/* 4 without filtering for each of 8 hosts, twice; 1 to min(host, 4): 0+1+2+3+4*4 */
	ck_assert_uint_eq(fits, 16 + 22);
}
END_TEST

/* The four bitmaps: any value against any, with few or many bits. */
static u32 some_bits(struct test_rng *rng)
{
	u64 r = test_random(rng);
	u32 bits = (u32)(r >> 32);

	switch (r % 4) {
	case 0:
		return bits;
	case 1:
		return bits & (u32)test_random(rng);
	case 2:
		return bits | (u32)test_random(rng);
	default:
		return r & 4 ? ~0u : 0;
	}
}

static void random_leaf(struct test_rng *rng, struct vmpt_pt_cpuid *pt,
			const struct vmpt_pt_cpuid *of)
{
	u64 r = test_random(rng);
	u32 seldom = r % 8 ? 0 : ~0u;
	const struct vmpt_cpuid_regs *o = of ? of->leaf14 : NULL;

	pt->leaf14[0].eax = r >> 8 & 3;
	pt->leaf14[0].ebx = some_bits(rng) & (0x1ff | seldom) & (o ? o[0].ebx | seldom : ~0u);
	pt->leaf14[0].ecx = some_bits(rng) & (0x80000007 | seldom);
	pt->leaf14[1].eax = some_bits(rng) & (0xffff0007 | seldom) & (o ? o[1].eax | seldom : ~0u);
	pt->leaf14[1].ebx = some_bits(rng) & (o ? o[1].ebx | seldom : ~0u);
	pt->leaf14[0].edx = (r >> 16) % 64 ? 0 : some_bits(rng);
	pt->leaf14[1].ecx = (r >> 24) % 64 ? 0 : some_bits(rng);
	pt->leaf14[1].edx = (r >> 32) % 64 ? 0 : some_bits(rng);
	/* Mostly consistent: what a guest's flags need is present. */
	if (o && r >> 40 & 3) {
		pt->leaf14[0].eax = 1;
		if (!(pt->leaf14[0].ebx & 2))
			pt->leaf14[1].ebx = 0;
		if (!(pt->leaf14[0].ebx & 4))
			pt->leaf14[1].eax &= ~7u;
		if (!(pt->leaf14[0].ebx & 8))
			pt->leaf14[1].eax &= 7;
	}
}

static u32 random_pairs(u64 seed, u32 count)
{
	struct test_rng rng = { seed };
	struct vmpt_caps host, guest, offer;
	u32 i, j, fits = 0;
	bool offered;

	guest_full_caps(&host);
	guest = host;
	guest.vmx = 0;
	for (i = 0; i < count; i++) {
		random_leaf(&rng, &host.cpuid, NULL);
		offered = offer_for(&host, &offer);
		for (j = 0; j < 8; j++) {
			random_leaf(&rng, &guest.cpuid, &host.cpuid);
			fits += compare(&host, &offer, offered, &guest);
		}
	}
	return fits;
}

START_TEST(random_leaves)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed = 1;

	/* The messages name the registers; the seed is the number of the round. */
	ck_assert_uint_gt(random_pairs(seed, 50000), 200);
	while (soak && time(NULL) < end)
		random_pairs(++seed, 50000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("caps-check");
	TCase *tcase = tcase_create("caps-check");

	tcase_add_loop_test(tcase, refused, 0, VMPT_ARRAY_SIZE(refusals));
	tcase_add_test(tcase, a2_a_host_with_triggers);
	tcase_add_test(tcase, all_of_ebx);
	tcase_add_test(tcase, all_of_ecx_and_eax);
	tcase_add_test(tcase, all_ranges);
	tcase_add_test(test_random_case(suite), random_leaves);
	suite_add_tcase(suite, tcase);
	return suite;
}
