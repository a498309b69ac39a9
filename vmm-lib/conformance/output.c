// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Conformance: where the guest's trace goes (33.2.7), ToPA errors, STOP, INT and its PMI, and
 * the PIP of a CR3 write that the VMM carries out (33.5.2.3).
 */
#include "arch/pt-packet.h"
#include "vmm-lib/conformance/run.h"

#define REGION (64 * 1024) /* from the start of the suite's RAM; tables are below it */
#define RANGE  16384u

static int put(struct conformance *c, u64 gpa, const void *buf, size_t len)
{
	int ret = c->ops->mem_write(c->opaque, gpa, buf, len);

	return ret ? vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_GUEST_MEM) : DONE;
}

static int get(struct conformance *c, u64 gpa, void *buf, size_t len)
{
	int ret = c->ops->mem_read(c->opaque, gpa, buf, len);

	return ret ? vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_GUEST_MEM) : DONE;
}

/* Enable tracing at a position, with additional CTL bits @bits, and disable it after @bytes. */
static int trace_to(struct conformance *c, u64 bits, u64 base, u64 mask_ptrs, u32 bytes)
{
	int ret;

	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_BASE, base));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, mask_ptrs));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL,
				   VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER |
					   VMPT_CTL_BRANCH_EN | bits));
	ret = c->ops->run(c->opaque, bytes);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	return vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, 0);
}

/*
 * A table of two entries at the start of RAM: set the position, enable tracing, disable it when
 * done.
 */
static int trace(struct conformance *c, u64 first, u64 second, u64 base, u64 mask_ptrs, u32 bytes)
{
	u64 entry[2] = { first, second };

	CHECK(put(c, c->ops->ram_gpa, entry, sizeof(entry)));
	return trace_to(c, VMPT_CTL_TOPA, base, mask_ptrs, bytes);
}

static int needs_run(struct conformance *c)
{
	if (!c->ops->run)
		return vmpt_conformance_skip(c, "the VMM provides no run");
	return c->rules.topa ? DONE : vmpt_conformance_skip(c, "the guest has no ToPA");
}

/* Each error of 33.2.7.2 sets STATUS.Error. */
static int topa_errors(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, good = ram + REGION, end = ram | VMPT_TOPA_END;
	u64 beyond = 1ULL << c->rules.maxphyaddr;
	const struct {
		const char *wrong;
		u64 first, second, base, mask_ptrs;
	} row[] = {
		{ "a reserved bit must be an error (rule 1)", good | 1u << 1, end, ram, 0 },
		{ "a table not 4K-aligned must be an error (rule 2a)", good, end, ram + 128, 0 },
		{ "an unaligned region must be an error (rule 2b)", (good + 4096) | 1u << 6, end,
		  ram, 0 },
		{ "too high an address must be an error (rule 2c)", good | beyond, end, ram, 0 },
		{ "OutputOffset = size must be an error (rule 3)", good, end, ram, 4096ULL << 32 },
		{ "INT with END must be an error (rule 4a)", good, end | VMPT_TOPA_INT, ram,
		  1u << 7 },
		{ "STOP with END must be an error (rule 4a)", good, end | VMPT_TOPA_STOP, ram,
		  1u << 7 },
		{ "END in entry 0 must be an error (rule 4b)", end, end, ram, 0 },
	};
	size_t i;
	u64 status;

	CHECK(needs_run(c));
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		if (beyond >> 52 && row[i].first & beyond)
			continue; /* MAXPHYADDR 52: there is no such bit */
		CHECK(vmpt_conformance_power_on(c));
		CHECK(trace(c, row[i].first, row[i].second, row[i].base, row[i].mask_ptrs, 4096));
		CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
		if (!(status & VMPT_STATUS_ERROR))
			return vmpt_conformance_differs(c, row[i].wrong, "MSR",
							VMPT_MSR_RTIT_STATUS, VMPT_STATUS_ERROR,
							status);
	}
	return DONE;
}

/* Missing memory: no byte of the suite's own memory may change, tracing may end. */
static int hole(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, mark = 0x5a5a5a5a5a5a5a5aULL, seen = 0;

	CHECK(needs_run(c));
	if (!c->ops->hole_gpa)
		return vmpt_conformance_skip(c, "the VMM provides no hole");
	CHECK(put(c, ram + REGION, &mark, sizeof(mark)));
	CHECK(trace(c, c->ops->hole_gpa, ram | VMPT_TOPA_END, ram, 0, 8192));
	CHECK(get(c, ram + REGION, &seen, sizeof(seen)));
	return seen == mark ? DONE
			    : vmpt_conformance_differs(c, "output to a hole landed in RAM", "GPA",
						       ram + REGION, mark, seen);
}

/* [from, to) of the suite's region, multiples of 64: set to zero. */
static int wipe(struct conformance *c, u32 from, u32 to)
{
	u64 zero[8] = { 0 };

	for (; from < to; from += sizeof(zero))
		CHECK(put(c, c->ops->ram_gpa + REGION + from, zero, sizeof(zero)));
	return DONE;
}

/* Whether there is trace in [from, to) of the suite's region; only [0, used) may have any. */
static int check_trace(struct conformance *c, u32 from, u32 to, u32 used, bool *any)
{
	u64 v[8], region = c->ops->ram_gpa + REGION;
	size_t i;

	for (*any = false; from < to; from += sizeof(v)) {
		CHECK(get(c, region + from, v, sizeof(v)));
		for (i = 0; i < VMPT_ARRAY_SIZE(v); i++) {
			if (from + 8 * i >= used && v[i])
				return vmpt_conformance_wrong(c, "trace where none may be", "GPA",
							      region + from + 8 * i);
			*any |= v[i] != 0;
		}
	}
	return DONE;
}

/* The trace is in the region, from its start to OutputOffset, and nowhere else. */
static int position(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, ptrs;
	u32 used;
	bool any;

	CHECK(needs_run(c));
	CHECK(wipe(c, 0, 32 * 1024));
	CHECK(trace(c, (ram + REGION) | 2u << VMPT_TOPA_SIZE_SHIFT, ram | VMPT_TOPA_END, ram, 0,
		    256));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	used = (u32)(ptrs >> VMPT_OFFSET_SHIFT);
	if (used < 256 || used >= RANGE || (u32)ptrs >> 7)
		return vmpt_conformance_differs(c, "OutputOffset is not where the trace ends",
						"MSR", VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
						256ULL << 32 | 0x7f, ptrs);
	CHECK(check_trace(c, 0, 32 * 1024, used, &any));
	return any ? DONE
		   : vmpt_conformance_wrong(c, "no trace in the region", "GPA", ram + REGION);
}

/* A single range wraps from its end to its start and is never left (33.2.7.1). */
static int range(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, base, ptrs, status;
	bool any;

	if (!c->ops->run)
		return vmpt_conformance_skip(c, "the VMM provides no run");
	if (!c->rules.single_range)
		return vmpt_conformance_skip(c, "the guest has no single-range output");
	CHECK(wipe(c, 0, 2 * RANGE));
	CHECK(trace_to(c, 0, ram + REGION, (RANGE - 64ULL) << 32 | (RANGE - 1), 256));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_BASE, &base));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
	if (base != ram + REGION || (u32)ptrs != RANGE - 1 || ptrs >> 32 >= RANGE)
		return vmpt_conformance_differs(c, "a single range must wrap", "MSR",
						VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
						192ULL << 32 | (RANGE - 1), ptrs);
	if (status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED))
		return vmpt_conformance_differs(c, "a range ends neither by Stopped nor by Error",
						"MSR", VMPT_MSR_RTIT_STATUS, 0, status);
	CHECK(check_trace(c, RANGE, 2 * RANGE, RANGE, &any));
	CHECK(check_trace(c, RANGE - 64, RANGE, RANGE, &any));
	if (any)
		CHECK(check_trace(c, 0, 64, RANGE, &any));
	return any ? DONE : vmpt_conformance_wrong(c, "no trace in the range", "GPA", ram + REGION);
}

/* END leads to another table: afterwards its base and its first region are the position. */
static int topa_end(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, other[2], base, ptrs;
	bool any;

	CHECK(needs_run(c));
	if (!c->rules.topa_multi)
		return vmpt_conformance_skip(c, "tables of one entry lead to themselves");
	CHECK(wipe(c, 0, 2 * RANGE));
	other[0] = (ram + REGION + RANGE) | 2u << VMPT_TOPA_SIZE_SHIFT;
	other[1] = ram | VMPT_TOPA_END;
	CHECK(put(c, ram + 4096, other, sizeof(other)));
	CHECK(trace(c, ram + REGION, (ram + 4096) | VMPT_TOPA_END, ram, 0, 4096 + 256));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_BASE, &base));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	if (base != ram + 4096)
		return vmpt_conformance_differs(c, "END must lead to the table it names", "MSR",
						VMPT_MSR_RTIT_OUTPUT_BASE, ram + 4096, base);
	if (ptrs >> 32 < 256 || ptrs >> 32 >= RANGE || (u32)ptrs != VMPT_LOWER_MASK)
		return vmpt_conformance_differs(c, "END must lead to the table's first entry",
						"MSR", VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
						256ULL << 32 | 0x7f, ptrs);
	CHECK(check_trace(c, RANGE, 2 * RANGE, RANGE + (u32)(ptrs >> 32), &any));
	return any ? DONE
		   : vmpt_conformance_wrong(c, "no trace in the second table's region", "GPA",
					    ram + REGION + RANGE);
}

static int stop(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, status;

	CHECK(needs_run(c));
	CHECK(trace(c, (ram + REGION) | VMPT_TOPA_STOP, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
	if (!(status & VMPT_STATUS_STOPPED) || status & VMPT_STATUS_ERROR)
		return vmpt_conformance_differs(c, "a full region with STOP must set Stopped",
						"MSR", VMPT_MSR_RTIT_STATUS, VMPT_STATUS_STOPPED,
						status);
	return DONE;
}

static int pmis(struct conformance *c, u64 want)
{
	u64 count = 0;
	int ret = c->ops->pmis(c->opaque, &count);

	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	return count == want
		       ? DONE
		       : vmpt_conformance_differs(c,
						  "not as many PMIs as regions with INT call for",
						  NULL, 0, want, count);
}

static int topa_pmi_bit(struct conformance *c, bool want)
{
	u64 value = 0;

	CHECK(vmpt_conformance_read(c, VMPT_MSR_PERF_GLOBAL_STATUS, &value));
	if (!(value & VMPT_GLOBAL_TOPA_PMI) == !want)
		return DONE;
	return vmpt_conformance_differs(c, "Trace_ToPA_PMI is wrong", "MSR",
					VMPT_MSR_PERF_GLOBAL_STATUS,
					want ? VMPT_GLOBAL_TOPA_PMI : 0, value);
}

/* A full region with INT: one PMI, bit 55; a second one before the first is taken coalesces. */
static int pmi(struct conformance *c)
{
	u64 ram = c->ops->ram_gpa, first = (ram + REGION) | VMPT_TOPA_INT | VMPT_TOPA_STOP;
	int ret;

	CHECK(needs_run(c));
	if (!c->ops->pmis)
		return vmpt_conformance_skip(c, "the VMM counts no PMIs");
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 1));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_STATUS, 0));
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 1));
	CHECK(topa_pmi_bit(c, true));
	ret = c->ops->wrmsr(c->opaque, VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
	if (ret)
		return ret < 0 ? vmpt_conformance_broken(c, ret)
			       : vmpt_conformance_wrong(c, "bit 55 cannot be reset", "MSR",
							VMPT_MSR_PERF_GLOBAL_RESET);
	CHECK(topa_pmi_bit(c, false));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_STATUS, 0));
	CHECK(trace(c, first, ram | VMPT_TOPA_END, ram, 0, 3 * 4096));
	CHECK(pmis(c, 2));
	return topa_pmi_bit(c, true);
}

/*
 * PMI preservation: an enable with PendTopaPMI = 1 pends the PMI that was held back, only under
 * InjectPsbPmiOnEnable.
 */
static int pmi_preserved(struct conformance *c)
{
	static const struct {
		u64 status, bits;
		unsigned int pmis;
	} row[] = { { 0, VMPT_CTL_INJECT, 0 },
		    { VMPT_STATUS_PEND_PMI, 0, 0 },
		    { VMPT_STATUS_PEND_PMI, VMPT_CTL_INJECT, 1 } };
	u64 ram = c->ops->ram_gpa;
	u64 entry[2] = { (ram + REGION) | 2u << VMPT_TOPA_SIZE_SHIFT, ram | VMPT_TOPA_END };
	size_t i;

	CHECK(needs_run(c));
	if (!c->ops->pmis)
		return vmpt_conformance_skip(c, "the VMM counts no PMIs");
	if (!c->rules.preserve)
		return vmpt_conformance_skip(c, "the guest has no PMI preservation");
	CHECK(put(c, ram, entry, sizeof(entry)));
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		CHECK(vmpt_conformance_power_on(c));
		CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_STATUS, row[i].status));
		CHECK(trace_to(c, VMPT_CTL_TOPA | row[i].bits, ram, 0, 64));
		CHECK(pmis(c, row[i].pmis));
		CHECK(topa_pmi_bit(c, row[i].pmis));
	}
	return DONE;
}

/* Number of PIPs of @cr3 outside a PSB+ in [from, to) of the suite's region. */
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
			return vmpt_conformance_wrong(c, "no packet where one must be", "GPA",
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

/* A CR3 write with additional CTL bits, and how many PIPs it must leave. */
struct cr3_case {
	const char *wrong;
	u64 bits;
	u64 match, old; /* under CR3Filter: CR3_MATCH, and the CR3 before */
	u64 cr3;
	unsigned int pips;
};

static int mov_cr3(struct conformance *c, u64 cr3)
{
	int ret = c->ops->mov_cr3(c->opaque, cr3);

	return ret ? vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE) : DONE;
}

static int check_cr3(struct conformance *c, const struct cr3_case *t)
{
	unsigned int flow = 0, pips = 0;
	u64 ctl, ptrs;

	CHECK(vmpt_conformance_power_on(c));
	CHECK(vmpt_conformance_buffer(c, &ctl));
	ctl = (ctl & (VMPT_CTL_TOPA | VMPT_CTL_USER)) | VMPT_CTL_TRACE_EN | t->bits;
	if (t->bits & VMPT_CTL_CR3_FILTER) {
		CHECK(mov_cr3(c, t->old));
		CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CR3_MATCH, t->match));
	}
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl));
	CHECK(mov_cr3(c, t->cr3));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, 0));
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &ptrs));
	CHECK(count_pips(c, 0, (u32)(ptrs >> VMPT_OFFSET_SHIFT), t->cr3, &pips, &flow));
	if (flow)
		return vmpt_conformance_wrong(c, "a CR3 write made a TIP", NULL, 0);
	return pips == t->pips ? DONE
			       : vmpt_conformance_differs(c, t->wrong, NULL, 0, t->pips, pips);
}

/* A CR3 write that the VMM carries out leaves exactly one PIP if OS = 1 (33.5.2.3). */
static int pip(struct conformance *c)
{
	static const struct cr3_case row[] = {
		{ "a CR3 write must leave one PIP", VMPT_CTL_OS, 0, 0, 0x5a5000, 1 },
		{ "a CR3 write must leave one PIP", VMPT_CTL_OS | VMPT_CTL_BRANCH_EN, 0, 0,
		  0x5a6000, 1 },
		{ "a PIP with OS = 0", 0, 0, 0, 0x5a7000, 0 },
	};
	size_t i;

	if (!c->ops->mov_cr3)
		return vmpt_conformance_skip(c, "the VMM provides no mov_cr3");
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++)
		CHECK(check_cr3(c, &row[i]));
	return DONE;
}

/* The same under CR3Filter in the process that is traced, and no PIP in others (33.2.5.2). */
static int pip_filter(struct conformance *c)
{
	static const struct cr3_case row[] = {
		{ "a CR3 write of the traced process must leave one PIP",
		  VMPT_CTL_OS | VMPT_CTL_CR3_FILTER, 0x5a7000, 0x5a7000, 0x5a7000, 1 },
		{ "a PIP between two processes that are not traced",
		  VMPT_CTL_OS | VMPT_CTL_CR3_FILTER, 0x5a7000, 0x5a5000, 0x5a6000, 0 },
	};
	size_t i;

	if (!c->ops->mov_cr3)
		return vmpt_conformance_skip(c, "the VMM provides no mov_cr3");
	if (!c->rules.cr3_filter)
		return vmpt_conformance_skip(c, "the guest has no CR3 filter");
	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++)
		CHECK(check_cr3(c, &row[i]));
	return DONE;
}

/* A sum of all bytes of the suite's RAM. */
static int sum_ram(struct conformance *c, u64 *sum)
{
	u64 word[8], at;
	size_t i;

	*sum = 0xcbf29ce484222325ULL;
	for (at = 0; at < 2 * REGION; at += sizeof(word)) {
		CHECK(get(c, c->ops->ram_gpa + at, word, sizeof(word)));
		for (i = 0; i < VMPT_ARRAY_SIZE(word); i++)
			*sum = (*sum ^ word[i]) * 0x100000001b3ULL;
	}
	return DONE;
}

/*
 * A guest traces, then the host's tracer starts. What the hand-over did not restore holds the
 * guest's values: a tracer that believes its OUTPUT_BASE unchanged writes where the guest chose.
 */
static int host_starts(struct conformance *c)
{
	u64 ctl, before, after;
	int ret;

	if (!c->ops->host_traces)
		return vmpt_conformance_skip(c, "the VMM provides no host_traces");
	if (!c->ops->run)
		return vmpt_conformance_skip(c, "the VMM provides no run");
	CHECK(vmpt_conformance_buffer(c, &ctl));
	CHECK(wipe(c, 0, 32768));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	ret = c->ops->run(c->opaque, 1000);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	CHECK(sum_ram(c, &before));
	ret = c->ops->host_traces(c->opaque);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	CHECK(sum_ram(c, &after));
	if (after != before)
		return vmpt_conformance_wrong(c, "the host's tracer wrote to the guest's memory",
					      NULL, 0);
	/* And the guest goes on as if nothing had happened. */
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, 0));
	return vmpt_conformance_stopped(c);
}

const struct conformance_scenario vmpt_conformance_output[] = {
	{ "topa-errors", "33.2.7.2", topa_errors, false },
	{ "output-hole", "33.2.7.4", hole, false },
	{ "output-position", "33.2.7.2", position, false },
	{ "single-range", "33.2.7.1", range, false },
	{ "topa-end", "33.2.7.2", topa_end, false },
	{ "topa-stop", "33.2.7.2", stop, false },
	{ "topa-pmi", "33.2.7.2", pmi, false },
	{ "pmi-preservation", "33.2.7.2", pmi_preserved, false },
	{ "cr3-pip", "33.5.2.3", pip, false },
	{ "cr3-filter", "33.2.5.2", pip_filter, false },
	{ "host-starts", "33.5.2", host_starts, false },
	{ 0 }
};
