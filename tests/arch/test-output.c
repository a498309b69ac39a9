// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/output.c, case by case: each error of SDM 3 33.2.7.1, 33.2.7.2 and 33.2.7.4 at the first use
 * and after a region, STOP, INT and END, wraps, drops, and callbacks that fail. Positions and
 * addresses are computed by hand.
 */
#include "arch/output.h"
#include "tests/support/support.h"

#define T      0x10000ULL /* a table */
#define U      0x11000ULL /* another */
#define A      0x20000ULL /* 4-KiB regions */
#define B      0x30000ULL
#define END    VMPT_TOPA_END
#define INT    VMPT_TOPA_INT
#define STOP   VMPT_TOPA_STOP
#define K8     0x40ULL	    /* Size: 8 KiB */
#define FAULTY 0xbad0000ULL /* 64 KiB that refuse */
#define HOLE   0xd0d0000ULL /* 64 KiB that drop */
#define LAST   (VMPT_TOPA_ENTRIES_MAX - 1)

#define E_INT	VMPT_OUTPUT_INT
#define E_STOP	VMPT_OUTPUT_STOP
#define E_ERROR VMPT_OUTPUT_ERROR
#define E_WRAP	VMPT_OUTPUT_WRAPPED

struct at {
	u64 pa, value;
};

struct row {
	const char *what;
	u64 base;
	u32 ptr, offset; /* ptr: the entry's index, or the mask of a single range */
	bool range, one; /* single range; a processor with one output entry */
	struct at table[4];
	u32 bytes; /* to be written */
	/* expected */
	u32 events, ints, lost, dropped, reads;
	u8 why;
	u64 to_base;
	u32 to_ptr, to_offset;
	struct at writes[3]; /* address, bytes */
};

/* A table of one 4-KiB region at A, its flags, and the next entry. */
#define REGION(flags, next) .table = { { T, A | (flags) }, { T + 8, next } }
/* The position with one byte of room, and one byte to fill it. */
#define FILL .base = T, .offset = 4095, .bytes = 1, .writes = { { A + 4095, 1 } }

static const struct row rows[] = {
	/* ToPA errors at the first use */
	{ "1: reserved bit", .base = T, REGION(0x20, 0), .bytes = 3, .events = E_ERROR, .lost = 3,
	  .reads = 1, .why = VMPT_OUTPUT_RESERVED, .to_base = T },
	{ "2a: table not aligned", .base = T | 0x80, .bytes = 3, .events = E_ERROR, .lost = 3,
	  .why = VMPT_OUTPUT_TABLE_ALIGN, .to_base = T | 0x80 },
	{ "2b: region not aligned", .base = T, .table = { { T, 0x21000 | K8 } }, .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_REGION_ALIGN, .to_base = T },
	{ "2c: region beyond MAXPHYADDR", .base = T, .table = { { T, 1ULL << 36 } }, .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_PHYSADDR, .to_base = T },
	{ "2c: table beyond MAXPHYADDR", .base = 1ULL << 36, .bytes = 1, .events = E_ERROR,
	  .lost = 1, .why = VMPT_OUTPUT_PHYSADDR, .to_base = 1ULL << 36 },
	{ "2c: the entry is beyond MAXPHYADDR", .base = 0xffffff000, .ptr = 512, .bytes = 1,
	  .events = E_ERROR, .lost = 1, .why = VMPT_OUTPUT_PHYSADDR, .to_base = 0xffffff000,
	  .to_ptr = 512 },
	{ "3: OutputOffset is the size", .base = T, .offset = 4096, REGION(0, 0), .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_OFFSET, .to_base = T,
	  .to_offset = 4096 },
	{ "3: OutputOffset is all ones", .base = T, .offset = ~0u, REGION(0, 0), .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_OFFSET, .to_base = T,
	  .to_offset = ~0u },
	{ "4a: END with INT", .base = T, .ptr = 1, REGION(0, U | END | INT), .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_END_FLAGS, .to_base = T,
	  .to_ptr = 1 },
	{ "4a: END with STOP", .base = T, .ptr = 1, REGION(0, U | END | STOP), .bytes = 1,
	  .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_END_FLAGS, .to_base = T,
	  .to_ptr = 1 },
	{ "4b: END first", .base = T, .table = { { T, U | END } }, .bytes = 1, .events = E_ERROR,
	  .lost = 1, .reads = 1, .why = VMPT_OUTPUT_END_FIRST, .to_base = T },
	{ "4c i: at entry 1 without END", .base = T, .ptr = 1, .one = true, REGION(0, B),
	  .bytes = 1, .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_ONE_NO_END,
	  .to_base = T, .to_ptr = 1 },
	{ "4c ii: at an END to elsewhere", .base = T, .ptr = 1, .one = true, REGION(0, U | END),
	  .bytes = 1, .events = E_ERROR, .lost = 1, .reads = 1, .why = VMPT_OUTPUT_ONE_BASE,
	  .to_base = T, .to_ptr = 1 },
	{ "33.2.7.4: the table's memory", .base = FAULTY, .bytes = 1, .events = E_ERROR, .lost = 1,
	  .reads = 1, .why = VMPT_OUTPUT_TABLE_MEMORY, .to_base = FAULTY },
	{ "33.2.7.4: the region's memory", .base = T, .table = { { T, FAULTY }, { T + 8, B } },
	  .bytes = 9, .events = E_ERROR, .lost = 9, .reads = 1, .why = VMPT_OUTPUT_MEMORY,
	  .to_base = T },
	{ "END is followed at the first use", .base = T, .ptr = 1, .offset = 77,
	  .table = { { T + 8, U | END }, { U, B } }, .bytes = 5, .reads = 2, .to_base = U,
	  .to_offset = 5, .writes = { { B, 5 } } },
	{ "4b after an END at the first use", .base = T, .ptr = 1, .offset = 77,
	  .table = { { T + 8, U | END }, { U, T | END } }, .bytes = 5, .events = E_ERROR, .lost = 5,
	  .reads = 2, .why = VMPT_OUTPUT_END_FIRST, .to_base = U },

	/* the same errors after a region: with its last byte, which is stored */
	{ "1 after", FILL, REGION(0, B | 2), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_RESERVED, .to_base = T, .to_ptr = 1 },
	{ "2b after", FILL, REGION(0, 0x31000 | K8), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_REGION_ALIGN, .to_base = T, .to_ptr = 1 },
	{ "2c after", FILL, REGION(0, 1ULL << 36), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_PHYSADDR, .to_base = T, .to_ptr = 1 },
	{ "2c: END to beyond MAXPHYADDR", FILL, REGION(0, 1ULL << 36 | END), .events = E_ERROR,
	  .reads = 2, .why = VMPT_OUTPUT_PHYSADDR, .to_base = T, .to_ptr = 1 },
	{ "4a after", FILL, REGION(0, U | END | INT), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_END_FLAGS, .to_base = T, .to_ptr = 1 },
	{ "4b after, in the next table", FILL,
	  .table = { { T, A }, { T + 8, U | END }, { U, T | END } }, .events = E_ERROR, .reads = 3,
	  .why = VMPT_OUTPUT_END_FIRST, .to_base = U },
	{ "4c i after", FILL, .one = true, REGION(0, B), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_ONE_NO_END, .to_base = T, .to_ptr = 1 },
	{ "4c ii after", FILL, .one = true, REGION(0, U | END), .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_ONE_BASE, .to_base = T, .to_ptr = 1 },
	{ "table memory after", FILL, .table = { { T, A } }, .events = E_ERROR, .reads = 2,
	  .why = VMPT_OUTPUT_TABLE_MEMORY, .to_base = T, .to_ptr = 1 },
	{ "table memory after, by END", FILL, REGION(0, FAULTY | END), .events = E_ERROR,
	  .reads = 3, .why = VMPT_OUTPUT_TABLE_MEMORY, .to_base = FAULTY },
	{ "INT and an error after", FILL, REGION(INT, B | 2), .events = E_ERROR | E_INT, .ints = 1,
	  .reads = 2, .why = VMPT_OUTPUT_RESERVED, .to_base = T, .to_ptr = 1 },
	{ "region memory after", .base = T, .offset = 4095, REGION(0, FAULTY), .bytes = 4,
	  .events = E_ERROR, .lost = 3, .reads = 2, .why = VMPT_OUTPUT_MEMORY, .to_base = T,
	  .to_ptr = 1, .writes = { { A + 4095, 1 } } },

	/* STOP, INT, END */
	{ "the next entry", .base = T, .offset = 4090, REGION(0, B), .bytes = 8, .reads = 2,
	  .to_base = T, .to_ptr = 1, .to_offset = 2, .writes = { { A + 4090, 6 }, { B, 2 } } },
	{ "up to the last byte but one", .base = T, .offset = 4090, REGION(INT | STOP, B),
	  .bytes = 5, .reads = 1, .to_base = T, .to_offset = 4095, .writes = { { A + 4090, 5 } } },
	{ "INT", .base = T, .offset = 4090, REGION(INT, B), .bytes = 8, .events = E_INT, .ints = 1,
	  .reads = 2, .to_base = T, .to_ptr = 1, .to_offset = 2,
	  .writes = { { A + 4090, 6 }, { B, 2 } } },
	{ "STOP: nothing after it is read", .base = T, .offset = 4090, REGION(STOP, B), .bytes = 8,
	  .events = E_STOP, .lost = 2, .reads = 1, .to_base = T, .to_offset = 4096,
	  .writes = { { A + 4090, 6 } } },
	{ "STOP and INT", FILL, REGION(INT | STOP, B), .events = E_STOP | E_INT, .ints = 1,
	  .reads = 1, .to_base = T, .to_offset = 4096 },
	{ "END to the same table", .base = T, .ptr = 1, .offset = 4095,
	  .table = { { T, A }, { T + 8, B }, { T + 16, T | END } }, .bytes = 3, .reads = 3,
	  .to_base = T, .to_offset = 2, .writes = { { B + 4095, 1 }, { A, 2 } } },
	{ "END to another table", .base = T, .offset = 4095,
	  .table = { { T, A }, { T + 8, U | END }, { U, B } }, .bytes = 3, .reads = 3, .to_base = U,
	  .to_offset = 2, .writes = { { A + 4095, 1 }, { B, 2 } } },
	{ "END is followed with the last byte", FILL,
	  .table = { { T, A }, { T + 8, U | END }, { U, B } }, .reads = 3, .to_base = U },
	{ "the end of a table without END", .base = T, .ptr = LAST, .offset = 4095,
	  .table = { { T + 8ULL * LAST, A }, { T, B } }, .bytes = 2, .reads = 2, .to_base = T,
	  .to_offset = 1, .writes = { { A + 4095, 1 }, { B, 1 } } },
	{ "two pages of one region", .base = T, .offset = 4095, .table = { { T, A | K8 } },
	  .bytes = 3, .reads = 1, .to_base = T, .to_offset = 4098,
	  .writes = { { A + 4095, 1 }, { A + 4096, 2 } } },
	{ "a region of 128 MiB", .base = T, .offset = 0x7ffffff,
	  .table = { { T, 0x8000000 | 0x3c0 }, { T + 8, B } }, .bytes = 2, .reads = 2, .to_base = T,
	  .to_ptr = 1, .to_offset = 1, .writes = { { 0xfffffff, 1 }, { B, 1 } } },

	/* one output entry: INT when 128 bytes are left, and once */
	{ "one: 129 bytes left", .base = T, .offset = 3966, .one = true, REGION(INT, T | END),
	  .bytes = 1, .reads = 1, .to_base = T, .to_offset = 3967, .writes = { { A + 3966, 1 } } },
	{ "one: 128 bytes left", .base = T, .offset = 3967, .one = true, REGION(INT, T | END),
	  .bytes = 1, .events = E_INT, .ints = 1, .reads = 1, .to_base = T, .to_offset = 3968,
	  .writes = { { A + 3967, 1 } } },
	{ "one: fewer left before: no second INT", FILL, .one = true, REGION(INT, T | END),
	  .reads = 3, .to_base = T },
	{ "one: across both points in one write", .base = T, .offset = 3960, .one = true,
	  REGION(INT, T | END), .bytes = 140, .events = E_INT, .ints = 1, .reads = 3, .to_base = T,
	  .to_offset = 4, .writes = { { A + 3960, 136 }, { A, 4 } } },
	{ "one: INT and STOP", .base = T, .offset = 3960, .one = true, REGION(INT | STOP, 0),
	  .bytes = 140, .events = E_INT | E_STOP, .ints = 1, .lost = 4, .reads = 1, .to_base = T,
	  .to_offset = 4096, .writes = { { A + 3960, 136 } } },

	/* memory that drops (Table 33-5) */
	{ "a dropping region", .base = T, .offset = 4090,
	  .table = { { T, HOLE | INT }, { T + 8, B } }, .bytes = 8, .events = E_INT, .ints = 1,
	  .dropped = 6, .reads = 2, .to_base = T, .to_ptr = 1, .to_offset = 2,
	  .writes = { { B, 2 } } },

	/* single range */
	{ "range: 128 bytes", .range = true, .base = 0x20080, .ptr = 0x7f, .offset = 0x7e,
	  .bytes = 5, .events = E_WRAP, .to_base = 0x20080, .to_ptr = 0x7f, .to_offset = 3,
	  .writes = { { 0x200fe, 2 }, { 0x20080, 3 } } },
	{ "range: its last byte", .range = true, .base = 0x20080, .ptr = 0x7f, .offset = 0x7f,
	  .bytes = 1, .events = E_WRAP, .to_base = 0x20080, .to_ptr = 0x7f,
	  .writes = { { 0x200ff, 1 } } },
	{ "range: more than once around", .range = true, .base = 0x20000, .ptr = 0x7f, .bytes = 300,
	  .events = E_WRAP, .to_base = 0x20000, .to_ptr = 0x7f, .to_offset = 44,
	  .writes = { { A, 128 }, { A, 128 }, { A, 44 } } },
	{ "range: 4 GiB", .range = true, .base = 0x100000000, .ptr = ~0u, .offset = ~0u, .bytes = 3,
	  .events = E_WRAP, .to_base = 0x100000000, .to_ptr = ~0u, .to_offset = 2,
	  .writes = { { 0x1ffffffff, 1 }, { 0x100000000, 2 } } },
	{ "range: mask not contiguous", .range = true, .base = 0x20000, .ptr = 0x17f, .bytes = 3,
	  .events = E_ERROR, .lost = 3, .why = VMPT_OUTPUT_MASK, .to_base = 0x20000,
	  .to_ptr = 0x17f },
	{ "range: base in the mask", .range = true, .base = 0x20080, .ptr = 0xff, .bytes = 3,
	  .events = E_ERROR, .lost = 3, .why = VMPT_OUTPUT_OVERLAP, .to_base = 0x20080,
	  .to_ptr = 0xff },
	{ "range: OutputOffset above the mask", .range = true, .base = 0x20000, .ptr = 0x7f,
	  .offset = 0x80, .bytes = 3, .events = E_ERROR, .lost = 3, .why = VMPT_OUTPUT_RANGE_OFFSET,
	  .to_base = 0x20000, .to_ptr = 0x7f, .to_offset = 0x80 },
	{ "range: beyond MAXPHYADDR", .range = true, .base = 1ULL << 36, .ptr = 0x7f, .bytes = 3,
	  .events = E_ERROR, .lost = 3, .why = VMPT_OUTPUT_PHYSADDR, .to_base = 1ULL << 36,
	  .to_ptr = 0x7f },
	{ "range: memory refuses", .range = true, .base = FAULTY, .ptr = 0xfff, .offset = 9,
	  .bytes = 3, .events = E_ERROR, .lost = 3, .why = VMPT_OUTPUT_MEMORY, .to_base = FAULTY,
	  .to_ptr = 0xfff, .to_offset = 9 },
	{ "range: memory drops", .range = true, .base = HOLE, .ptr = 0xfff, .offset = 4094,
	  .bytes = 3, .events = E_WRAP, .dropped = 3, .to_base = HOLE, .to_ptr = 0xfff,
	  .to_offset = 1 },
};

/* ---- a processor with only these tables ---- */

struct machine {
	const struct row *row;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;
	struct vmpt_output_memory memory;
	struct vmpt_output out;
	u8 seen[512]; /* bytes written, in order */
	u32 bytes, writes;
	struct at wrote[16];
	int fail; /* the access that fails, counted down; 0: none */
	int fail_with;
};

static bool fails(struct machine *m)
{
	return m->fail && !--m->fail;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct machine *m = opaque;
	unsigned int i;

	if (fails(m))
		return m->fail_with;
	for (i = 0; i < 4; i++) {
		if (m->row->table[i].pa == pa && pa) {
			*entry = m->row->table[i].value;
			return 0;
		}
	}
	return VMPT_OUTPUT_FAULT;
}

static int write_bytes(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct machine *m = opaque;

	if (fails(m))
		return m->fail_with;
	if (pa >> 16 == FAULTY >> 16)
		return VMPT_OUTPUT_FAULT;
	if (pa >> 16 == HOLE >> 16)
		return VMPT_OUTPUT_DROPPED;
	ck_assert(m->writes < 16 && m->bytes + len <= sizeof(m->seen));
	m->wrote[m->writes++] = (struct at){ pa, len };
	memcpy(m->seen + m->bytes, bytes, len);
	m->bytes += (u32)len;
	return 0;
}

static void machine_init(struct machine *m, const struct row *r)
{
	memset(m, 0, sizeof(*m));
	m->row = r;
	m->rules = (struct vmpt_pt_rules){ .maxphyaddr = 36, .topa_multi = !r->one };
	m->memory = (struct vmpt_output_memory){ read_entry, write_bytes, m };
	m->regs.ctl = VMPT_CTL_TRACE_EN | (r->range ? 0 : VMPT_CTL_TOPA);
	m->regs.status = VMPT_STATUS_READ_ONLY;
	m->regs.output_base = r->base;
	m->regs.output_mask_ptrs =
		(u64)r->offset << 32 | (r->range ? r->ptr : (u64)r->ptr << 7 | 0x7f);
	vmpt_output_init(&m->out, &m->rules, &m->regs, &m->memory);
}

static void check_end(const struct machine *m, const struct row *r)
{
	u64 ptrs = (u64)r->to_offset << 32 | (r->range ? r->to_ptr : (u64)r->to_ptr << 7 | 0x7f);
	u64 status = VMPT_STATUS_READ_ONLY;
	unsigned int i, at = 0;

	if (r->events & E_ERROR)
		status = VMPT_STATUS_ERROR;
	else if (r->events & E_STOP)
		status = VMPT_STATUS_STOPPED;
	if (status != VMPT_STATUS_READ_ONLY) /* TriggerEn is cleared, the others are kept */
		status |= VMPT_STATUS_CONTEXT_EN | VMPT_STATUS_FILTER_EN;
	ck_assert_msg(m->regs.status == status, "%s: STATUS %llx", r->what,
		      (unsigned long long)m->regs.status);
	ck_assert_msg(m->regs.output_base == r->to_base, "%s: OUTPUT_BASE %llx", r->what,
		      (unsigned long long)m->regs.output_base);
	ck_assert_msg(m->regs.output_mask_ptrs == ptrs, "%s: OUTPUT_MASK_PTRS %llx", r->what,
		      (unsigned long long)m->regs.output_mask_ptrs);
	ck_assert_msg(m->out.why == r->why, "%s: %s", r->what, vmpt_output_error(m->out.why));
	ck_assert_msg(m->out.events == r->events && m->out.ints == r->ints, "%s: events %x, %u",
		      r->what, m->out.events, m->out.ints);
	ck_assert_msg(m->out.lost == r->lost && m->out.dropped == r->dropped, "%s: lost %llu %llu",
		      r->what, (unsigned long long)m->out.lost, (unsigned long long)m->out.dropped);
	for (i = 0; i < 3 && r->writes[i].value; i++) {
		ck_assert_msg(i < m->writes && m->wrote[i].pa == r->writes[i].pa &&
				      m->wrote[i].value == r->writes[i].value,
			      "%s: write %u", r->what, i);
	}
	ck_assert_msg(m->writes == i, "%s: %u writes", r->what, m->writes);
	/* the bytes are 0, 1, 2 …; lost or dropped bytes are missing at one end */
	for (i = 0; i < m->bytes; i++, at++)
		ck_assert_msg(m->seen[i] == (u8)(at + r->dropped), "%s: byte %u", r->what, i);
}

static void fill_bytes(u8 *bytes, size_t n)
{
	while (n--)
		bytes[n] = (u8)n;
}

START_TEST(a_case)
{
	const struct row *r = &rows[_i];
	struct machine m;
	u8 bytes[512];
	size_t done = 99;

	fill_bytes(bytes, sizeof(bytes));
	machine_init(&m, r);
	ck_assert_msg(!vmpt_output_write(&m.out, bytes, r->bytes, &done), "%s", r->what);
	ck_assert_msg(done == r->bytes, "%s: done %zu", r->what, done);
	ck_assert_msg(m.out.reads == r->reads, "%s: reads %llu", r->what,
		      (unsigned long long)m.out.reads);
	check_end(&m, r);
}
END_TEST

/* Each access of each case fails once: the call continues and the result is the same. */
START_TEST(a_case_with_retries)
{
	const struct row *r = &rows[_i];
	struct machine m;
	u8 bytes[512];
	int fail, renew;

	fill_bytes(bytes, sizeof(bytes));
	for (fail = 1; fail < 12; fail++) {
		for (renew = 0; renew < 2; renew++) {
			size_t at = 0, done;
			int ret;

			machine_init(&m, r);
			m.fail = fail;
			m.fail_with = -VMPT_E_RETRY;
			ret = vmpt_output_write(&m.out, bytes, r->bytes, &done);
			at = done;
			if (ret) {
				u32 events = m.out.events, ints = m.out.ints;
				u64 lost = m.out.lost, dropped = m.out.dropped;

				ck_assert_int_eq(ret, -VMPT_E_RETRY);
				ck_assert_int_eq(m.fail, 0);
				if (renew) { /* the whole position is in the MSRs */
					vmpt_output_init(&m.out, &m.rules, &m.regs, &m.memory);
					m.out.events = events;
					m.out.ints = ints;
					m.out.lost = lost;
					m.out.dropped = dropped;
				}
				ret = vmpt_output_write(&m.out, bytes + at, r->bytes - at, &done);
				at += done;
			}
			ck_assert_int_eq(ret, 0);
			ck_assert_uint_eq(at, r->bytes);
			check_end(&m, r);
		}
	}
}
END_TEST

/* Byte by byte gives the same as all at once. */
START_TEST(a_case_by_bytes)
{
	const struct row *r = &rows[_i];
	struct machine m;
	struct row cut = *r;
	u8 byte;
	u32 i;

	memset(cut.writes, 0, sizeof(cut.writes));
	machine_init(&m, r);
	for (i = 0; i < r->bytes; i++) {
		size_t done;

		byte = (u8)i;
		ck_assert_int_eq(vmpt_output_write(&m.out, &byte, 1, &done), 0);
		ck_assert_uint_eq(done, 1);
		m.writes = 0; /* a_case checks addresses */
	}
	check_end(&m, &cut);
}
END_TEST

/* Any negative value of a callback is returned unchanged, at load and at write. */
START_TEST(errors_of_callbacks)
{
	static const struct row r = { "errors", .base = T, REGION(0, B) };
	struct machine m;
	u8 bytes[4] = { 0, 1, 2, 3 };
	size_t done;

	machine_init(&m, &r);
	m.fail = 1;
	m.fail_with = -1234;
	ck_assert_int_eq(vmpt_output_load(&m.out), -1234);
	ck_assert(!m.out.loaded && !m.out.events);
	ck_assert_int_eq(vmpt_output_load(&m.out), 0);
	ck_assert(m.out.loaded && m.out.region == A && m.out.size == 4096);
	m.fail = 1;
	ck_assert_int_eq(vmpt_output_write(&m.out, bytes, 4, &done), -1234);
	ck_assert_uint_eq(done, 0);
	ck_assert_int_eq(vmpt_output_write(&m.out, bytes, 4, &done), 0);
	ck_assert_uint_eq(done, 4);
	ck_assert_uint_eq(m.regs.output_mask_ptrs, vmpt_pt_mask_ptrs(0, 4));
	/* a load that fails leaves no region that was loaded before */
	m.fail = 1;
	ck_assert_int_eq(vmpt_output_load(&m.out), -1234);
	ck_assert(!m.out.loaded);
	/* nothing to write: nothing happens */
	m.fail = 1;
	ck_assert_int_eq(vmpt_output_write(&m.out, bytes, 0, &done), 0);
	ck_assert_uint_eq(done, 0);
}
END_TEST

/* With Error or Stopped set nothing is read, written or signalled again. */
START_TEST(no_output_when_halted)
{
	static const struct row r = { "halted", .base = T, .offset = 4096, REGION(STOP, B) };
	static const u64 bits[] = { VMPT_STATUS_ERROR, VMPT_STATUS_STOPPED };
	struct machine m;
	u8 bytes[4] = { 0 };
	size_t done;

	machine_init(&m, &r);
	m.regs.status = bits[_i];
	ck_assert_int_eq(vmpt_output_load(&m.out), 0);
	ck_assert(!m.out.loaded && !m.out.events && !m.out.reads);
	ck_assert_int_eq(vmpt_output_write(&m.out, bytes, 4, &done), 0);
	ck_assert(done == 4 && m.out.lost == 4 && !m.writes && !m.out.events && !m.out.reads);
	ck_assert_uint_eq(m.regs.status, bits[_i]);
	ck_assert_uint_eq(m.regs.output_mask_ptrs, 4096ULL << 32 | 0x7f);
	/* "would produce an operational error if … Stopped cleared" (33.2.7.2) */
	m.regs.status = 0;
	ck_assert_int_eq(vmpt_output_load(&m.out), 0);
	ck_assert_uint_eq(m.regs.status, VMPT_STATUS_ERROR);
	ck_assert_uint_eq(m.out.why, VMPT_OUTPUT_OFFSET);
}
END_TEST

/* FabricEn is never given to a guest; if it is set anyway, output must not go anywhere. */
START_TEST(fabric)
{
	static const struct row r = { "fabric", .base = T, REGION(0, B) };
	struct machine m;

	machine_init(&m, &r);
	m.regs.ctl |= VMPT_CTL_FABRIC_EN;
	ck_assert_int_eq(vmpt_output_load(&m.out), 0);
	ck_assert(m.out.events == E_ERROR && m.out.why == VMPT_OUTPUT_FABRIC && !m.out.reads);
}
END_TEST

/* Where output is after the current page; 0: nowhere. Nothing changes. */
static const struct {
	struct row row;
	u64 next;
	u32 reads; /* more than those of the load */
} nexts[] = {
	{ { "the next page of a region", .base = T, .offset = 4095, .table = { { T, A | K8 } } },
	  A + 4096,
	  0 },
	{ { "the next entry", .base = T, .offset = 7, REGION(INT, B) }, B, 1 },
	{ { "a region's last page", .base = T, .offset = 4096,
	    .table = { { T, A | K8 }, { T + 8, B } } },
	  B,
	  1 },
	{ { "STOP", .base = T, REGION(STOP, B) }, 0, 0 },
	{ { "STOP after another page", .base = T, .table = { { T, A | K8 | STOP } } },
	  A + 4096,
	  0 },
	{ { "END", .base = T, .table = { { T, A }, { T + 8, U | END }, { U, B } } }, B, 2 },
	{ { "the end of a table without END", .base = T, .ptr = LAST,
	    .table = { { T + 8ULL * LAST, A }, { T, B } } },
	  B,
	  1 },
	{ { "an error after", .base = T, REGION(0, B | 2) }, 0, 1 },
	{ { "table memory after", .base = T, REGION(0, FAULTY | END) }, 0, 2 },
	{ { "single range", .base = A, .ptr = 0x1fff, .range = true }, A + 4096, 0 },
	{ { "single range, its end", .base = A, .ptr = 0x1fff, .offset = 0x1fff, .range = true },
	  A,
	  0 },
	{ { "a range of 128 bytes", .base = A + 128, .ptr = 127, .offset = 100, .range = true },
	  A + 128,
	  0 },
};

START_TEST(the_next_page)
{
	const u64 want = nexts[_i].next;
	struct machine m;
	struct vmpt_pt_regs regs;
	u64 pa = 0, reads;

	machine_init(&m, &nexts[_i].row);
	ck_assert_int_eq(vmpt_output_next(&m.out, &pa), 1); /* not loaded */
	ck_assert_int_eq(vmpt_output_load(&m.out), 0);
	regs = m.regs;
	reads = m.out.reads;
	ck_assert_int_eq(vmpt_output_next(&m.out, &pa), !want);
	if (want)
		ck_assert_uint_eq(pa, want);
	ck_assert_uint_eq(m.out.reads - reads, nexts[_i].reads);
	ck_assert(!memcmp(&regs, &m.regs, sizeof(regs)) && !m.out.events && m.out.loaded);
	if (!nexts[_i].reads)
		return;
	m.fail = nexts[_i].reads; /* the callback's error is returned */
	m.fail_with = -1234;
	ck_assert_int_eq(vmpt_output_next(&m.out, &pa), -1234);
	ck_assert(!memcmp(&regs, &m.regs, sizeof(regs)) && !m.out.events && m.out.loaded);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("output");
	TCase *tc = tcase_create("output");
	int n = (int)VMPT_ARRAY_SIZE(rows);

	tcase_add_loop_test(tc, a_case, 0, n);
	tcase_add_loop_test(tc, a_case_with_retries, 0, n);
	tcase_add_loop_test(tc, a_case_by_bytes, 0, n);
	tcase_add_test(tc, errors_of_callbacks);
	tcase_add_loop_test(tc, no_output_when_halted, 0, 2);
	tcase_add_test(tc, fabric);
	tcase_add_loop_test(tc, the_next_page, 0, (int)VMPT_ARRAY_SIZE(nexts));
	suite_add_tcase(suite, tc);
	return suite;
}
