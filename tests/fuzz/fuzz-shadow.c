// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/shadow-*.c on any tables: output stays in the guest's frames, work is bounded, and
 * the guest's positions and memory are those of a twin without a shadow.
 *
 * Input: flags, MSRs (17 bytes), two tables of 16 entries, then steps.
 */
#include "vmm-lib/internal.h"
#include "vmm-lib/shadow/shadow.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define PAGE	4096u
#define PAGES	32u
#define TABLES	0x100000ULL /* their GPA: readable, not for output */
#define ENTRIES 16u
#define HPA	0x40000000ULL
#define SHADOW	0x7000000ULL
#define HALT	(VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR)

struct machine {
	u8 host[PAGES * PAGE];
	u64 tables[2][PAGE / 8];
	u8 frame[PAGES];
};

static struct machine guest, twin;
static u64 pages[2][PAGE / 8] __attribute__((aligned(4096)));
static struct vmpt_shadow_origin origins[2 * VMPT_SHADOW_PER_PAGE];

static int read_table(const struct machine *m, u64 gpa, u64 *entry)
{
	u64 at = gpa - TABLES;

	if (gpa < TABLES || at >= sizeof(m->tables))
		return VMPT_MEM_UNBACKED;
	*entry = m->tables[at / PAGE][at % PAGE / 8];
	return 0;
}

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	CHECK(len == 8 && !(gpa & 7));
	return read_table(opaque, gpa, buf);
}

static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	const struct machine *m = opaque;
	u64 page = gpa / PAGE;

	CHECK(!(gpa % PAGE));
	if (page >= PAGES)
		return VMPT_MEM_UNBACKED;
	*hpa = HPA + m->frame[page] * (u64)PAGE;
	*size = PAGE;
	while (++page < PAGES && m->frame[page] == m->frame[page - 1] + 1)
		*size += PAGE;
	return 0;
}

static int twin_read(void *opaque, u64 pa, u64 *entry)
{
	return read_table(opaque, pa, entry) ? VMPT_OUTPUT_FAULT : 0;
}

static int twin_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct machine *m = opaque;

	if (pa >= sizeof(m->host) || len > sizeof(m->host) - pa)
		return VMPT_OUTPUT_FAULT;
	memcpy(m->host + pa, bytes, len);
	return 0;
}

static int hw_read(void *opaque, u64 pa, u64 *entry)
{
	u64 at = pa - SHADOW;

	(void)opaque;
	CHECK(at < sizeof(pages));
	*entry = pages[at / PAGE][at % PAGE / 8];
	return 0;
}

static int hw_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct machine *m = opaque;

	CHECK(pa >= HPA && pa - HPA < sizeof(m->host) && len <= sizeof(m->host) - (pa - HPA));
	memcpy(m->host + (pa - HPA), bytes, len);
	return 0;
}

static const struct vmpt_ops ops = { .guest_read = guest_read, .guest_translate = guest_translate };
static const struct vmpt_output_memory hw_memory = { hw_read, hw_write, &guest };
static const struct vmpt_output_memory twin_memory = { twin_read, twin_write, &twin };

static struct vmpt_vcpu vcpu;
static struct vmpt_shadow_memory memory;
static struct vmpt_pt_regs hw, twin_regs;
static struct vmpt_output hw_out, twin_out;

static void init(const u8 *data, u8 flags)
{
	u32 i;

	memset(&guest, 0, sizeof(guest));
	for (i = 0; i < PAGES; i++)
		guest.frame[i] = (u8)(flags & 1 ? i ^ (flags >> 3 & 7) : i);
	for (i = 0; i < 2 * ENTRIES; i++)
		memcpy(&guest.tables[i / ENTRIES][i % ENTRIES], data + 17 + 8ULL * i, 8);
	twin = guest;
	memory = (struct vmpt_shadow_memory){
		.page = { pages[0], pages[1] },
		.page_hpa = { SHADOW, SHADOW + PAGE },
		.origin = origins,
		.pages = flags & 2 ? 2 : 1,
	};
	memset(&vcpu, 0, sizeof(vcpu));
	vcpu.ops = &ops;
	vcpu.opaque = &guest;
	vcpu.rules.maxphyaddr = 46;
	vcpu.rules.topa_multi = 1;
	vcpu.host_rules.topa_multi = 1;
	vcpu.host_rules.single_range = flags & 4;
	vcpu.shadow.memory = &memory;
	vcpu.regs.ctl = VMPT_CTL_TRACE_EN | (flags & 0x80 ? 0 : VMPT_CTL_TOPA);
	memcpy(&vcpu.regs.output_base, data + 1, 8);
	vcpu.regs.output_base &= (1ULL << 46) - 0x80;
	memcpy(&vcpu.regs.output_mask_ptrs, data + 9, 8);
	vcpu.regs.output_mask_ptrs |= VMPT_LOWER_MASK;
	twin_regs = vcpu.regs;
	vmpt_output_init(&twin_out, &vcpu.rules, &twin_regs, &twin_memory);
}

static bool enter(void)
{
	bool topa;
	int err = vmpt_shadow_ready(&vcpu);

	CHECK(!err);
	CHECK(vcpu.shadow.reads <= VMPT_SHADOW_READS);
	CHECK(vcpu.shadow.translations <= 2ULL * VMPT_SHADOW_PER_PAGE * memory.pages);
	hw = vcpu.regs;
	vmpt_shadow_regs(&vcpu, &hw.output_base, &hw.output_mask_ptrs, &topa);
	hw.ctl = topa ? hw.ctl | VMPT_CTL_TOPA : hw.ctl & ~VMPT_CTL_TOPA;
	CHECK(topa || vcpu.host_rules.single_range);
	vmpt_output_init(&hw_out, &vcpu.rules, &hw, &hw_memory);
	return !vmpt_output_load(&hw_out);
}

static void leave(void)
{
	bool pmi = hw_out.ints > 0;

	CHECK(!vmpt_shadow_take_back(&vcpu, hw.output_base, hw.output_mask_ptrs, &hw.status, &pmi));
	vcpu.regs.status = hw.status;
}

/* @n bytes; those after our own STOP are made again. False: no more. */
static bool trace(size_t n)
{
	static u8 bytes[8192];
	static u8 next;
	u8 *at = bytes;
	u64 lost;
	size_t done;

	for (done = 0; done < n; done++)
		bytes[done] = next++;
	CHECK(!vmpt_output_write(&twin_out, bytes, n, &done));
	for (;;) {
		if (!enter())
			return false;
		CHECK(!vmpt_output_write(&hw_out, at, n, &done));
		lost = hw_out.lost;
		leave();
		if (!lost || vcpu.regs.status & HALT)
			break;
		at += n - lost;
		n = lost;
	}
	/* a position after the window's end is used by the next entry only */
	if (!enter())
		return false;
	leave();
	CHECK(!vmpt_output_load(&twin_out));
	/* missing memory is found when it is current, or when it is written to */
	if (vcpu.regs.status & VMPT_STATUS_ERROR && vcpu.output_why == VMPT_OUTPUT_MEMORY)
		return false;
	CHECK(!((vcpu.regs.status ^ twin_regs.status) & HALT));
	CHECK(vcpu.regs.output_base == twin_regs.output_base);
	CHECK(vcpu.regs.output_mask_ptrs == twin_regs.output_mask_ptrs);
	return !(vcpu.regs.status & HALT);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	size_t at = 17 + 16 * ENTRIES, steps = 0;
	u32 page;
	u64 gpa;

	if (size < at)
		return 0;
	init(data, data[0]);
	for (; at < size && steps < 64; at++, steps++) {
		gpa = (u64)(data[at] & 0x7f) * PAGE;
		if (data[at] < 0x80)
			vmpt_shadow_invalidate(&vcpu, gpa, PAGE);
		else if (!trace(1 + (data[at] & 0x7f) * 64))
			break;
	}
	for (page = 0; page < PAGES; page++)
		if (!vcpu.regs.status && !twin_regs.status)
			CHECK(!memcmp(guest.host + guest.frame[page] * PAGE,
				      twin.host + page * PAGE, PAGE));
	return 0;
}
