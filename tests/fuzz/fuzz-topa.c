// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Output to any tables and ranges. The input is a list of commands of up to 12 bytes: set an entry,
 * a kind of page or a position, write bytes, append a PIP by the library. Writes are compared with
 * a byte-by-byte oracle; a PIP goes to the same memory through struct vmpt_ops: it is complete or
 * missing, and costs a bounded number of accesses.
 */
#include <stdlib.h>

#include "tests/arch/output-oracle.h"
#include "vmm-lib/internal.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

struct state {
	struct pair p;
	struct vmpt_vcpu v;
	struct vmpt_ops ops;
	u32 reads, writes;
	u64 budget; /* bytes that may still be written for this input */
};

/* ---- the library's callbacks, on the memory of "ours" ---- */

static int kind_of(struct memory *m, u64 gpa)
{
	if (gpa >= MEMORY)
		return VMPT_MEM_UNBACKED;
	if (m->later && (m->seed = m->seed * 25214903917u + 11) >> 60 == 0)
		return -VMPT_E_RETRY;
	return m->kind[gpa / 4096] == RAM ? 0 : VMPT_MEM_MMIO + m->kind[gpa / 4096] % 3;
}

static int ops_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct state *s = opaque;
	int kind = kind_of(&s->p.ours, gpa);

	s->reads++;
	CHECK(len == 8 && gpa % 8 == 0);
	if (!kind)
		memcpy(buf, s->p.ours.bytes + gpa, 8);
	return kind;
}

static int ops_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct state *s = opaque;
	int kind = kind_of(&s->p.ours, gpa);

	s->writes++;
	CHECK(len && gpa / 4096 == (gpa + len - 1) / 4096);
	if (!kind)
		memcpy(s->p.ours.bytes + gpa, buf, len);
	return kind;
}

static void ops_pmi(void *opaque)
{
	(void)opaque;
}

/* ---- commands ---- */

/* One after the other: both are where "ours" is now. */
static void restart(struct state *s)
{
	const char *what = pair_differs(&s->p);

	CHECK(!what);
	pair_start(&s->p);
}

static void put_position(struct state *s, const u8 *d)
{
	struct vmpt_pt_regs *regs = &s->p.regs;
	u64 offset = vmpt_load16(d + 9) | (u64)d[11] << (d[0] & 0x10 ? 24 : 16);

	regs->status = 0;
	regs->ctl = d[0] & 0x40 ? 0 : VMPT_CTL_TOPA;
	s->p.rules.topa_multi = !(d[0] & 0x80);
	regs->output_base = (vmpt_load32(d + 1) & ~0x7fu) | (d[0] & 8 ? 1ULL << 36 : 0);
	regs->output_mask_ptrs = offset << 32 | vmpt_load32(d + 5) | 0x7f;
}

static void append_pip(struct state *s, const u8 *d)
{
	struct vmpt_cr3_write w = { .new_cr3 = vmpt_load64(d + 1) };
	struct vmpt_pt_regs before;
	int ret;

	memset(&s->v, 0, sizeof(s->v));
	s->v.ops = &s->ops;
	s->v.opaque = s;
	s->v.rules = s->p.rules;
	s->v.rules.psb_cyc = 1;
	s->v.plan.guest_pt = true;
	s->v.regs = s->p.regs;
	s->v.regs.ctl |= VMPT_CTL_TRACE_EN | VMPT_CTL_OS | (d[0] & 0x40 ? VMPT_CTL_INJECT : 0);
	s->v.regs.status |= (u64)(d[9] | 1) << VMPT_STATUS_BYTES_SHIFT;
	memset(s->v.on_mem, d[10] % 3, sizeof(s->v.on_mem));
	before = s->v.regs;
	s->reads = 0;
	s->writes = 0;
	ret = vmpt_vcpu_cr3_write(&s->v, &w);
	CHECK(s->reads <= 4 && s->writes <= 2);
	CHECK(ret == 0 || ret == 1 || ret == -VMPT_E_RETRY);
	if (ret != 1)
		CHECK(!memcmp(&before, &s->v.regs, sizeof(before)) && !s->v.events);
	s->p.regs.output_base = s->v.regs.output_base;
	s->p.regs.output_mask_ptrs = s->v.regs.output_mask_ptrs;
	s->p.regs.status = s->v.regs.status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED);
}

static void write_bytes(struct state *s, const u8 *d)
{
	static const u8 zeros[8192];
	size_t n = d[0] & 0x40 ? vmpt_load16(d + 1) % sizeof(zeros) : 1 + d[1] % 11;
	const char *what;

	if (n > s->budget)
		return;
	s->budget -= n;
	what = pair_write(&s->p, d[0] & 0x40 ? zeros : d + 1, n);
	CHECK(!what);
}

static void command(struct state *s, const u8 *d)
{
	u32 at = vmpt_load16(d + 1) % (TABLES * 512);

	switch (d[0] & 7) {
	case 0: /* an entry: of a region, with flags; or any 8 bytes */
		restart(s);
		if (d[0] & 0x40)
			memcpy(s->p.ours.bytes + at * 8, d + 3, 8);
		else
			memset(s->p.ours.bytes + at * 8, 0, 8);
		s->p.ours.bytes[at * 8] |= d[3] & 0xd5;
		s->p.ours.bytes[at * 8 + 1] |= (u8)(d[4] & 0xf3);
		s->p.ours.bytes[at * 8 + 2] |= d[5] & 0xf;
		break;
	case 1:
		restart(s);
		s->p.ours.kind[d[1] % PAGES] = d[2] % KINDS;
		break;
	case 2:
		restart(s);
		put_position(s, d);
		break;
	case 3:
		restart(s);
		append_pip(s, d);
		break;
	case 4:
		vmpt_output_unload(&s->p.out);
		s->p.loads++;
		return;
	default:
		write_bytes(s, d);
		return;
	}
	pair_start(&s->p);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct state *s; /* half a megabyte: not on the stack, and made once */
	size_t at;

	if (!s)
		s = malloc(sizeof(*s));
	CHECK(s);
	memset(s, 0, sizeof(*s));
	s->ops = (struct vmpt_ops){ .guest_read = ops_read,
				    .guest_write = ops_write,
				    .inject_pmi = ops_pmi };
	s->p.rules = (struct vmpt_pt_rules){ .maxphyaddr = 36, .topa_multi = 1, .topa = 1 };
	s->p.regs.ctl = VMPT_CTL_TOPA;
	s->p.regs.output_mask_ptrs = VMPT_LOWER_MASK;
	s->p.ours.later = size && data[0] & 0x20 ? 4 : 0;
	s->budget = 65536;
	pair_start(&s->p);
	for (at = 0; at + 12 <= size && at < 12 * 200; at += 12)
		command(s, data + at);
	CHECK(!pair_differs(&s->p));
	return 0;
}
