// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See rig.h. */
#include "tests/model/rig.h"

struct rig rig;

static void keep(const u8 *bytes, size_t len)
{
	ck_assert_uint_le(rig.size + len, sizeof(rig.bytes));
	memcpy(rig.bytes + rig.size, bytes, len);
	rig.size += len;
}

static int take(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque;
	if (rig.refuse)
		return rig.refuse;
	keep(bytes, len);
	return 0;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	(void)opaque;
	if (pa + 8 > RIG_MEMORY)
		return VMPT_OUTPUT_FAULT;
	memcpy(entry, rig.ram + pa, 8);
	return 0;
}

static int write_ram(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	if (rig.refuse && pa >= rig.refuse_from)
		return rig.refuse;
	if (pa + len > RIG_MEMORY)
		return VMPT_OUTPUT_FAULT;
	memcpy(rig.ram + pa, bytes, len);
	keep(bytes, len);
	return 0;
}

static void pmi(void *opaque)
{
	(void)opaque;
	rig.pmis++;
}

static void all_capabilities(struct vmpt_pt_cpuid *cpuid)
{
	unsigned int cap;

	memset(cpuid, 0, sizeof(*cpuid));
	cpuid->present = 1;
	cpuid->maxphyaddr = 46;
	cpuid->linear_bits = 48;
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(cpuid, cap, ~0u);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, 4);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_FABRIC, 0);
}

void rig_init(void)
{
	rig.size = 0;
	rig.shown = 0;
	memset(&rig.state, 0, sizeof(rig.state));
	ck_assert_int_eq(vmpt_unit_init(&rig.unit, &rig.config), 0);
	rig.unit.mode = mode64(0, 0x1000);
	rig.unit.now.cbr = 20;
}

void rig_setup(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.sink.write = take;
	rig.memory.read_entry = read_entry;
	rig.memory.write = write_ram;
	all_capabilities(&rig.config.cpuid);
	rig.config.sink = &rig.sink;
	rig.config.pmi = pmi;
	rig.config.options.suppress_same_mode = true;
	rig_init();
}

void rig_wrmsr(u32 msr, u64 value)
{
	ck_assert_int_eq(vmpt_unit_wrmsr(&rig.unit, msr, value, ON_IP, ON_NEXT), 0);
}

u64 rig_rdmsr(u32 msr)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_unit_rdmsr(&rig.unit, msr, &value), 0);
	return value;
}

void rig_on_shown(u64 ctl)
{
	/* The output MSRs stay 0: that is no #GP, and a sink does not use them. */
	rig_wrmsr(VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN);
}

void rig_on(u64 ctl)
{
	rig_on_shown(ctl);
	rig_skip();
}

void rig_off(u64 ip)
{
	u64 ctl = rig.unit.regs.ctl & ~VMPT_CTL_TRACE_EN;

	ck_assert_int_eq(vmpt_unit_wrmsr(&rig.unit, VMPT_MSR_RTIT_CTL, ctl, ip, ip + 2), 0);
}

const char *rig_text(void)
{
	vmpt_unit_flush(&rig.unit);
	packet_text(&rig.state, rig.bytes + rig.shown, rig.size - rig.shown, rig.text,
		    sizeof(rig.text));
	rig.shown = rig.size;
	return rig.text;
}

void rig_skip(void)
{
	rig_text();
}

struct vmpt_mode mode64(unsigned int cpl, u64 cr3)
{
	struct vmpt_mode mode = { .cr3 = cr3, .cpl = (u8)cpl, .cs_l = true };

	return mode;
}

struct vmpt_far far_to(unsigned int kind, u64 ip, u64 target)
{
	struct vmpt_far far = {
		.kind = (u8)kind, .ip = ip, .target = target, .mode = rig.unit.mode
	};

	return far;
}

void rig_far(const struct vmpt_far *far)
{
	vmpt_unit_far(&rig.unit, far);
}

void rig_time(u64 cycles, u64 tsc, u64 art)
{
	struct vmpt_now now = rig.unit.now;

	now.cycles = cycles;
	now.tsc = tsc;
	now.art = art;
	vmpt_unit_time(&rig.unit, &now);
}

Suite *rig_table_suite(const char *name, const TTest *row, size_t rows, const TTest *const *tests,
		       size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	if (rows)
		tcase_add_loop_test(tc, row, 0, (int)rows);
	for (i = 0; i < n; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite;
}

Suite *rig_suite(const char *name, const TTest *const *tests, size_t n)
{
	return rig_table_suite(name, NULL, 0, tests, n);
}
