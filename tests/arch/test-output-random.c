// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/output.c against a byte-by-byte reading of SDM 3 33.2.7, written down once more
 * here: random tables with mistakes in them, single ranges, memory that drops, refuses or
 * is not there yet, writes cut anywhere. VMPT_SOAK=seconds: go on for so long.
 */
#include <stdlib.h>
#include <time.h>

#include "arch/output.h"
#include "tests/support/support.h"

#define PAGES  256u
#define TABLES 16u /* the first pages */
#define MEMORY (PAGES * 4096u)

enum kind { RAM, DROPS, FAULTS, KINDS };

/* A small physical memory, and how its callbacks behave. */
struct memory {
	u8 bytes[MEMORY];
	u8 kind[PAGES];
	struct test_rng *rng;
	u32 later; /* one in so many accesses is -VMPT_E_RETRY, 0: none */
	u32 bad;   /* accesses outside of a page */
};

static bool later(struct memory *m)
{
	return m->later && test_random(m->rng) % m->later == 0;
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
	if (pa >= MEMORY || m->kind[pa / 4096] == FAULTS)
		return VMPT_OUTPUT_FAULT;
	if (m->kind[pa / 4096] == DROPS)
		return VMPT_OUTPUT_DROPPED;
	memcpy(m->bytes + pa, bytes, len);
	return 0;
}

/* ---- the manual once more, one byte at a time ---- */

struct oracle {
	struct memory *m;
	bool topa, one;
	unsigned int maxphyaddr;
	/* proc_trace_table_base, _offset (in entries), _output_offset; or base, mask, offset */
	u64 base, index, offset;
	u64 entry;
	bool current; /* entry was read and is well-formed */
	bool error, stopped;
	u64 lost, dropped, filled;
	u32 ints, wraps;
};

static bool oracle_malformed(const struct oracle *o)
{
	u64 e = o->entry, address = 0;
	unsigned int bit, size = 12 + (unsigned int)(e >> 6 & 15);
	bool end = e & 1;

	for (bit = 12; bit < o->maxphyaddr; bit++)
		address |= e & 1ULL << bit;
	/* 1 and 2c: what is no address, no Size and no flag must be 0 */
	if (e != (address | (e & 0x3d5)))
		return true;
	if (end) /* 4a, 4b */
		return e & 0x14 || !o->index || (o->one && address != o->base);
	if (o->one && o->index)
		return true;
	return address % (1ULL << size); /* 2b */
}

/* The entry of the current index; *end: it is an END entry. False: an error. */
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

static void oracle_byte(struct oracle *o, u8 byte)
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
	if (pa >= MEMORY || o->m->kind[pa / 4096] == FAULTS) {
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

/* ---- random set-ups ---- */

static u64 random_entry(struct test_rng *rng, u64 r)
{
	unsigned int size = (unsigned int)(r >> 8 & 7) < 6 ? 0 : (unsigned int)(r >> 16) % 4;
	u64 page = TABLES + (r >> 32) % (PAGES - TABLES);
	u64 e = (page >> size << size) << 12 | size << 6;

	if (r % 4 == 0)
		e |= VMPT_TOPA_INT;
	if (r % 32 == 1)
		e |= VMPT_TOPA_STOP;
	if (r % 4 == 2)
		e = (r >> 40) % TABLES << 12 | VMPT_TOPA_END;
	if (r % 64 == 3) /* any mistake */
		e ^= 1ULL << test_random(rng) % 64;
	/* Tables are not output: when an entry is read is not the question here. */
	if (!(e & VMPT_TOPA_END) && (e >> 12 & 0xff) < TABLES)
		e |= 0x80000;
	return e;
}

static void random_memory(struct memory *m, struct test_rng *rng)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	m->rng = rng;
	for (i = 0; i < TABLES * 512; i++) {
		u64 e = random_entry(rng, test_random(rng));

		if (i % 512 == 0 && e & 1 && test_random(rng) % 16)
			e = (e & ~1ULL) | 0x80000;
		memcpy(m->bytes + 8 * i, &e, 8);
	}
	for (i = 0; i < PAGES; i++) {
		u64 r = test_random(rng) % 64;

		m->kind[i] = r == 0 ? FAULTS : r == 1 && i >= TABLES ? DROPS : RAM;
	}
}

static void random_position(struct vmpt_pt_regs *regs, struct memory *m, bool one,
			    struct test_rng *rng)
{
	u64 r = test_random(rng);

	memset(regs, 0, sizeof(*regs));
	if (r % 4 == 0) { /* a single range, from 128 bytes to 64 KiB */
		u32 mask = (128u << (r >> 8) % 10) - 1;

		regs->output_base = (TABLES * 4096u + (r >> 16) % (MEMORY / 2)) & ~(u64)mask;
		regs->output_mask_ptrs = (r >> 40) % (mask + 1ULL) << 32 | mask;
		if (r >> 60 == 0)
			regs->output_mask_ptrs ^= 1ULL << (7 + (r >> 50) % 57);
		return;
	}
	regs->ctl = VMPT_CTL_TOPA;
	regs->output_base = (r >> 8) % TABLES << 12;
	if (r >> 60 == 0)
		regs->output_base |= 0x80;
	regs->output_mask_ptrs =
		vmpt_pt_mask_ptrs(one ? 0 : (u32)(r >> 16) % 512, (u32)(r >> 32) % 4096);
	if (one) { /* mostly a table that such a processor takes */
		u64 e = regs->output_base | VMPT_TOPA_END;

		memcpy(m->bytes + (regs->output_base & ~0xfffULL) + 8, &e, 8);
	}
}

/* ---- the comparison ---- */

struct pair {
	struct memory ours, theirs;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;
	struct vmpt_output_memory callbacks;
	struct vmpt_output out;
	struct oracle o;
	u64 loads;
	u64 lost, dropped, reads, ints; /* of those struct vmpt_output that are gone */
	u32 events;
};

static void renew(struct pair *p)
{
	p->lost += p->out.lost;
	p->dropped += p->out.dropped;
	p->reads += p->out.reads;
	p->ints += p->out.ints;
	p->events |= p->out.events;
	vmpt_output_init(&p->out, &p->rules, &p->regs, &p->callbacks);
}

static const char *differs(struct pair *p)
{
	const struct oracle *o = &p->o;
	u64 ptrs = o->topa ? vmpt_pt_mask_ptrs((u32)o->index, (u32)o->offset)
			   : o->offset << 32 | (u32)o->index | 0x7f;
	u64 status = (o->error ? 0x10u : 0) | (o->stopped ? 0x20u : 0);
	u32 want = (o->error ? VMPT_OUTPUT_ERROR : 0) | (o->stopped ? VMPT_OUTPUT_STOP : 0) |
		   (o->ints ? VMPT_OUTPUT_INT : 0) | (o->wraps ? VMPT_OUTPUT_WRAPPED : 0);

	renew(p);
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
	/* Once more where the last bytes of a region are refused after the next was looked up */
	if (!p->ours.later && p->reads > 2 * (o->filled + o->error + p->loads))
		return "reads are not bounded";
	if (memcmp(p->ours.bytes, p->theirs.bytes, MEMORY))
		return "memory";
	return NULL;
}

static void start(struct pair *p, struct test_rng *rng)
{
	u64 r = test_random(rng);
	bool one = r % 4 == 0;

	random_memory(&p->ours, rng);
	random_position(&p->regs, &p->ours, one, rng);
	p->theirs = p->ours;
	p->ours.later = r >> 8 & 1 ? 8 : 0;
	p->rules = (struct vmpt_pt_rules){ .maxphyaddr = 36, .topa_multi = !one };
	p->callbacks = (struct vmpt_output_memory){ read_entry, write_bytes, &p->ours };
	p->o = (struct oracle){ .m = &p->theirs,
				.topa = p->regs.ctl,
				.one = one,
				.maxphyaddr = 36,
				.base = p->regs.output_base,
				.offset = p->regs.output_mask_ptrs >> 32 };
	p->o.index = p->o.topa ? (u32)p->regs.output_mask_ptrs >> 7
			       : (u32)p->regs.output_mask_ptrs | 0x7f;
	memset(&p->out, 0, sizeof(p->out));
	p->lost = p->dropped = p->reads = p->ints = p->events = 0;
	p->loads = 1;
	vmpt_output_init(&p->out, &p->rules, &p->regs, &p->callbacks);
}

/* One write of ours, with retries, and the same bytes to the oracle. */
static void write_both(struct pair *p, const u8 *bytes, size_t len, struct test_rng *rng)
{
	size_t at = 0, done, i;
	int ret;

	do {
		ret = vmpt_output_write(&p->out, bytes + at, len - at, &done);
		if (done > len - at || (ret && ret != -VMPT_E_RETRY) || (!ret && done != len - at))
			ck_abort_msg("write: %d, %zu of %zu", ret, done, len - at);
		at += done;
		/* The MSRs are all there is to go on from. */
		if (ret && test_random(rng) % 2)
			renew(p);
	} while (ret);
	for (i = 0; i < len; i++)
		oracle_byte(&p->o, bytes[i]);
}

static void one_run(struct pair *p, u64 seed)
{
	struct test_rng rng = { seed };
	u8 bytes[20000];
	const char *what;
	size_t i, len;
	int writes;

	start(p, &rng);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng);
	for (writes = 0; writes < 24; writes++) {
		u64 r = test_random(&rng);

		len = r % 4 ? 1 + (r >> 8) % 16 : 1 + (r >> 8) % sizeof(bytes);
		write_both(p, bytes, len, &rng);
		if (r >> 60 == 0) {
			vmpt_output_unload(&p->out);
			p->loads++;
		}
	}
	what = differs(p);
	if (what)
		ck_abort_msg("seed %#llx: %s", (unsigned long long)seed, what);
}

START_TEST(random_tables_and_writes)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct pair *p = calloc(1, sizeof(*p));
	u64 i, errors = 0, stops = 0, filled = 0, ints = 0, dropped = 0, wraps = 0;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < 500 || (soak && time(NULL) < end); i++) {
		one_run(p, 0x0a7b0 + i * 0x10001);
		errors += p->o.error;
		stops += p->o.stopped;
		filled += p->o.filled;
		ints += p->ints;
		dropped += p->dropped > 0;
		wraps += p->o.wraps;
	}
	free(p);
	/* Random input must have met all of it. */
	ck_assert_msg(errors > 50 && stops > 10 && filled > 1000 && ints > 200 && dropped > 10 &&
			      wraps > 100,
		      "%llu errors, %llu stops, %llu filled, %llu ints, %llu drops, %llu wraps",
		      (unsigned long long)errors, (unsigned long long)stops,
		      (unsigned long long)filled, (unsigned long long)ints,
		      (unsigned long long)dropped, (unsigned long long)wraps);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("output-random");
	TCase *tc = tcase_create("random");

	tcase_set_timeout(tc, getenv("VMPT_SOAK") ? 100000 : 60);
	tcase_add_test(tc, random_tables_and_writes);
	suite_add_tcase(suite, tc);
	return test_main(suite);
}
