// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A vCPU whose trace the test writes itself: a ring of regions, known to the test. */
#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-rig.h"

#define PAGES	   128u
#define FIRST_PAGE 16u

/* ---- callbacks that sometimes fail ---- */

static bool fails(struct tsc_rig *r)
{
	if (!r->fail_in || --r->fail_in)
		return false;
	r->failing++;
	return true;
}

int tsc_rig_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct tsc_rig *r = opaque;

	return fails(r) ? -VMPT_E_IO : guest_read(&r->guest, gpa, buf, len);
}

static int tsc_rig_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct tsc_rig *r = opaque;

	return fails(r) ? -VMPT_E_IO : guest_write(&r->guest, gpa, buf, len);
}

static int tsc_rig_map(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	struct tsc_rig *r = opaque;

	return fails(r) ? -VMPT_E_IO : guest_map(&r->guest, gpa, host, size);
}

/* ---- the rig ---- */

void tsc_rig_init(struct tsc_rig *r, bool map)
{
	struct vmpt_caps caps;

	memset(r, 0, sizeof(*r));
	guest_init(&r->guest, PAGES);
	guest_full_caps(&caps);
	r->ops = (struct vmpt_ops){ .guest_read = tsc_rig_read, .guest_write = tsc_rig_write };
	if (map)
		r->ops.guest_map = tsc_rig_map;
	r->v.ops = &r->ops;
	r->v.opaque = r;
	vmpt_pt_rules_init(&r->v.rules, &caps.cpuid);
}

/* Regions of @sizes[i] << 12, page after page but in reverse order, @per_table in each table. */
void tsc_rig_topa(struct tsc_rig *r, const u8 *sizes, unsigned int n, unsigned int per_table)
{
	unsigned int i, tables = (n + per_table - 1) / per_table;
	u64 page = PAGES, entry, at = 0;

	r->topa = true;
	r->regions = n;
	r->per_table = per_table;
	r->v.regs.ctl = VMPT_CTL_TOPA | VMPT_CTL_TRACE_EN;
	for (i = 0; i < n; i++) {
		r->size[i] = 4096u << sizes[i];
		page = (page - (1u << sizes[i])) & ~((1ULL << sizes[i]) - 1);
		ck_assert_uint_ge(page, FIRST_PAGE);
		r->gpa[i] = page << 12;
		entry = r->gpa[i] | (u64)sizes[i] << VMPT_TOPA_SIZE_SHIFT;
		guest_put64(&r->guest, TSC_TABLE(i / per_table) + 8 * (i % per_table), entry);
		r->ring += r->size[i];
	}
	for (i = 0; i < tables; i++) {
		at = i + 1 < tables ? per_table : n - per_table * i;
		guest_put64(&r->guest, TSC_TABLE(i) + 8 * at,
			    TSC_TABLE(i + 1 < tables ? i + 1 : 0) | VMPT_TOPA_END);
	}
}

void tsc_rig_range(struct tsc_rig *r, u32 size)
{
	r->regions = 1;
	r->per_table = 1;
	r->gpa[0] = FIRST_PAGE << 12;
	r->size[0] = size;
	r->ring = size;
	r->v.regs.ctl = VMPT_CTL_TRACE_EN;
}

/* The position of byte @at of the trace; *region and *offset describe it in the buffer. */
static u64 tsc_rig_gpa(const struct tsc_rig *r, u64 at, unsigned int *region, u32 *offset)
{
	unsigned int i = 0;

	for (at %= r->ring; at >= r->size[i]; i++)
		at -= r->size[i];
	*region = i;
	*offset = (u32)at;
	return r->gpa[i] + at;
}

struct vmpt_position tsc_rig_position(const struct tsc_rig *r, u64 at)
{
	unsigned int region;
	u32 offset;

	tsc_rig_gpa(r, at, &region, &offset);
	if (!r->topa)
		return (struct vmpt_position){ r->gpa[0], (u64)offset << 32 | (r->size[0] - 1) };
	return (struct vmpt_position){ TSC_TABLE(region / r->per_table),
				       (u64)offset << 32 | (region % r->per_table) << 7 | 0x7f };
}

void tsc_rig_go(struct tsc_rig *r, u64 at)
{
	struct vmpt_position p = tsc_rig_position(r, at);

	r->v.traced = r->ring;
	r->v.regs.output_base = p.output_base;
	r->v.regs.output_mask_ptrs = p.output_mask_ptrs;
}

/* The trace begins: what vmpt_vcpu_wrmsr() does when TraceEn is set. */
void tsc_rig_start(struct tsc_rig *r)
{
	tsc_rig_go(r, 0);
	r->v.scan_base = r->v.regs.output_base;
	r->v.scan_mask_ptrs = r->v.regs.output_mask_ptrs;
	r->v.scan_set = true;
}

void tsc_rig_put(struct tsc_rig *r, u64 at, const u8 *bytes, size_t len)
{
	unsigned int region;
	u32 offset;
	size_t n;
	u64 gpa;

	for (; len; bytes += n, at += n, len -= n) {
		gpa = tsc_rig_gpa(r, at, &region, &offset);
		n = r->size[region] - offset < len ? r->size[region] - offset : len;
		guest_put(&r->guest, gpa, bytes, n);
	}
}

u8 tsc_rig_byte(struct tsc_rig *r, u64 at)
{
	unsigned int region;
	u32 offset;
	u8 byte = 0;

	/* Not guest_get(): a passing check would cost more than the byte. */
	if (guest_read(&r->guest, tsc_rig_gpa(r, at, &region, &offset), &byte, 1))
		ck_abort_msg("byte %llu is not in memory", (unsigned long long)at);
	return byte;
}

void tsc_rig_check(struct tsc_rig *r, const u8 *want, u64 len, u64 seed)
{
	u64 at = len > r->ring ? len - r->ring : 0;

	for (; at < len; at++)
		if (tsc_rig_byte(r, at) != want[at])
			ck_abort_msg("seed %llu: byte %llu of %llu", (unsigned long long)seed,
				     (unsigned long long)at, (unsigned long long)len);
}
