// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A processor with RTIT for the tests of vmm-lib/rtit/. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/vmm-lib/rtit/rig.h"

#define ACTIVE VMPT_RTIT_CTL_TRACE_ACTIVE
#define EN     VMPT_RTIT_CTL_TRACE_EN

/* ---- what the processor stores ---- */

/* The guest's page with the frame of @hpa; it must be pinned. */
static void stored_to_guest(struct rig *rig, u64 hpa)
{
	u32 frame = (u32)((hpa - GUEST_HPA) / GUEST_PAGE), page;

	for (page = 0; page < RIG_PAGES && rig->guest.frame[page] != frame; page++)
		;
	if (page == RIG_PAGES || !rig->pins[page])
		ck_abort_msg("a store to page %u, not pinned", page);
	else
		rig->stored[page] = 1;
}

static int store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct rig *rig = opaque;
	u64 bounce = rig->config.bounce.hpa;
	u32 size = rig->config.bounce.size;

	if (pa >= bounce && pa + len <= bounce + size) {
		memcpy(rig->bounce + (pa - bounce), bytes, len);
		return 0;
	}
	if (pa >= RIG_HOST_HPA && pa + len <= RIG_HOST_HPA + RIG_HOST_SIZE) {
		memcpy(rig->host + (pa - RIG_HOST_HPA), bytes, len);
		return 0;
	}
	while (len) {
		size_t n = GUEST_PAGE - (size_t)(pa % GUEST_PAGE);
		u8 *to = guest_at_hpa(&rig->guest, pa);

		ck_assert_msg(to != NULL, "a stray store at %llx", (unsigned long long)pa);
		stored_to_guest(rig, pa);
		n = n < len ? n : len;
		memcpy(to, bytes, n);
		pa += n;
		bytes += n;
		len -= n;
	}
	return 0;
}

/* ---- MSRs ---- */

static bool fails(struct rig *rig, u32 msr)
{
	return ++rig->accesses == rig->fail_at || msr == rig->fail_msr;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct rig *rig = opaque;

	if (fails(rig, msr))
		return -5;
	if (vmpt_rtit_unit_rdmsr(&rig->unit, msr, value))
		ck_abort_msg("RDMSR %x is #GP", msr);
	if (rig->fake_msr == msr && rig->accesses >= rig->fake_from)
		*value = rig->fake_value;
	return 0;
}

/* 3.3.2: never both at once, TraceActive with Trace_En only; packets to memory. */
static void check_ctl(const struct rig *rig, u64 ctl)
{
	u64 changed = rig->unit.regs.ctl ^ ctl;

	ck_assert_msg((changed & (EN | ACTIVE)) != (EN | ACTIVE), "both bits in one write");
	if (changed & ACTIVE)
		ck_assert_msg(ctl & EN, "TraceActive without Trace_En");
	if (ctl & ACTIVE)
		ck_assert_msg(ctl & VMPT_RTIT_CTL_DEST, "packets to a port");
}

/* Where packets go changes only while none can come. */
static void check_output(const struct rig *rig, u32 msr)
{
	u64 ctl = rig->unit.regs.ctl, timing = VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_STS_EN;

	if (!vmpt_rtit_trigger_en(&rig->unit.regs))
		return;
	ck_assert_msg(msr == VMPT_RTIT_MSR_OFFSET, "%x is written while TriggerEn = 1", msr);
	ck_assert(!rig->unit.used && (!(ctl & timing) || ctl & VMPT_RTIT_CTL_LESS_PKTS));
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	struct rig *rig = opaque;

	if (fails(rig, msr) || msr == rig->fail_write)
		return -5;
	ck_assert(rig->unit.vmx_root);
	if (rig->logged < RIG_LOG) {
		rig->log[rig->logged].msr = msr;
		rig->log[rig->logged++].value = value;
	}
	if (!rig->unchecked && msr == VMPT_RTIT_MSR_CTL)
		check_ctl(rig, value);
	if (!rig->unchecked && msr >= VMPT_RTIT_MSR_BASE_ADDR && msr <= VMPT_RTIT_MSR_OFFSET)
		check_output(rig, msr);
	if (vmpt_rtit_unit_wrmsr(&rig->unit, msr, value, 0))
		ck_abort_msg("WRMSR %x, %llx is #GP", msr, (unsigned long long)value);
	if (rig->host_again && msr == VMPT_RTIT_MSR_CTL && !(value & EN))
		rig->unit.regs.ctl |= EN;
	return 0;
}

/* ---- the other callbacks ---- */

static int write_memory(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct rig *rig = opaque;

	ck_assert(len && gpa % GUEST_PAGE + len <= GUEST_PAGE);
	return guest_write(&rig->guest, gpa, buf, len);
}

static void pin(struct rig *rig, u64 gpa, u64 size, int n)
{
	u64 page;

	for (page = gpa / GUEST_PAGE; page <= (gpa + size - 1) / GUEST_PAGE; page++) {
		ck_assert(page < RIG_PAGES && (n > 0 || rig->pins[page]));
		rig->pins[page] += (u32)n;
	}
}

static int translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	struct rig *rig = opaque;
	u64 wanted = *size;
	int ret;

	ck_assert(wanted);
	ret = guest_translate(&rig->guest, gpa, hpa, size);
	if (!ret && *size > wanted)
		*size = wanted;
	if (!ret)
		pin(rig, gpa, *size, 1);
	return ret;
}

/* Pieces are whole pages here except for buffers that are smaller than one. */
static void let_go(void *opaque, u64 gpa, u64 size)
{
	pin(opaque, gpa, size, -1);
}

static void debug_port(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct rig *rig = opaque;

	if (!rig->port_len)
		rig->port_pa = pa;
	ck_assert(rig->port_len + len <= sizeof(rig->port));
	memcpy(rig->port + rig->port_len, bytes, len);
	rig->port_len += (u32)len;
}

static void read_clock(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr)
{
	struct rig *rig = opaque;

	*tsc = rig->sts_tsc ? rig->sts_tsc : rig->unit.now.tsc;
	*acbr = rig->unit.acbr;
	*ecbr = rig->unit.ecbr;
}

/* ---- the rig ---- */

void rig_new_processor(struct rig *rig)
{
	struct vmpt_rtit_unit_config config = { .sink = &rig->sink };
	struct vmpt_rtit_clocks now = rig->unit.now;
	u8 acbr = rig->unit.acbr, ecbr = rig->unit.ecbr;

	ck_assert_int_eq(vmpt_rtit_unit_init(&rig->unit, &config), 0);
	vmpt_rtit_unit_vmxon(&rig->unit, 0);
	rig->unit.acbr = acbr;
	rig->unit.ecbr = ecbr;
	vmpt_rtit_unit_time(&rig->unit, &now);
}

void rig_again(struct rig *rig)
{
	u64 value;

	ck_assert_int_eq(vmpt_rtit_vcpu_init(&rig->v, &rig->config), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig->v, VMPT_RTIT_MSR_CTL, false, &value), 0);
}

void rig_init(struct rig *rig, enum vmpt_rtit_output output, u32 size)
{
	memset(rig, 0, sizeof(*rig));
	guest_init(&rig->guest, RIG_PAGES);
	rig->bounce = calloc(1, RIG_BOUNCE_MAX);
	rig->host = calloc(1, RIG_HOST_SIZE);
	ck_assert(rig->bounce && rig->host);
	rig->sink = (struct vmpt_rtit_sink){ store, rig };
	rig->unit.acbr = 0x12;
	rig->unit.ecbr = 0x0f;
	rig_new_processor(rig);
	rig->ops = (struct vmpt_rtit_ops){
		.hw_rdmsr = hw_rdmsr,
		.hw_wrmsr = hw_wrmsr,
		.guest_write = write_memory,
		.guest_translate = translate,
		.guest_release = let_go,
		.debug_port = debug_port,
		.clock = read_clock,
	};
	rig->config = (struct vmpt_rtit_config){
		.ops = &rig->ops,
		.opaque = rig,
		.output = (u8)output,
		.bounce = { size ? rig->bounce : NULL, RIG_BOUNCE_HPA, size },
	};
	rig->in = (struct vmpt_rtit_mode){ .cr3 = 0x1000, .paging = true };
	rig_again(rig);
}

/* What was pinned is released by now. */
void rig_free(struct rig *rig)
{
	u32 i;

	if (rig->v.loaded && !rig->unchecked)
		ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig->v), 0);
	for (i = 0; i < RIG_PAGES && !rig->unchecked; i++)
		ck_assert_msg(!rig->pins[i], "page %u is still pinned", i);
	guest_free(&rig->guest);
	free(rig->bounce);
	free(rig->host);
}

void rig_forget(struct rig *rig)
{
	rig->logged = rig->accesses = 0;
}

u64 rig_rd(struct rig *rig, u32 msr)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig->v, msr, false, &value), 0);
	return value;
}

void rig_wr(struct rig *rig, u32 msr, u64 value)
{
	int ret = vmpt_rtit_vcpu_wrmsr(&rig->v, msr, value);

	ck_assert_msg(!ret, "WRMSR %x, %llx: %d", msr, (unsigned long long)value, ret);
}

void rig_program(struct rig *rig, u64 base, u64 mask, u64 ctl)
{
	rig_wr(rig, VMPT_RTIT_MSR_EVENTS, VMPT_RTIT_EVENT_OFF << 3 | VMPT_RTIT_EVENT_ON);
	rig_wr(rig, VMPT_RTIT_MSR_BASE_ADDR, base);
	rig_wr(rig, VMPT_RTIT_MSR_LIMIT_MASK, mask);
	rig_wr(rig, VMPT_RTIT_MSR_OFFSET, 0);
	rig_wr(rig, VMPT_RTIT_MSR_CTL, ctl & ~ACTIVE);
	if (ctl & ACTIVE)
		rig_wr(rig, VMPT_RTIT_MSR_CTL, ctl);
}

void rig_enter(struct rig *rig, u64 ip)
{
	vmpt_rtit_unit_vmentry(&rig->unit, ip, &rig->in);
}

void rig_exit(struct rig *rig, u64 ip)
{
	static const struct vmpt_rtit_mode host = { .cr3 = 0x77000, .paging = true };

	rig->in = rig->unit.mode;
	vmpt_rtit_unit_vmexit(&rig->unit, ip, &host);
}

void rig_time(struct rig *rig, u64 ticks)
{
	struct vmpt_rtit_clocks now = rig->unit.now;

	now.tsc += ticks;
	now.cycles += ticks;
	vmpt_rtit_unit_time(&rig->unit, &now);
}

void rig_host_on(struct rig *rig, u64 ctl)
{
	struct vmpt_rtit_unit *unit = &rig->unit;
	u64 value;

	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(unit, VMPT_RTIT_MSR_CTL, &value), 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_EVENTS, 0x37, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_BASE_ADDR, RIG_HOST_HPA, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_LIMIT_MASK, RIG_HOST_SIZE - 1, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl & ~ACTIVE, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl, 0);
}

void rig_get(struct rig *rig, u64 gpa, u8 *buf, size_t len)
{
	guest_get(&rig->guest, gpa, buf, len);
}

void rig_expect(struct rig *rig, u64 gpa, const char *hex)
{
	u8 buf[64];
	char text[3 * sizeof(buf) + 1];
	size_t n = (strlen(hex) + 1) / 3, i;

	if (!n || n > sizeof(buf))
		n = 1; /* differs from the expected value */
	rig_get(rig, gpa, buf, n);
	for (i = 0; i < n; i++)
		snprintf(text + 3 * i, 4, "%02x ", buf[i]);
	text[3 * n - 1] = '\0';
	ck_assert_str_eq(text, hex);
}
