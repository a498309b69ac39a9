// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/emit.c: IP compression (33.4.2.2), and output to memory (33.2.7) through ToPA and
 * a single range, with INT, STOP, errors and a memory that asks for a retry.
 */
#include "tests/model/rig.h"

#define TABLE  0x1000ULL
#define REGION 0x10000ULL
#define STATUS rig_rdmsr(VMPT_MSR_RTIT_STATUS)

static void jmp(u64 target)
{
	vmpt_unit_jmp_indirect(&rig.unit, target);
}

/* ---- IP compression ---- */

/* The IP packet's bytes for @ip after @last: 1 + 2, 4, 6 or 8. */
static size_t ip_size(u64 last, u64 ip)
{
	size_t before;

	jmp(last);
	vmpt_unit_flush(&rig.unit);
	before = rig.size;
	jmp(ip);
	vmpt_unit_flush(&rig.unit);
	return rig.size - before;
}

START_TEST(ip_compression)
{
	static const struct {
		u64 last, ip;
		size_t size;
	} row[] = {
		{ 0x402000, 0x402000, 3 },		       /* 001b */
		{ 0x402000, 0x40ffff, 3 },		       /* 001b */
		{ 0x402000, 0x412000, 5 },		       /* 010b */
		{ 0x402000, 0x7fff00402000, 7 },	       /* 011b */
		{ 0x402000, 0xffff800000000000, 7 },	       /* 011b, sign-extended */
		{ 0x402000, 0x0000800000000000, 7 },	       /* 100b: bits 63:48 as before */
		{ 0xffff800000000000, 0xffff000000000000, 7 }, /* 100b */
		{ 0x402000, 0x1234800000000000, 9 },	       /* 110b */
	};
	size_t i;

	rig_on(CTL);
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		ck_assert_uint_eq(ip_size(row[i].last, row[i].ip), row[i].size);
		rig_text();
		ck_assert_uint_eq(rig.state.last_ip, row[i].ip);
	}
}
END_TEST

START_TEST(no_ip_compression)
{
	rig.config.options.no_ip_compression = true;
	rig_init();
	rig_on(CTL);
	ck_assert_uint_eq(ip_size(0x402000, 0x402000), 7);
	ck_assert_uint_eq(ip_size(0x402000, 0x1234800000000000), 9);
}
END_TEST

/* A suppressed IP leaves Last IP; a PSB resets it to 0. */
START_TEST(last_ip)
{
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x7fff00ffffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	jmp(0x7fff00402000);
	vmpt_unit_jcc(&rig.unit, true, 0x1000);
	vmpt_unit_jmp(&rig.unit, 0x7fff00403000);
	expect("TIP(0x7fff00402000), TIP.PGD(), TIP.PGE(0x7fff00403000)");
	ck_assert_uint_eq(rig.bytes[rig.size - 3], 0x31); /* TIP.PGE, 001b */
	rig.unit.psb_due = true;
	vmpt_unit_jmp(&rig.unit, 0x402000);
	rig_text();
	/* FUP with 010b against 0, PSBEND */
	ck_assert_uint_eq(rig.bytes[rig.size - 7], 0x5d);
}
END_TEST

/* The first IP after an enabling without PSB: the decoder's Last IP is not known. */
START_TEST(whole_ip_after_enabling)
{
	rig_on(CTL);
	jmp(0x7fff00402000);
	rig_off(0x7fff00402004);
	rig_skip();
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	jmp(0x401010);
	rig_text();
	ck_assert_uint_eq(rig.bytes[rig.size - 3], 0x2d); /* TIP, 001b: only the first */
}
END_TEST

/* ---- output to memory ---- */

static void put_entry(u64 table, unsigned int index, u64 entry)
{
	memcpy(rig.ram + table + 8 * index, &entry, 8);
}

static void to_memory(void)
{
	rig.config.sink = NULL;
	rig.config.memory = &rig.memory;
	rig_init();
}

/* Two regions of 4 KiB, the first with @flags, and END. */
static void topa(u64 flags, u64 ctl)
{
	to_memory();
	put_entry(TABLE, 0, REGION | flags);
	put_entry(TABLE, 1, REGION + 0x1000);
	put_entry(TABLE, 2, TABLE | VMPT_TOPA_END);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, TABLE);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, VMPT_LOWER_MASK);
	rig_on_shown(ctl | VMPT_CTL_TOPA);
}

/* At least @bytes of TIPs, a PSB+ now and then. */
static void produce(size_t bytes)
{
	size_t end = rig.size + bytes;
	unsigned int i = 0;

	while (rig.size < end && rig.unit.trigger_en) {
		jmp(i++ & 1 ? 0x402000 : 0x7fff00000000);
		if (i % 50 == 0)
			vmpt_unit_flush(&rig.unit);
	}
}

START_TEST(topa_circular)
{
	topa(0, CTL);
	produce(0x5000);
	rig_off(0x402000);
	rig_text(); /* in order and complete */
	ck_assert_uint_eq(rig.unit.bytes, rig.size);
	/* The output MSRs are exact: the position of the next byte. */
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_BASE), TABLE);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS),
			  vmpt_pt_mask_ptrs(rig.size / 0x1000 % 2, rig.size % 0x1000));
	ck_assert_mem_eq(rig.ram + REGION + (rig.size - 8) % 0x2000, rig.bytes + rig.size - 8,
			 rig.size % 0x2000 >= 8 ? 8 : 0);
	ck_assert_uint_eq(rig.pmis, 0);
}
END_TEST

START_TEST(topa_int)
{
	topa(VMPT_TOPA_INT, CTL);
	produce(0x1000);
	ck_assert_uint_eq(rig.pmis, 1);
	ck_assert_uint_eq(STATUS & VMPT_STATUS_PEND_PMI, 0);
	produce(0x4000);
	ck_assert_uint_eq(rig.pmis, 3);
	rig_off(0x402000);
	rig_text();
}
END_TEST

/* PMI preservation (33.2.7.2) */
START_TEST(pend_topa_pmi)
{
	topa(VMPT_TOPA_INT, CTL | VMPT_CTL_INJECT);
	produce(0x1000);
	ck_assert_uint_ne(STATUS & VMPT_STATUS_PEND_PMI, 0);
	ck_assert_uint_eq(rig.pmis, 1);
	rig_off(0x402000);
	rig_on_shown(rig.unit.regs.ctl);
	ck_assert_uint_eq(rig.pmis, 2); /* pended again */
	ck_assert_uint_ne(STATUS & VMPT_STATUS_PEND_PMI, 0);
	rig_off(0x402000);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, STATUS & ~VMPT_STATUS_PEND_PMI);
	rig_on_shown(rig.unit.regs.ctl);
	rig_off(0x402000);
	/* the bit is ignored without InjectPsbPmiOnEnable */
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, STATUS | VMPT_STATUS_PEND_PMI);
	rig_on_shown(rig.unit.regs.ctl & ~VMPT_CTL_INJECT);
	ck_assert_uint_eq(rig.pmis, 2);
}
END_TEST

/* Without a callback nothing is called. */
START_TEST(no_pmi_callback)
{
	rig.config.pmi = NULL;
	topa(VMPT_TOPA_INT, CTL | VMPT_CTL_INJECT);
	produce(0x1000);
	rig_off(0x402000);
	rig_on_shown(rig.unit.regs.ctl);
	ck_assert_uint_ne(STATUS & VMPT_STATUS_PEND_PMI, 0);
	ck_assert_uint_eq(rig.pmis, 0);
}
END_TEST

START_TEST(topa_stop)
{
	topa(VMPT_TOPA_STOP | VMPT_TOPA_INT, CTL);
	produce(0x2000);
	ck_assert_uint_eq(rig.size, 0x1000);
	ck_assert_uint_eq(STATUS & (VMPT_STATUS_STOPPED | VMPT_STATUS_TRIGGER_EN),
			  VMPT_STATUS_STOPPED);
	ck_assert_uint_eq(rig.pmis, 1);
	vmpt_unit_jmp_indirect(&rig.unit, 0x402000);
	rig_off(0x402000);
	ck_assert_uint_eq(rig.size, 0x1000); /* no TIP.PGD, what was buffered is lost */
	/* offset = size: "the next byte after the end of the region" */
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS), vmpt_pt_mask_ptrs(0, 0x1000));
	/* Enabled again with Stopped: nothing. */
	rig_on_shown(rig.unit.regs.ctl);
	jmp(0x402000);
	rig_off(0x402000);
	ck_assert_uint_eq(rig.size, 0x1000);
}
END_TEST

START_TEST(error_at_enabling)
{
	to_memory();
	put_entry(TABLE, 0, REGION | 0x2); /* reserved */
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, TABLE);
	rig_on_shown(CTL | VMPT_CTL_TOPA);
	ck_assert_uint_eq(STATUS & (VMPT_STATUS_ERROR | VMPT_STATUS_TRIGGER_EN), VMPT_STATUS_ERROR);
	ck_assert_uint_eq(rig.unit.output_why, VMPT_OUTPUT_RESERVED);
	jmp(0x402000);
	rig_off(0x402000);
	expect("");
}
END_TEST

START_TEST(error_after_a_region)
{
	topa(0, CTL);
	put_entry(TABLE, 1, REGION | 0x40000000000000); /* beyond MAXPHYADDR */
	produce(0x2000);
	ck_assert_uint_eq(rig.size, 0x1000);
	ck_assert_uint_eq(STATUS & (VMPT_STATUS_ERROR | VMPT_STATUS_TRIGGER_EN), VMPT_STATUS_ERROR);
	ck_assert_uint_ne(rig.unit.output_why, VMPT_OUTPUT_OK);
	rig_off(0x402000);
	ck_assert_uint_eq(rig.size, 0x1000);
}
END_TEST

/* Output outside of RAM, which the memory's callback reports. */
START_TEST(error_of_memory)
{
	to_memory();
	put_entry(TABLE, 0, 0x100000);
	put_entry(TABLE, 1, TABLE | VMPT_TOPA_END);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, TABLE);
	rig_on_shown(CTL | VMPT_CTL_TOPA);
	vmpt_unit_flush(&rig.unit);
	ck_assert_uint_ne(STATUS & VMPT_STATUS_ERROR, 0);
	ck_assert_uint_eq(rig.unit.output_why, VMPT_OUTPUT_MEMORY);
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(single_range_wraps)
{
	to_memory();
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, REGION);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xfff);
	rig_on_shown(CTL);
	produce(0x2800);
	rig_off(0x402000);
	rig_text();
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS),
			  (rig.size & 0xfffULL) << 32 | 0xfff);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_BASE), REGION);
}
END_TEST

/* An EPT violation: the bytes stay pending, and no byte is lost by retrying. */
START_TEST(retry)
{
	topa(0, CTL);
	rig.refuse = -VMPT_E_SPACE;
	jmp(0x402000);
	jmp(0x403000);
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), -VMPT_E_SPACE);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS), VMPT_LOWER_MASK);
	rig.refuse = 0;
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), 0);
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), 0);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000), "
	       "TIP(0x402000), TIP(0x403000)");
	ck_assert_uint_eq(rig.size, rig.unit.bytes);
}
END_TEST

/* A retry at a region's end: the first part is stored, the second stays pending. */
START_TEST(retry_in_the_middle)
{
	size_t stored;

	topa(0, CTL);
	produce(0x1000 - 200);
	vmpt_unit_flush(&rig.unit);
	stored = rig.size;
	ck_assert_uint_lt(stored, 0x1000);
	while (rig.size + rig.unit.used <= 0x1000 + 20)
		jmp(rig.unit.used & 1 ? 0x402000 : 0x7fff00000000);
	rig.refuse = -1;
	rig.refuse_from = REGION + 0x1000;
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), -1);
	ck_assert_uint_eq(rig.size, 0x1000);
	rig.refuse = 0;
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), 0);
	rig_text();
	ck_assert_uint_gt(rig.size, 0x1000);
	ck_assert_uint_eq(rig.unit.bytes, rig.size);
}
END_TEST

/* Bytes pending at a TraceStop come when TraceEn is cleared (33.2.5.3). */
START_TEST(retry_at_a_tracestop)
{
	rig_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	topa(0, CTL);
	rig_off(0x402000);
	rig_skip();
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x410000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x41ffff);
	rig_on(CTL | VMPT_CTL_TOPA | 2ULL << VMPT_CTL_ADDR_SHIFT(0));
	rig.refuse = -1;
	vmpt_unit_jmp(&rig.unit, 0x410000);
	ck_assert_uint_ne(STATUS & VMPT_STATUS_STOPPED, 0);
	expect("");
	rig.refuse = 0;
	rig_off(0x410000);
	expect("TIP.PGD(0x410000), TraceStop");
	ck_assert_uint_ne(STATUS & VMPT_STATUS_STOPPED, 0);
}
END_TEST

/* Memory that refuses until the buffer is full: an overflow, resolved when it takes again. */
START_TEST(overflow_of_memory)
{
	const char *text;

	topa(0, CTL);
	rig.refuse = -1;
	while (!rig.unit.in_overflow)
		jmp(0x402000);
	rig_off(0x402000);
	/* Bytes not stored when TraceEn is cleared are lost, and no packet shows that. */
	rig.refuse = 0;
	rig_on_shown(rig.unit.regs.ctl);
	text = rig_text();
	ck_assert_str_eq(text, "CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	ck_assert(!rig.unit.in_overflow);
}
END_TEST

/*
 * An exit with bytes pending, for lack of an EPT entry: they are taken out, the host traces
 * elsewhere, and they come first when the guest resumes. STATUS.PacketByteCnt is restored, too.
 */
START_TEST(rest_before_an_enable)
{
	struct vmpt_unit_rest rest;
	struct vmpt_pt_regs guest;

	topa(0, CTL);
	jmp(0x402000);
	vmpt_unit_flush(&rig.unit);
	rig_skip();
	rig.refuse = -1;
	jmp(0x403000);
	rig_off(0x403000);
	ck_assert_uint_gt(rig.unit.used, 0);
	vmpt_unit_rest_take(&rig.unit, &rest);
	ck_assert_uint_eq(rig.unit.used, 0);
	rig.refuse = 0;
	guest = rig.unit.regs;
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, vmpt_pt_mask_ptrs(1, 0));
	rig_on(CTL | VMPT_CTL_TOPA);
	rig_off(0x404000);
	rig_skip();
	rig.unit.regs = guest;
	vmpt_unit_rest_give(&rig.unit, &rest);
	rig_on_shown(CTL | VMPT_CTL_TOPA);
	vmpt_unit_flush(&rig.unit);
	expect("TIP(0x403000), FUP(0x403000), TIP.PGD(), CBR(20), MODE.Exec(64), "
	       "TIP.PGE(0x401000)");
	rig_off(0x401000);
	/* Not given twice: the next enable begins as always. */
	rig_skip();
	rig_on_shown(CTL | VMPT_CTL_TOPA);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

/* They are written with TraceEn = 0, too, at the position in the ToPA table. */
START_TEST(rest_without_an_enable)
{
	struct vmpt_unit_rest rest;

	topa(0, CTL);
	rig.refuse = -1;
	rig_off(0x401000);
	vmpt_unit_rest_take(&rig.unit, &rest);
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), 0);
	ck_assert_uint_eq(rig.size, 0);
	vmpt_unit_rest_give(&rig.unit, &rest);
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), -1); /* still refused: still pending */
	vmpt_unit_rest_take(&rig.unit, &rest);
	vmpt_unit_rest_give(&rig.unit, &rest);
	rig.refuse = 0;
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), 0);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000), "
	       "FUP(0x401000), TIP.PGD()");
	ck_assert_uint_eq(vmpt_pt_output_offset(&rig.unit.regs), rig.size);
}
END_TEST

/* An OVF marks a loss after them when tracing resumes there. */
START_TEST(rest_with_a_loss)
{
	const char *end = "TIP(0x402000), OVF, CBR(20), MODE.Exec(64), TIP.PGE(0x401000)", *text;
	struct vmpt_unit_rest rest;

	topa(0, CTL);
	vmpt_unit_flush(&rig.unit);
	rig_skip();
	rig.refuse = -1;
	jmp(0x402000);
	while (!rig.unit.in_overflow)
		jmp(0x402000);
	rig_off(0x402000);
	vmpt_unit_rest_take(&rig.unit, &rest);
	ck_assert(rest.in_overflow && !rig.unit.in_overflow);
	rig.refuse = 0;
	vmpt_unit_rest_give(&rig.unit, &rest);
	rig_on_shown(CTL | VMPT_CTL_TOPA);
	vmpt_unit_flush(&rig.unit);
	ck_assert_uint_eq(rig.unit.overflows, 1);
	ck_assert_uint_gt(rig.size, rest.used);
	text = rig_text();
	ck_assert_uint_gt(strlen(text), strlen(end));
	ck_assert_str_eq(text + strlen(text) - strlen(end), end);
}
END_TEST

RIG_SUITE("emit", ip_compression, no_ip_compression, last_ip, whole_ip_after_enabling,
	  topa_circular, topa_int, pend_topa_pmi, no_pmi_callback, topa_stop, error_at_enabling,
	  error_after_a_region, error_of_memory, single_range_wraps, retry, retry_in_the_middle,
	  retry_at_a_tracestop, overflow_of_memory, rest_before_an_enable, rest_without_an_enable,
	  rest_with_a_loss)
