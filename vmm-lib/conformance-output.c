// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Conformance: where the guest's trace goes (33.2.7), ToPA errors, STOP, INT and its PMI, and
 * the PIP of a CR3 write that the VMM carries out (33.5.2.3).
 */
#include "arch/pt-packet.h"
#include "vmm-lib/conformance-run.h"

#define REGION (64 * 1024) /* from the start of the suite's RAM; tables lie below */

static int put(struct conformance *c, u64 gpa, const void *buf, size_t len)
{
	int ret = c->ops->mem_write(c->opaque, gpa, buf, len);

	return ret ? conformance_broken(c, ret < 0 ? ret : -VMPT_E_GUEST_MEM) : DONE;
}

static int get(struct conformance *c, u64 gpa, void *buf, size_t len)
{
	int ret = c->ops->mem_read(c->opaque, gpa, buf, len);

	return ret ? conformance_broken(c, ret < 0 ? ret : -VMPT_E_GUEST_MEM) : DONE;
}

/* A table of two entries at the start of RAM, its position, and tracing on; off when done. */
static int trace(struct conformance *c, u64 first, u64 second, u64 base, u64 mask_ptrs, u32 bytes)
{
	u64 entry[2] = { first, second };
	int ret;

	CHECK(put(c, c->ops->ram_gpa, entry, sizeof(entry)));
	CHECK(conformance_set(c, VMPT_MSR_RTIT_OUTPUT_BASE, base));
	CHECK(conformance_set(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, mask_ptrs));
	CHECK(conformance_set(c, VMPT_MSR_RTIT_CTL,
			      VMPT_CTL_TRACE_EN | VMPT_CTL_TOPA | VMPT_CTL_OS | VMPT_CTL_USER |
				      VMPT_CTL_BRANCH_EN));
	ret = c->ops->run(c->opaque, bytes);
	if (ret)
		return conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	return conformance_set(c, VMPT_MSR_RTIT_CTL, 0);
}

static int needs_run(struct conformance *c)
{
	if (!c->ops->run)
		return conformance_skip(c, "the VMM gives no run");
	return c->rules.topa ? DONE : conformance_skip(c, "the guest has no ToPA");
}

/* Each mistake of 33.2.7.2 sets STATUS.Error. */
static int topa_errors(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, good = ram + REGION, end = ram | VMPT_TOPA_END;
	u64 beyond = 1ULL << c->rules.maxphyaddr;
	const struct {
		const char *wrong;
		u64 first, second, base, mask_ptrs;
	} row[] = {
		{ "a reserved bit is no error (rule 1)", good | 1u << 1, end, ram, 0 },
		{ "a table not 4K-aligned is no error (rule 2a)", good, end, ram + 128, 0 },
		{ "a region not aligned is no error (rule 2b)", (good + 4096) | 1u << 6, end, ram,
		  0 },
		{ "too high an address is no error (rule 2c)", good | beyond, end, ram, 0 },
		{ "OutputOffset = size is no error (rule 3)", good, end, ram, 4096ULL << 32 },
		{ "INT with END is no error (rule 4a)", good, end | VMPT_TOPA_INT, ram, 1u << 7 },
		{ "STOP with END is no error (rule 4a)", good, end | VMPT_TOPA_STOP, ram, 1u << 7 },
		{ "END in entry 0 is no error (rule 4b)", end, end, ram, 0 },
	};
	size_t i;
	u64 status;

	CHECK(needs_run(c));
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		if (beyond >> 52 && row[i].first & beyond)
			continue; /* MAXPHYADDR 52: there is no such bit */
		CHECK(conformance_power_on(c));
		CHECK(trace(c, row[i].first, row[i].second, row[i].base, row[i].mask_ptrs, 4096));
		CHECK(conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
		if (!(status & VMPT_STATUS_ERROR))
			return conformance_differs(c, row[i].wrong, "MSR", VMPT_MSR_RTIT_STATUS,
						   VMPT_STATUS_ERROR, status);
	}
	return DONE;
}

/* Memory that is not there: no byte of the suite's own memory may change, tracing may end. */
static int hole(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, mark = 0x5a5a5a5a5a5a5a5aULL, seen = 0;

	CHECK(needs_run(c));
	if (!c->ops->hole_gpa)
		return conformance_skip(c, "the VMM names no hole");
	CHECK(put(c, ram + REGION, &mark, sizeof(mark)));
	CHECK(trace(c, c->ops->hole_gpa, ram | VMPT_TOPA_END, ram, 0, 8192));
	CHECK(get(c, ram + REGION, &seen, sizeof(seen)));
	return seen == mark ? DONE
			    : conformance_differs(c, "output to a hole landed in RAM", "GPA",
						  ram + REGION, mark, seen);
}

/* The trace lies in the region, from its start to OutputOffset, and nowhere else. */
static int position(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, zero[8] = { 0 }, v[8], ptrs;
	u32 at, used, any = 0;
	size_t i;

	CHECK(needs_run(c));
	for (at = 0; at < 32 * 1024; at += sizeof(zero))
		CHECK(put(c, ram + REGION + at, zero, sizeof(zero)));
	CHECK(trace(c, (ram + REGION) | 2u << VMPT_TOPA_SIZE_SHIFT, ram | VMPT_TOPA_END, ram, 0,
		    256));
	CHECK(conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	used = (u32)(ptrs >> VMPT_OFFSET_SHIFT);
	if (used < 256 || used >= 16384 || (u32)ptrs >> 7)
		return conformance_differs(c, "OutputOffset is not where the trace ends", "MSR",
					   VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 256ULL << 32 | 0x7f,
					   ptrs);
	for (at = 0; at < 32 * 1024; at += sizeof(v)) {
		CHECK(get(c, ram + REGION + at, v, sizeof(v)));
		for (i = 0; i < VMPT_ARRAY_SIZE(v); i++) {
			if (at + 8 * i >= used && v[i])
				return conformance_wrong(c, "trace behind OutputOffset", "GPA",
							 ram + REGION + at + 8 * i);
			any |= v[i] != 0;
		}
	}
	return any ? DONE : conformance_wrong(c, "no trace in the region", "GPA", ram + REGION);
}

static int stop(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, status;

	CHECK(needs_run(c));
	CHECK(trace(c, (ram + REGION) | VMPT_TOPA_STOP, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
	if (!(status & VMPT_STATUS_STOPPED) || status & VMPT_STATUS_ERROR)
		return conformance_differs(c, "a full region with STOP must set Stopped", "MSR",
					   VMPT_MSR_RTIT_STATUS, VMPT_STATUS_STOPPED, status);
	return DONE;
}

static int pmis(struct conformance *c, u64 want)
{
	u64 count = 0;
	int ret = c->ops->pmis(c->opaque, &count);

	if (ret)
		return conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	return count == want
		       ? DONE
		       : conformance_differs(c, "not as many PMIs as regions with INT call for",
					     NULL, 0, want, count);
}

static int topa_pmi_bit(struct conformance *c, bool want)
{
	u64 value = 0;

	CHECK(conformance_read(c, VMPT_MSR_PERF_GLOBAL_STATUS, &value));
	if (!(value & VMPT_GLOBAL_TOPA_PMI) == !want)
		return DONE;
	return conformance_differs(c, "Trace_ToPA_PMI is wrong", "MSR", VMPT_MSR_PERF_GLOBAL_STATUS,
				   want ? VMPT_GLOBAL_TOPA_PMI : 0, value);
}

/* A full region with INT: one PMI, bit 55; a second one before the first is taken coalesces. */
static int pmi(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, first = (ram + REGION) | VMPT_TOPA_INT | VMPT_TOPA_STOP;
	int ret;

	CHECK(needs_run(c));
	if (!c->ops->pmis)
		return conformance_skip(c, "the VMM counts no PMIs");
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 1));
	CHECK(conformance_set(c, VMPT_MSR_RTIT_STATUS, 0));
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 1));
	CHECK(topa_pmi_bit(c, true));
	ret = c->ops->wrmsr(c->opaque, VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
	if (ret)
		return ret < 0 ? conformance_broken(c, ret)
			       : conformance_wrong(c, "bit 55 cannot be reset", "MSR",
						   VMPT_MSR_PERF_GLOBAL_RESET);
	CHECK(topa_pmi_bit(c, false));
	CHECK(conformance_set(c, VMPT_MSR_RTIT_STATUS, 0));
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 2));
	return topa_pmi_bit(c, true);
}

/* How many PIPs of @cr3 outside of a PSB+ are in [from, to) of the suite's region. */
static int count_pips(struct conformance *c, u32 from, u32 to, u64 cr3, unsigned int *pips,
		      unsigned int *flow)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	bool psb = false;
	u8 bytes[VMPT_PT_SIZE_MAX];

	while (from < to) {
		size_t n = to - from < sizeof(bytes) ? to - from : sizeof(bytes);

		CHECK(get(c, c->ops->ram_gpa + REGION + from, bytes, n));
		if (vmpt_pt_decode(&pkt, bytes, n, block))
			return conformance_wrong(c, "no packet where one must be", "GPA",
						 c->ops->ram_gpa + REGION + from);
		if (pkt.kind == VMPT_PT_PSB || pkt.kind == VMPT_PT_PSBEND ||
		    pkt.kind == VMPT_PT_OVF)
			psb = pkt.kind == VMPT_PT_PSB;
		*pips += !psb && pkt.kind == VMPT_PT_PIP && pkt.pip.cr3 == cr3;
		*flow += !psb && pkt.kind == VMPT_PT_TIP;
		block = vmpt_pt_block_after(&pkt, block);
		from += pkt.size;
	}
	return DONE;
}

/* One CR3 write with CTL bits @bits on top: how many PIPs it left behind. */
static int pips_of(struct conformance *c, u64 bits, u64 cr3, unsigned int *pips)
{
	unsigned int flow = 0;
	u64 ctl, ptrs;
	int ret;

	CHECK(conformance_power_on(c));
	CHECK(conformance_buffer(c, &ctl));
	ctl = (ctl & (VMPT_CTL_TOPA | VMPT_CTL_USER)) | VMPT_CTL_TRACE_EN | bits;
	CHECK(conformance_set(c, VMPT_MSR_RTIT_CTL, ctl));
	ret = c->ops->mov_cr3(c->opaque, cr3);
	if (ret)
		return conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	CHECK(conformance_set(c, VMPT_MSR_RTIT_CTL, 0));
	CHECK(conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	*pips = 0;
	CHECK(count_pips(c, 0, (u32)(ptrs >> VMPT_OFFSET_SHIFT), cr3, pips, &flow));
	return flow ? conformance_wrong(c, "a CR3 write made a TIP", NULL, 0) : DONE;
}

/* A CR3 write that the VMM carries out leaves exactly one PIP, if OS = 1 (33.5.2.3). */
static int pip(struct conformance *c)
{
	unsigned int pips = 0;

	if (!c->ops->mov_cr3)
		return conformance_skip(c, "the VMM gives no mov_cr3");
	CHECK(pips_of(c, VMPT_CTL_OS, 0x5a5000, &pips));
	if (pips != 1)
		return conformance_differs(c, "a CR3 write must leave one PIP", NULL, 0, 1, pips);
	CHECK(pips_of(c, VMPT_CTL_OS | VMPT_CTL_BRANCH_EN, 0x5a6000, &pips));
	if (pips != 1)
		return conformance_differs(c, "a CR3 write must leave one PIP", NULL, 0, 1, pips);
	CHECK(pips_of(c, 0, 0x5a7000, &pips));
	if (pips)
		return conformance_differs(c, "a PIP with OS = 0", NULL, 0, 0, pips);
	return DONE;
}

const struct conformance_scenario vmpt_conformance_output[] = {
	{ "topa-errors", "33.2.7.2", topa_errors, false },
	{ "output-hole", "33.2.7.4", hole, false },
	{ "output-position", "33.2.7.2", position, false },
	{ "topa-stop", "33.2.7.2", stop, false },
	{ "topa-pmi", "33.2.7.2", pmi, false },
	{ "cr3-pip", "33.5.2.3", pip, false },
	{ 0 }
};
