// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/vmx.c: each use on each processor against a second implementation of the rules of SDM 3
 * 33.5 (Table 33-52) and of the checks of VM entry.
 */
#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

/* D-c: what was the default once. */
#define SHOWN (VMPT_USE_GUEST | VMPT_USE_SHOW_HOST_VMCS)

#define CAPS_ALL     0x3ffu
#define CAPS_LC	     (VMPT_VMX_LOAD_CTL | VMPT_VMX_CLEAR_CTL)
#define CAPS_CONCEAL (VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT | VMPT_VMX_CONCEAL_ENTRY)

/* A control of PT, and its capability. */
struct control {
	int field; /* 0 secondary, 1 exit, 2 entry */
	u32 bit, cap;
};

static const struct control table[] = {
	{ 0, 1u << 1, 0x002 },	{ 0, 1u << 19, 0x004 }, { 0, 1u << 24, 0x020 },
	{ 1, 1u << 24, 0x008 }, { 1, 1u << 25, 0x040 }, { 2, 1u << 17, 0x010 },
	{ 2, 1u << 18, 0x080 },
};

enum { EPT, HIDE_RUN, GPA, HIDE_EXIT, CLEAR, HIDE_ENTRY, LOAD, CONTROLS };

/* The fields as a set of the seven, and back. */
static unsigned int set_of(u32 secondary, u32 exit, u32 entry)
{
	const u32 field[3] = { secondary, exit, entry };
	unsigned int i, set = 0;

	for (i = 0; i < CONTROLS; i++)
		if (field[table[i].field] & table[i].bit)
			set |= 1u << i;
	return set;
}

static void fields_of(unsigned int set, u32 field[3])
{
	unsigned int i;

	memset(field, 0, 3 * sizeof(*field));
	for (i = 0; i < CONTROLS; i++)
		if (set >> i & 1)
			field[table[i].field] |= table[i].bit;
}

static bool in(unsigned int set, int control)
{
	return set >> control & 1;
}

/* Whether VM entry takes these controls on a processor with @vmx. */
static bool entry_takes(unsigned int set, u32 vmx)
{
	unsigned int i;

	for (i = 0; i < CONTROLS; i++)
		if (in(set, (int)i) && !(vmx & table[i].cap))
			return false;
	if (!(vmx & VMPT_VMX_PT) &&
	    (in(set, HIDE_RUN) || in(set, HIDE_EXIT) || in(set, HIDE_ENTRY)))
		return false;
	return !in(set, GPA) || (in(set, EPT) && in(set, LOAD) && in(set, CLEAR));
}

/* Whether @use is possible and safe. */
static bool possible(unsigned int use, u32 vmx, bool present, bool multi)
{
	bool pt = present && vmx & VMPT_VMX_PT, lc = (vmx & CAPS_LC) == CAPS_LC;
	bool gpa = lc && vmx & VMPT_VMX_USE_GPA && vmx & VMPT_VMX_EPT;

	switch (use) {
	case VMPT_USE_NONE:
		return true;
	case VMPT_USE_HOST:
		return present;
	case VMPT_USE_SYSTEM:
		return pt;
	case SHOWN:
		return pt && (lc || vmx & VMPT_VMX_CONCEAL_EXIT) && (gpa || multi);
	default:
		return pt && (vmx & CAPS_CONCEAL) == CAPS_CONCEAL && (gpa || multi);
	}
}

/* What is wrong with @plan, NULL if nothing is. */
static const char *plan_fault(const struct vmpt_vmx_plan *plan, unsigned int use, u32 vmx)
{
	unsigned int set = set_of(plan->secondary.value, plan->exit.value, plan->entry.value);
	bool guest = use == SHOWN || use == VMPT_USE_GUEST;
	bool concealed = use == VMPT_USE_GUEST;
	bool pt = vmx & VMPT_VMX_PT, lc = (vmx & CAPS_LC) == CAPS_LC;

	if (!entry_takes(set, vmx))
		return "VM entry refuses it";
	if (plan->use != (use & ~VMPT_USE_SHOW_HOST_VMCS) || plan->guest_pt != guest ||
	    plan->conceal != concealed)
		return "use, guest_pt or conceal";
	if (plan->secondary.value & ~plan->secondary.mask || plan->exit.value & ~plan->exit.mask ||
	    plan->entry.value & ~plan->entry.mask)
		return "a value outside of its mask";
	if (in(set, LOAD) != in(set, CLEAR))
		return "load without clear";
	if (plan->stop_host != ((guest || use == VMPT_USE_HOST) && pt))
		return "stop_host";
	if (plan->no_lbr != (vmx & VMPT_VMX_NO_LBR && (guest || use == VMPT_USE_SYSTEM)))
		return "no_lbr";
	if (!guest) {
		if (plan->lists || plan->shadow || in(set, GPA) || in(set, EPT) ||
		    in(set, HIDE_RUN) || in(set, HIDE_EXIT) || in(set, HIDE_ENTRY))
			return "too much for a guest without PT";
		/* D1, D29: CTL is loaded though it is not needed. */
		return in(set, LOAD) != (use == VMPT_USE_HOST && pt && lc) ? "load" : NULL;
	}
	if (plan->lists != !lc || in(set, LOAD) != lc)
		return "lists";
	if (plan->shadow == in(set, GPA) ||
	    in(set, GPA) != (lc && vmx & VMPT_VMX_EPT && vmx & VMPT_VMX_USE_GPA))
		return "shadow";
	if (in(set, HIDE_RUN) != concealed || in(set, HIDE_ENTRY) != concealed)
		return "conceal";
	return in(set, HIDE_EXIT) != (concealed || plan->lists) ? "exit's conceal" : NULL;
}

static void host_caps(struct vmpt_caps *host, u32 vmx, bool present, bool multi)
{
	guest_full_caps(host);
	host->vmx = vmx;
	host->cpuid.present = present;
	vmpt_pt_cap_set(&host->cpuid, VMPT_CAP_TOPA_MULTI, multi);
}

static const unsigned int uses[] = {
	VMPT_USE_NONE, VMPT_USE_GUEST, SHOWN, VMPT_USE_SYSTEM, VMPT_USE_HOST,
};

/* All uses on all processors; D1 and D29 are rules in plan_fault(). */
START_TEST(plans)
{
	unsigned int use = uses[_i], n;

	for (n = 0; n < 4 * (CAPS_ALL + 1); n++) {
		struct vmpt_refusal why = { NULL, NULL, 0, 0 };
		u32 vmx = n >> 2;
		bool present = n & 1, multi = n & 2, can = possible(use, vmx, present, multi);
		struct vmpt_vmx_plan plan, again;
		struct vmpt_caps host;
		const char *fault = NULL;
		int err;

		host_caps(&host, vmx, present, multi);
		err = vmpt_vmx_plan(&plan, &host, use, &why);
		if (err != (can ? 0 : -VMPT_E_CONTROLS))
			fault = "possible or not";
		else if (can)
			fault = plan_fault(&plan, use, present ? vmx : vmx & ~(u32)VMPT_VMX_PT);
		else if (!why.field || !why.rule)
			fault = "no reason given";
		if (!fault && vmpt_vmx_plan(&again, &host, use, NULL) != err)
			fault = "without a place for the reason";
		if (!fault && can &&
		    vmpt_vmx_check(&plan, &host, plan.secondary.value, plan.exit.value,
				   plan.entry.value, &why))
			fault = "refused by vmpt_vmx_check()";
		if (fault)
			ck_abort_msg("use %u, vmx %#x, present %d, multi %d: %s (%s)", use, vmx,
				     present, multi, fault, why.rule ? why.rule : "-");
	}
}
END_TEST

START_TEST(plan_no_use)
{
	struct vmpt_refusal why = { 0 };
	struct vmpt_vmx_plan plan;
	struct vmpt_caps host;

	guest_full_caps(&host);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, VMPT_USES, NULL), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, 77, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "plan.use");
	ck_assert_str_eq(why.rule, "not an enum vmpt_use");
	ck_assert_uint_eq(why.guest, 77);
	ck_assert_uint_eq(why.host, VMPT_USES - 1);
	/* What is not the guest's own trace shows no guest anything. */
	ck_assert_int_eq(
		vmpt_vmx_plan(&plan, &host, VMPT_USE_SYSTEM | VMPT_USE_SHOW_HOST_VMCS, NULL),
		-VMPT_E_INVAL);
}
END_TEST

/*
 * D-c: a guest's own trace has the host's VMCS addresses only if the VMM says so; a processor that
 * cannot conceal them is refused, by name.
 */
START_TEST(dc_concealed_unless_asked)
{
	struct vmpt_refusal why = { 0 };
	struct vmpt_vmx_plan plan;
	struct vmpt_caps host;

	host_caps(&host, 0x1ff, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, NULL), 0);
	ck_assert(plan.conceal && plan.secondary.value >> 19 & 1);
	ck_assert(plan.exit.value >> 24 & 1 && plan.entry.value >> 17 & 1);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, SHOWN, NULL), 0);
	ck_assert(!plan.conceal && !(plan.secondary.value >> 19 & 1));
	ck_assert(!(plan.exit.value >> 24 & 1) && !(plan.entry.value >> 17 & 1));
	host_caps(&host, 0x1ff & ~4u, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, &why), -VMPT_E_CONTROLS);
	ck_assert_str_eq(why.field, "secondary control 19 (conceal VMX from PT)");
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, SHOWN, NULL), 0);
}
END_TEST

/* All settings of the seven controls, for each use, on a processor with all and with few. */
START_TEST(checks_exhaustive)
{
	static const u32 hosts[] = { 0x1ff, 0x1df, 0x15d, 0x009, 0x1fe, 0x0ff & ~0x40u };
	unsigned int h, set, use = uses[_i];

	for (h = 0; h < VMPT_ARRAY_SIZE(hosts); h++) {
		struct vmpt_vmx_plan plan;
		struct vmpt_caps host;

		host_caps(&host, hosts[h], true, true);
		if (vmpt_vmx_plan(&plan, &host, use, NULL))
			continue;
		for (set = 0; set < 1u << CONTROLS; set++) {
			unsigned int want =
				set_of(plan.secondary.value, plan.exit.value, plan.entry.value);
			/* EPT is up to the VMM if PT does not need it. */
			unsigned int free = in(want, GPA) ? 0 : 1u << EPT;
			bool ok = entry_takes(set, hosts[h]) && (set & ~free) == want;
			u32 field[3];

			fields_of(set, field);
			if (!vmpt_vmx_check(&plan, &host, field[0], field[1], field[2], NULL) != ok)
				ck_abort_msg("use %u, host %#x, controls %#x: not %s", use,
					     hosts[h], set, ok ? "taken" : "refused");
		}
	}
}
END_TEST

static const struct {
	const char *name;
	unsigned int use;
	u32 vmx; /* of the processor that is checked; the plan is for one with all */
	u32 secondary, exit, entry;
	const char *field, *rule;
} rows[] = {
	{ "EPT absent", VMPT_USE_NONE, 0x1fd, 1u << 1, 0, 0, "secondary control 1 ", "lacks" },
	{ "conceal in the guest absent", VMPT_USE_GUEST, 0x1fb, 1u << 19, 0, 0,
	  "secondary control 19", "lacks" },
	{ "GPA absent", SHOWN, 0x1df, 1u << 24 | 2, 1u << 25, 1u << 18, "secondary control 24",
	  "lacks" },
	{ "conceal at exit absent", VMPT_USE_GUEST, 0x1f7, 0, 1u << 24, 0, "VM-exit control 24",
	  "lacks" },
	{ "clear absent", SHOWN, 0x1bf, 0, 1u << 25, 1u << 18, "VM-exit control 25", "lacks" },
	{ "conceal at entry absent", VMPT_USE_GUEST, 0x1ef, 0, 0, 1u << 17, "VM-entry control 17",
	  "lacks" },
	{ "load absent", SHOWN, 0x17f, 0, 1u << 25, 1u << 18, "VM-entry control 18", "lacks" },
	{ "conceal in the guest, MISC[14] = 0", VMPT_USE_GUEST, 0x1fe, 1u << 19, 0, 0,
	  "secondary control 19", "IA32_VMX_MISC[14]" },
	{ "conceal at exit, MISC[14] = 0", VMPT_USE_GUEST, 0x1fe, 0, 1u << 24, 0,
	  "VM-exit control 24", "IA32_VMX_MISC[14]" },
	{ "conceal at entry, MISC[14] = 0", VMPT_USE_GUEST, 0x1fe, 0, 0, 1u << 17,
	  "VM-entry control 17", "IA32_VMX_MISC[14]" },
	{ "GPA without EPT", SHOWN, 0x1ff, 1u << 24, 1u << 25, 1u << 18, "secondary control 1 ",
	  "guest physical" },
	{ "GPA without load", SHOWN, 0x1ff, 1u << 24 | 2, 1u << 25, 0, "VM-entry control 18",
	  "guest physical" },
	{ "GPA without clear", SHOWN, 0x1ff, 1u << 24 | 2, 0, 1u << 18, "VM-exit control 25",
	  "guest physical" },
	{ "load without clear", SHOWN, 0x1ff, 2, 0, 1u << 18, "VM-exit control 25",
	  "host is traced" },
	{ "clear without load", SHOWN, 0x1ff, 2, 1u << 25, 0, "VM-entry control 18",
	  "guest is not traced" },
	{ "no GPA though planned", SHOWN, 0x1ff, 2, 1u << 25, 1u << 18, "secondary control 24",
	  "plan's use" },
	{ "conceal where none is planned", SHOWN, 0x1ff, 1u << 24 | 1u << 19 | 2, 1u << 25,
	  1u << 18, "secondary control 19", "plan's use" },
	{ "not concealed at exit", VMPT_USE_GUEST, 0x1ff, 1u << 24 | 1u << 19 | 2, 1u << 25,
	  1u << 18 | 1u << 17, "VM-exit control 24", "plan's use" },
	{ "load under system-wide tracing", VMPT_USE_SYSTEM, 0x1ff, 0, 0, 1u << 18,
	  "VM-entry control 18", "plan's use" },
	{ "clear under system-wide tracing", VMPT_USE_SYSTEM, 0x1ff, 0, 1u << 25, 0,
	  "VM-exit control 25", "plan's use" },
	{ "concealed from the system", VMPT_USE_SYSTEM, 0x1ff, 0, 0, 1u << 17,
	  "VM-entry control 17", "plan's use" },
	{ "load without need", VMPT_USE_NONE, 0x1ff, 0, 0, 1u << 18, "VM-entry control 18",
	  "plan's use" },
};

START_TEST(check_row)
{
	struct vmpt_refusal why = { "", "", 0, 0 };
	struct vmpt_vmx_plan plan;
	struct vmpt_caps host;

	host_caps(&host, 0x1ff, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, rows[_i].use, NULL), 0);
	host.vmx = rows[_i].vmx;
	ck_assert_int_eq(vmpt_vmx_check(&plan, &host, rows[_i].secondary, rows[_i].exit,
					rows[_i].entry, &why),
			 -VMPT_E_CONTROLS);
	if (!strstr(why.field, rows[_i].field) || !strstr(why.rule, rows[_i].rule))
		ck_abort_msg("%s: refused for %s: %s", rows[_i].name, why.field, why.rule);
	ck_assert_int_ne((int)why.guest, (int)why.host);
}
END_TEST

/* Bits of other features belong to the VMM. */
START_TEST(check_others)
{
	struct vmpt_vmx_plan plan;
	struct vmpt_caps host;

	host_caps(&host, 0x1ff, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, VMPT_USE_SYSTEM, NULL), 0);
	ck_assert_int_eq(vmpt_vmx_check(&plan, &host, ~(u32)(1u << 19 | 1u << 24),
					~(u32)(1u << 24 | 1u << 25), ~(u32)(1u << 17 | 1u << 18),
					NULL),
			 0);
}
END_TEST

START_TEST(lists)
{
	struct vmpt_vmx_plan plan;
	struct vmpt_msr_lists lists;
	struct vmpt_caps host;

	host_caps(&host, VMPT_VMX_PT | VMPT_VMX_CONCEAL_EXIT, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, SHOWN, NULL), 0);
	ck_assert(plan.lists);
	vmpt_vmx_lists(&plan, 0x2105, &lists);
	ck_assert_uint_eq(lists.entry_loads, 1);
	ck_assert_uint_eq(lists.entry_load[0].msr, 0x570);
	ck_assert_uint_eq(lists.entry_load[0].value, 0x2105);
	ck_assert_uint_eq(lists.exit_stores, 1);
	ck_assert_uint_eq(lists.exit_store[0].msr, 0x570);
	/* No TraceEn: the guest's OUTPUT_BASE is still loaded. */
	ck_assert_uint_eq(lists.exit_loads, 1);
	ck_assert_uint_eq(lists.exit_load[0].msr, 0x570);
	ck_assert_uint_eq(lists.exit_load[0].value, 0);

	host_caps(&host, 0x1ff, true, true);
	ck_assert_int_eq(vmpt_vmx_plan(&plan, &host, SHOWN, NULL), 0);
	vmpt_vmx_lists(&plan, 0x2105, &lists);
	ck_assert(!lists.entry_loads && !lists.exit_stores && !lists.exit_loads);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("vmx");
	TCase *tcase = tcase_create("vmx");

	tcase_add_loop_test(tcase, plans, 0, VMPT_ARRAY_SIZE(uses));
	tcase_add_test(tcase, plan_no_use);
	tcase_add_loop_test(tcase, checks_exhaustive, 0, VMPT_ARRAY_SIZE(uses));
	tcase_add_test(tcase, dc_concealed_unless_asked);
	tcase_add_loop_test(tcase, check_row, 0, (int)VMPT_ARRAY_SIZE(rows));
	tcase_add_test(tcase, check_others);
	tcase_add_test(tcase, lists);
	suite_add_tcase(suite, tcase);
	return suite;
}
