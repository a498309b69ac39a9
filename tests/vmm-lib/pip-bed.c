// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A vCPU that traces into guest memory, for the tests of PIPs. */
#include "tests/vmm-lib/pip-bed.h"

static bool fails(struct pip_bed *bed)
{
	bed->accesses++;
	return bed->fail && !--bed->fail;
}

static int bed_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct pip_bed *bed = opaque;

	if (len != 8 || gpa % 8)
		ck_abort_msg("a read of %zu bytes at %#llx", len, (unsigned long long)gpa);
	return fails(bed) ? bed->fail_with : guest_read(&bed->guest, gpa, buf, len);
}

static int bed_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct pip_bed *bed = opaque;

	if (!len || len > 16 || gpa % GUEST_PAGE + len > GUEST_PAGE)
		ck_abort_msg("a write of %zu bytes at %#llx", len, (unsigned long long)gpa);
	return fails(bed) ? bed->fail_with : guest_write(&bed->guest, gpa, buf, len);
}

static void bed_pmi(void *opaque)
{
	guest_pmi(&((struct pip_bed *)opaque)->guest);
}

void pip_bed_init(struct pip_bed *bed)
{
	struct vmpt_vcpu *v = &bed->v;
	struct vmpt_caps caps;

	memset(bed, 0, sizeof(*bed));
	guest_init(&bed->guest, PAGES);
	guest_full_caps(&caps);
	bed->ops.guest_read = bed_read;
	bed->ops.guest_write = bed_write;
	bed->ops.inject_pmi = bed_pmi;
	v->ops = &bed->ops;
	v->opaque = bed;
	v->guest = caps;
	vmpt_pt_rules_init(&v->rules, &caps.cpuid);
	v->plan.guest_pt = true;
	v->regs.ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TOPA |
		      VMPT_CTL_BRANCH_EN;
	v->regs.status =
		VMPT_STATUS_TRIGGER_EN | VMPT_STATUS_CONTEXT_EN | 100ULL << VMPT_STATUS_BYTES_SHIFT;
	pip_bed_at(bed, TABLE, 0, 0);
	guest_put64(&bed->guest, TABLE, OUTPUT);
	guest_put64(&bed->guest, TABLE + 8, TABLE | VMPT_TOPA_END);
}

void pip_bed_free(struct pip_bed *bed)
{
	guest_free(&bed->guest);
}

void pip_bed_at(struct pip_bed *bed, u64 table, u32 index, u32 offset)
{
	bed->v.regs.output_base = table;
	bed->v.regs.output_mask_ptrs = vmpt_pt_mask_ptrs(index, offset);
}

int pip_mov(struct pip_bed *bed, u64 cr3)
{
	struct vmpt_cr3_write w = { .old_cr3 = 0x1000, .new_cr3 = cr3, .cause = VMPT_CR3_MOV };

	return vmpt_vcpu_cr3_write(&bed->v, &w);
}

void pip_bytes(u8 bytes[PIP_SIZE], u64 cr3, bool nr)
{
	unsigned int i;

	bytes[0] = 0x02;
	bytes[1] = 0x43;
	/* byte 2: CR3[11:5] in bits 7:1, NR in bit 0; byte 3: CR3[19:12] … byte 7: CR3[51:44] */
	bytes[2] = (u8)((cr3 >> 5 & 0x7f) << 1 | nr);
	for (i = 3; i < 8; i++)
		bytes[i] = (u8)(cr3 >> (12 + 8 * (i - 3)));
}
