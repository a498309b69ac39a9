// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* SDM 3 33.2.7 byte by byte, and arch/output.c next to it. */
#include "tests/arch/output-oracle.h"

/* Not support.h's: a fuzz target does not use Check. */
static u32 random_of(struct memory *m)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (u32)(m->seed >> 33);
}

static bool later(struct memory *m)
{
	return m->later && random_of(m) % m->later == 0;
}

/*
 * Tables refuse stores, so it does not matter whether an entry is read before or after the last
 * byte of the previous region.
 */
static bool refuses(const struct memory *m, u64 pa)
{
	return pa >= MEMORY || pa / 4096 < TABLES || m->kind[pa / 4096] == FAULTS;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct memory *m = opaque;

	if (pa % 8)
		m->bad++;
	if (later(m))
		return -VMPT_E_RETRY;
	if (pa >= MEMORY || m->kind[pa / 4096])
		return VMPT_OUTPUT_FAULT;
	memcpy(entry, m->bytes + pa, 8);
	return 0;
}

static int write_bytes(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct memory *m = opaque;

	if (!len || pa / 4096 != (pa + len - 1) / 4096)
		m->bad++;
	if (later(m))
		return -VMPT_E_RETRY;
	if (refuses(m, pa))
		return VMPT_OUTPUT_FAULT;
	if (m->kind[pa / 4096] == DROPS)
		return VMPT_OUTPUT_DROPPED;
	memcpy(m->bytes + pa, bytes, len);
	return 0;
}

const struct vmpt_output_memory memory_callbacks = { .read_entry = read_entry,
						     .write = write_bytes };

/* ---- the manual again, one byte at a time ---- */

static bool oracle_malformed(const struct oracle *o)
{
	u64 e = o->entry, address = 0;
	unsigned int bit, size = 12 + (unsigned int)(e >> 6 & 15);
	bool end = e & 1;

	for (bit = 12; bit < o->maxphyaddr; bit++)
		address |= e & 1ULL << bit;
	/* 1 and 2c: bits that are not address, Size or a flag must be 0 */
	if (e != (address | (e & 0x3d5)))
		return true;
	if (end) /* 4a, 4b */
		return e & 0x14 || !o->index || (o->one && address != o->base);
	if (o->one && o->index)
		return true;
	return address % (1ULL << size); /* 2b */
}

/* The entry at the current index; *end: it is an END entry. False: an error. */
static bool oracle_read(struct oracle *o, bool *end)
{
	u64 pa = o->base + o->index * 8;

	if (o->base % 4096 || o->base >> o->maxphyaddr || pa >> o->maxphyaddr)
		return false;
	if (pa >= MEMORY || o->m->kind[pa / 4096])
		return false;
	memcpy(&o->entry, o->m->bytes + pa, 8);
	*end = o->entry & 1;
	return !oracle_malformed(o);
}

static void oracle_topa_current(struct oracle *o)
{
	bool end = false;

	o->error = !oracle_read(o, &end);
	if (!o->error && end) {
		o->base = o->entry & 0xffffffffff000;
		o->index = 0;
		o->offset = 0;
		o->error = !oracle_read(o, &end);
	}
	if (!o->error && o->offset >= 4096ULL << (o->entry >> 6 & 15))
		o->error = true;
	o->current = !o->error;
}

static void oracle_range_current(struct oracle *o)
{
	u64 ones = 0;

	while (o->index >> ones & 1)
		ones++;
	if (o->index >> ones || ones < 7 || o->base % (1ULL << ones) || o->offset > o->index ||
	    o->base >> o->maxphyaddr)
		o->error = true;
	o->current = !o->error;
}

static void oracle_filled(struct oracle *o)
{
	o->filled++;
	if (!o->topa) {
		o->wraps++;
		o->offset = 0;
		return;
	}
	if (!o->one && o->entry & 4)
		o->ints++;
	if (o->entry & 0x10) {
		o->stopped = true;
		return;
	}
	o->index = o->index == 0x1ffffff ? 0 : o->index + 1;
	o->offset = 0;
	oracle_topa_current(o);
}

void oracle_byte(struct oracle *o, u8 byte)
{
	u64 pa, size;

	if (!o->error && !o->stopped && !o->current) {
		if (o->topa)
			oracle_topa_current(o);
		else
			oracle_range_current(o);
	}
	if (o->error || o->stopped) {
		o->lost++;
		return;
	}
	pa = (o->topa ? o->entry & 0xffffffffff000 : o->base) + o->offset;
	size = o->topa ? 4096ULL << (o->entry >> 6 & 15) : o->index + 1;
	if (refuses(o->m, pa)) {
		o->error = true;
		o->lost++;
		return;
	}
	if (o->m->kind[pa / 4096] == DROPS)
		o->dropped++;
	else
		o->m->bytes[pa] = byte;
	o->offset++;
	if (o->topa && o->one && o->entry & 4 && o->offset == size - 128)
		o->ints++;
	if (o->offset == size)
		oracle_filled(o);
}

void oracle_init(struct oracle *o, struct memory *m, const struct vmpt_pt_regs *regs,
		 const struct vmpt_pt_rules *rules)
{
	u32 low = (u32)regs->output_mask_ptrs;

	*o = (struct oracle){ .m = m,
			      .topa = regs->ctl & VMPT_CTL_TOPA,
			      .one = !rules->topa_multi,
			      .maxphyaddr = rules->maxphyaddr,
			      .base = regs->output_base,
			      .offset = regs->output_mask_ptrs >> 32 };
	o->index = o->topa ? low >> 7 : low | 0x7f;
	o->error = regs->status & VMPT_STATUS_ERROR;
	o->stopped = regs->status & VMPT_STATUS_STOPPED;
	o->halted = o->error || o->stopped;
}

/* ---- the comparison ---- */

void pair_renew(struct pair *p)
{
	p->lost += p->out.lost;
	p->dropped += p->out.dropped;
	p->reads += p->out.reads;
	p->ints += p->out.ints;
	p->events |= p->out.events;
	vmpt_output_init(&p->out, &p->rules, &p->regs, &p->callbacks);
}

const char *pair_differs(struct pair *p)
{
	const struct oracle *o = &p->o;
	u64 ptrs = o->topa ? vmpt_pt_mask_ptrs((u32)o->index, (u32)o->offset)
			   : o->offset << 32 | (u32)o->index | 0x7f;
	u64 status = (o->error ? 0x10u : 0) | (o->stopped ? 0x20u : 0);
	u32 want = (o->error && !o->halted ? VMPT_OUTPUT_ERROR : 0) |
		   (o->stopped && !o->halted ? VMPT_OUTPUT_STOP : 0) |
		   (o->ints ? VMPT_OUTPUT_INT : 0) | (o->wraps ? VMPT_OUTPUT_WRAPPED : 0);

	pair_renew(p);
	if (p->regs.output_base != o->base)
		return "OUTPUT_BASE";
	if ((p->regs.output_mask_ptrs | 0x7f) != ptrs)
		return "OUTPUT_MASK_PTRS";
	if (p->regs.status != status)
		return "STATUS";
	if (p->lost != o->lost || p->dropped != o->dropped)
		return "lost or dropped bytes";
	if (p->ints != o->ints || p->events != want)
		return "events";
	if (p->ours.bad)
		return "an access across pages or an unaligned read";
	/* Retry if the last bytes of a region are refused after the next was looked up */
	if (!p->ours.later && p->reads > 2 * (o->filled + o->error + p->loads))
		return "reads are not bounded";
	if (memcmp(p->ours.bytes, p->theirs.bytes, MEMORY))
		return "memory";
	return NULL;
}

void pair_start(struct pair *p)
{
	p->theirs = p->ours;
	p->theirs.later = 0;
	p->callbacks = memory_callbacks;
	p->callbacks.opaque = &p->ours;
	oracle_init(&p->o, &p->theirs, &p->regs, &p->rules);
	p->lost = p->dropped = p->reads = p->ints = p->events = 0;
	p->loads = 1;
	vmpt_output_init(&p->out, &p->rules, &p->regs, &p->callbacks);
}

const char *pair_write(struct pair *p, const u8 *bytes, size_t len)
{
	size_t at = 0, done, i;
	int ret;

	do {
		ret = vmpt_output_write(&p->out, bytes + at, len - at, &done);
		if (done > len - at || (ret && ret != -VMPT_E_RETRY) || (!ret && done != len - at))
			return "result of the write";
		at += done;
		/* The state is in the MSRs only. */
		if (ret && random_of(&p->ours) % 2)
			pair_renew(p);
	} while (ret);
	for (i = 0; i < len; i++)
		oracle_byte(&p->o, bytes[i]);
	return NULL;
}
