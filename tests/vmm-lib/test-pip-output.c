// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where PIPs go: around a region's end in every way, with memory that is late or missing
 * (vmm-lib/guest-memory.c), with each callback failing, and between other packets in whole buffers,
 * which libipt reads.
 */
#include <errno.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>

#include "arch/pt-packet.h"
#include "tests/vmm-lib/pip-bed.h"

#define CR3    0x123456789000ULL
#define SECOND 0x20000ULL /* page 32, a second region */

/* ---- around a region's end ---- */

enum way { NEXT, END_SAME, END_OTHER, STOP, MALFORMED, RANGE, WAYS };

struct end_case {
	struct pip_bed bed;
	u64 second; /* where the bytes after the region's end go, 0: nowhere */
	u64 base;   /* the position there */
	u32 index;
};

static void end_case_init(struct end_case *c, enum way way, u64 flags)
{
	struct guest *g = &c->bed.guest;

	pip_bed_init(&c->bed);
	c->second = SECOND;
	c->base = TABLE;
	c->index = 1;
	guest_put64(g, TABLE, OUTPUT | flags | (way == STOP ? VMPT_TOPA_STOP : 0));
	guest_put64(g, TABLE + 8, SECOND);
	switch (way) {
	case NEXT:
		break;
	case END_SAME:
		guest_put64(g, TABLE + 8, TABLE | VMPT_TOPA_END);
		c->second = OUTPUT;
		c->index = 0;
		break;
	case END_OTHER:
		guest_put64(g, TABLE + 8, TABLE2 | VMPT_TOPA_END);
		guest_put64(g, TABLE2, SECOND);
		c->base = TABLE2;
		c->index = 0;
		break;
	case MALFORMED:
		guest_put64(g, TABLE + 8, SECOND | 0x800);
		/* fall through */
	case STOP:
		c->second = 0;
		break;
	default:
		c->bed.v.regs.ctl &= ~VMPT_CTL_TOPA;
		c->bed.v.regs.output_base = OUTPUT;
		c->second = OUTPUT;
	}
}

static void check_position(const struct end_case *c, enum way way, u32 room, const char *what)
{
	const struct vmpt_pt_regs *regs = &c->bed.v.regs;
	bool over = room <= PIP_SIZE;
	u32 offset = over ? PIP_SIZE - room : 4096 - room + PIP_SIZE, index = over ? c->index : 0;
	u64 base = over ? c->base : TABLE, ptrs;

	if (over && way == STOP) {
		index = 0;
		offset = 4096;
	} else if (over && way == MALFORMED) {
		offset = 0;
	}
	ptrs = (u64)offset << 32 | index << 7 | 0x7f;
	if (way == RANGE) {
		base = OUTPUT;
		ptrs = (u64)offset << 32 | 0xfff;
	}
	if (regs->output_base != base || regs->output_mask_ptrs != ptrs)
		ck_abort_msg("%s: position %llx %llx", what, (unsigned long long)regs->output_base,
			     (unsigned long long)regs->output_mask_ptrs);
}

static void check_bytes(struct end_case *c, u32 room, const char *what)
{
	u32 first = room < PIP_SIZE ? room : PIP_SIZE;
	u8 want[PIP_SIZE], got[PIP_SIZE] = { 0 };

	pip_bytes(want, CR3, true);
	guest_get(&c->bed.guest, OUTPUT + 4096 - room, got, first);
	if (first < PIP_SIZE && c->second)
		guest_get(&c->bed.guest, c->second, got + first, PIP_SIZE - first);
	else if (first < PIP_SIZE)
		memset(want + first, 0, PIP_SIZE - first);
	if (memcmp(want, got, PIP_SIZE))
		ck_abort_msg("%s: bytes", what);
}

/* Every room from 1 to 16 bytes, every continuation, INT or not, PMI preservation or not. */
START_TEST(around_a_region_end)
{
	enum way way = (enum way)_i;
	u32 room, flags;

	for (room = 1; room <= 2 * PIP_SIZE; room++) {
		for (flags = 0; flags < 4; flags++) {
			bool pmi = flags & 1 && way != RANGE && room <= PIP_SIZE;
			bool lost = room < PIP_SIZE && (way == STOP || way == MALFORMED);
			u32 events = (pmi ? VMPT_EVENT_PMI : 0) | (lost ? VMPT_EVENT_LOST : 0);
			struct end_case c;
			struct vmpt_vcpu *v = &c.bed.v;
			char what[64];

			snprintf(what, sizeof(what), "way %d, room %u, flags %u", _i, room, flags);
			end_case_init(&c, way, flags & 1 ? VMPT_TOPA_INT : 0);
			v->regs.output_mask_ptrs =
				(4096ULL - room) << 32 | (way == RANGE ? 0xfff : 0x7f);
			if (flags & 2)
				v->regs.ctl |= VMPT_CTL_INJECT;
			if (room <= PIP_SIZE && way == STOP)
				events |= VMPT_EVENT_STOP;
			if (room <= PIP_SIZE && way == MALFORMED)
				events |= VMPT_EVENT_ERROR;
			if (pip_mov(&c.bed, CR3) != 1)
				ck_abort_msg("%s: no PIP", what);
			check_position(&c, way, room, what);
			check_bytes(&c, room, what);
			if (v->events != events || c.bed.guest.pmis != pmi ||
			    v->global_status != pmi)
				ck_abort_msg("%s: events %x", what, v->events);
			if (!(v->regs.status & VMPT_STATUS_PEND_PMI) != !(pmi && flags & 2))
				ck_abort_msg("%s: PendTopaPMI", what);
			/* The next VM entry does not pend the PMI again. */
			if (v->held_pend_pmi != (pmi && flags & 2))
				ck_abort_msg("%s: held", what);
			if (vmpt_pt_packet_bytes(&v->regs) != 100 + (lost ? room : PIP_SIZE))
				ck_abort_msg("%s: PacketByteCnt", what);
			if (v->shadow.stale != (room <= PIP_SIZE && c.index + c.base != TABLE &&
						way != RANGE && way != STOP))
				ck_abort_msg("%s: stale", what);
			if (c.bed.accesses > 4 + 2)
				ck_abort_msg("%s: %llu accesses", what,
					     (unsigned long long)c.bed.accesses);
			pip_bed_free(&c.bed);
		}
	}
}
END_TEST

/* Each access of each way fails once: nothing has moved, and a second call makes one PIP. */
START_TEST(each_access_fails)
{
	static const int errors[] = { -VMPT_E_RETRY, -14 };
	enum way way = (enum way)(_i / 2);
	u32 room;
	int fail;

	for (room = 1; room <= PIP_SIZE + 1; room++) {
		for (fail = 1; fail <= 6; fail++) {
			struct end_case c;
			struct vmpt_pt_regs before;
			u64 made;
			char what[64];
			int ret;

			snprintf(what, sizeof(what), "way %d, room %u, access %d", _i / 2, room,
				 fail);
			end_case_init(&c, way, VMPT_TOPA_INT);
			c.bed.v.regs.output_mask_ptrs =
				(4096ULL - room) << 32 | (way == RANGE ? 0xfff : 0x7f);
			before = c.bed.v.regs;
			c.bed.fail = fail;
			c.bed.fail_with = errors[_i % 2];
			ret = pip_mov(&c.bed, CR3);
			made = c.bed.accesses;
			if (ret != 1) {
				if (ret != errors[_i % 2])
					ck_abort_msg("%s: %d", what, ret);
				if (memcmp(&before, &c.bed.v.regs, sizeof(before)) ||
				    c.bed.v.events || c.bed.guest.pmis)
					ck_abort_msg("%s: moved", what);
				ret = pip_mov(&c.bed, CR3);
			} else if (made >= (u64)fail) {
				ck_abort_msg("%s: did not fail", what);
			}
			if (ret != 1)
				ck_abort_msg("%s: again: %d", what, ret);
			check_position(&c, way, room, what);
			check_bytes(&c, room, what);
			pip_bed_free(&c.bed);
		}
	}
}
END_TEST

/* ---- the VMM's policy ---- */

struct policy_row {
	enum vmpt_guest_mem kind;
	enum vmpt_mem_policy policy;
	bool table; /* in the table's memory, else in the region's */
	int ret;
	u32 events;
	u8 why;
};

#define ROW(kind, policy, table, ret, events, why)                             \
	{                                                                      \
		VMPT_MEM_##kind, VMPT_ON_MEM_##policy, table, ret, events, why \
	}
#define EE (VMPT_EVENT_ERROR | VMPT_EVENT_LOST)

static const struct policy_row policy_rows[] = {
	ROW(UNBACKED, ERROR, false, 1, EE, VMPT_OUTPUT_MEMORY),
	ROW(UNBACKED, DROP, false, 1, VMPT_EVENT_LOST, 0),
	ROW(UNBACKED, RETRY, false, -VMPT_E_RETRY, 0, 0),
	ROW(MMIO, ERROR, false, 1, EE, VMPT_OUTPUT_MEMORY),
	ROW(MMIO, DROP, false, 1, VMPT_EVENT_LOST, 0),
	ROW(MMIO, RETRY, false, -VMPT_E_RETRY, 0, 0),
	ROW(APIC, ERROR, false, 1, EE, VMPT_OUTPUT_MEMORY),
	ROW(APIC, DROP, false, 1, VMPT_EVENT_LOST, 0),
	ROW(APIC, RETRY, false, -VMPT_E_RETRY, 0, 0),
	ROW(RESTRICTED, ERROR, false, 1, EE, VMPT_OUTPUT_MEMORY),
	ROW(RESTRICTED, DROP, false, 1, VMPT_EVENT_LOST, 0),
	ROW(RESTRICTED, RETRY, false, -VMPT_E_RETRY, 0, 0),
	/* An undefined kind (a VMM's bug) is not memory. */
	{ VMPT_MEMS, VMPT_ON_MEM_DROP, false, 1, EE, VMPT_OUTPUT_MEMORY },
	/* A table is an error, except in memory that comes later. */
	ROW(UNBACKED, ERROR, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(UNBACKED, DROP, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(UNBACKED, RETRY, true, -VMPT_E_RETRY, 0, 0),
	ROW(MMIO, ERROR, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(MMIO, DROP, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(MMIO, RETRY, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(APIC, RETRY, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(RESTRICTED, DROP, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	ROW(RESTRICTED, RETRY, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY),
	{ VMPT_MEMS, VMPT_ON_MEM_RETRY, true, 1, EE, VMPT_OUTPUT_TABLE_MEMORY },
};

START_TEST(a_policy)
{
	const struct policy_row *r = &policy_rows[_i];
	u32 page = r->table ? TABLE / 4096 : OUTPUT / 4096;
	struct pip_bed bed;
	u8 zero[16] = { 0 }, got[16];
	u32 i;

	pip_bed_init(&bed);
	for (i = 0; i < VMPT_MEMS; i++) /* the others have the opposite */
		bed.v.on_mem[i] =
			r->policy == VMPT_ON_MEM_DROP ? VMPT_ON_MEM_ERROR : VMPT_ON_MEM_DROP;
	bed.v.xsave = true; /* the value after on_mem[] is not a policy */
	if (r->kind < VMPT_MEMS)
		bed.v.on_mem[r->kind] = (u8)r->policy;
	guest_set_kind(&bed.guest, page, 1, r->kind);
	ck_assert_int_eq(pip_mov(&bed, CR3), r->ret);
	ck_assert_uint_eq(bed.v.events, r->events);
	ck_assert_uint_eq(bed.v.output_why, r->why);
	ck_assert_uint_eq(!!(bed.v.regs.status & VMPT_STATUS_ERROR),
			  !!(r->events & VMPT_EVENT_ERROR));
	/* Dropped bytes count as output for the processor; refused ones do not. */
	i = r->events == VMPT_EVENT_LOST ? PIP_SIZE : 0;
	ck_assert_uint_eq(bed.v.regs.output_mask_ptrs, (u64)i << 32 | 0x7f);
	ck_assert_uint_eq(vmpt_pt_packet_bytes(&bed.v.regs), 100 + i);
	guest_set_kind(&bed.guest, page, 1, VMPT_MEM_OK);
	guest_get(&bed.guest, OUTPUT, got, sizeof(got));
	ck_assert_mem_eq(got, zero, sizeof(got));
	/* The VMM provides the memory and calls again: one PIP. */
	if (r->ret == -VMPT_E_RETRY) {
		ck_assert_int_eq(pip_mov(&bed, CR3), 1);
		guest_get(&bed.guest, OUTPUT, got, sizeof(got));
		pip_bytes(zero, CR3, true);
		ck_assert_mem_eq(got, zero, sizeof(got));
	}
	pip_bed_free(&bed);
}
END_TEST

/* Memory ends inside a region: the bytes before that are written and counted. */
START_TEST(memory_ends_in_a_region)
{
	struct pip_bed bed;
	u8 want[PIP_SIZE], got[PIP_SIZE] = { 0 };

	pip_bed_init(&bed);
	guest_put64(&bed.guest, TABLE, OUTPUT | 1 << 6); /* 8 KiB */
	guest_set_kind(&bed.guest, OUTPUT / 4096 + 1, 1, VMPT_MEM_MMIO);
	pip_bed_at(&bed, TABLE, 0, 4093);
	ck_assert_int_eq(pip_mov(&bed, CR3), 1);
	ck_assert_uint_eq(bed.v.events, EE);
	ck_assert_uint_eq(bed.v.output_why, VMPT_OUTPUT_MEMORY);
	ck_assert_uint_eq(vmpt_pt_output_offset(&bed.v.regs), 4096);
	ck_assert_uint_eq(vmpt_pt_packet_bytes(&bed.v.regs), 103);
	pip_bytes(want, CR3, true);
	guest_get(&bed.guest, OUTPUT + 4093, got, 3);
	ck_assert_mem_eq(got, want, 3);
	pip_bed_free(&bed);
}
END_TEST

/* A callback's errno is returned unchanged, though -EINVAL was once -VMPT_E_RETRY. */
START_TEST(errno_of_a_callback)
{
	static const int errors[] = { -EINVAL, -ENOMEM, -EIO, -4095 };
	struct pip_bed bed;
	u32 i;

	pip_bed_init(&bed);
	pip_bed_at(&bed, TABLE, 0, 4093);
	for (i = 0; i < 3 * VMPT_ARRAY_SIZE(errors); i++) {
		/* The table, the write before the region's end, the table again. */
		bed.fail = 1 + (int)i % 3;
		bed.fail_with = errors[i / 3];
		ck_assert_int_eq(pip_mov(&bed, CR3), errors[i / 3]);
		ck_assert_int_ne(errors[i / 3], -VMPT_E_RETRY);
	}
	pip_bed_free(&bed);
}
END_TEST

/* ---- whole buffers, read by libipt ---- */

#define EVENTS_MAX 4000u

struct pip {
	u64 cr3;
	bool nr;
};

struct whole {
	struct pip_bed bed;
	struct test_rng rng;
	struct pip pips[EVENTS_MAX];
	u32 n, others;
	u64 bytes;
	u8 *buffer; /* the guest's regions one after the other */
	u32 size;
};

/* What a processor writes between two exits. */
static void other_packet(struct whole *w)
{
	static const u8 kinds[] = { VMPT_PT_TNT_8, VMPT_PT_TIP, VMPT_PT_FUP,  VMPT_PT_MTC,
				    VMPT_PT_TSC,   VMPT_PT_CBR, VMPT_PT_VMCS, VMPT_PT_PAD };
	struct vmpt_pt_packet pkt = { .kind = kinds[test_random(&w->rng) % sizeof(kinds)] };
	u64 r = test_random(&w->rng);
	struct vmpt_guest_output out;
	u8 buf[VMPT_PT_SIZE_MAX];
	size_t done;
	int size;

	switch (pkt.kind) {
	case VMPT_PT_TNT_8:
		pkt.tnt.count = 1 + r % 6;
		pkt.tnt.bits = (r >> 8) & ((1u << pkt.tnt.count) - 1);
		break;
	case VMPT_PT_TIP:
	case VMPT_PT_FUP:
		pkt.ip.ipbytes = 6;
		/* An address that looks like the start of a PIP */
		pkt.ip.ip = r % 2 ? 0x0043024302430243 : r >> 17;
		break;
	case VMPT_PT_VMCS:
	case VMPT_PT_PAD:
	case VMPT_PT_CBR:
		break;
	default:
		pkt.val[0] = r & (pkt.kind == VMPT_PT_TSC ? 0xffffffffffffff : 0xff);
	}
	size = vmpt_pt_encode(&pkt, buf, sizeof(buf), 0);
	ck_assert_int_gt(size, 0);
	vmpt_guest_output_init(&out, &w->bed.v);
	ck_assert_int_eq(vmpt_output_write(&out.out, buf, (size_t)size, &done), 0);
	vmpt_guest_output_done(&out, &w->bed.v);
	w->others++;
	w->bytes += (u64)size;
}

static void a_pip(struct whole *w)
{
	struct pip *p = &w->pips[w->n++];
	struct vmpt_cr3_write write = { .old_cr3 = 0x1000 };
	u64 r = test_random(&w->rng);
	int ret;

	p->nr = r & 1;
	w->bed.v.plan.conceal = !p->nr;
	write.pae_after = r >> 1 & 1;
	write.new_cr3 = r >> 6 & 0xfffffffffffffULL;
	p->cr3 = write.new_cr3 & (write.pae_after ? ~0x1fULL : ~0xfffULL);
	/* Sometimes memory comes late. */
	w->bed.fail = r >> 60 == 0 ? 1 + (int)(r >> 4 & 3) : 0;
	w->bed.fail_with = -VMPT_E_RETRY;
	ret = vmpt_vcpu_cr3_write(&w->bed.v, &write);
	if (ret == -VMPT_E_RETRY)
		ret = vmpt_vcpu_cr3_write(&w->bed.v, &write);
	w->bed.fail = 0;
	if (ret != 1)
		ck_abort_msg("no PIP: %d", ret);
	w->bytes += PIP_SIZE;
}

/* Regions of 4, 8 and 16 KiB in any order of addresses, two tables; the bytes in order. */
static void make_tables(struct whole *w)
{
	static const u32 pages[][2] = { { 40, 1 }, { 16, 2 }, { 20, 0 }, { 44, 2 },
					{ 24, 1 }, { 22, 0 }, { 32, 2 }, { 21, 0 } };
	struct guest *g = &w->bed.guest;
	u32 i;

	for (i = 0; i < 8; i++) {
		u64 table = i < 4 ? TABLE + 8 * i : TABLE2 + 8 * (i - 4);

		/* pages[i][0] is made a multiple of its size by hand above */
		guest_put64(g, table,
			    (u64)pages[i][0] << 12 | pages[i][1] << 6 |
				    (i & 1 ? VMPT_TOPA_INT : 0));
		w->size += 4096u << pages[i][1];
	}
	guest_put64(g, TABLE + 32, TABLE2 | VMPT_TOPA_END);
	guest_put64(g, TABLE2 + 32, TABLE | VMPT_TOPA_END);
	w->buffer = malloc(w->size);
	ck_assert_ptr_nonnull(w->buffer);
}

static void read_out(struct whole *w)
{
	u32 at = 0, i;

	for (i = 0; i < 8; i++) {
		u64 e = guest_get64(&w->bed.guest, i < 4 ? TABLE + 8 * i : TABLE2 + 8 * (i - 4));
		u32 size = 4096u << (e >> 6 & 15), j;

		for (j = 0; j < size; j += 4096, at += 4096)
			guest_get(&w->bed.guest, (e >> 12 << 12) + j, w->buffer + at, 4096);
	}
}

/* Each packet that libipt finds in @size bytes; the PIPs are the expected ones in order. */
static void read_by_libipt(const struct whole *w, u64 size, u64 seed)
{
	struct pt_config config;
	struct pt_packet_decoder *decoder;
	struct pt_packet pkt;
	u32 n = 0, others = 0;
	int ret;

	pt_config_init(&config);
	config.begin = w->buffer;
	config.end = w->buffer + size;
	decoder = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(decoder);
	ck_assert_int_eq(pt_pkt_sync_set(decoder, 0), 0);
	while ((ret = pt_pkt_next(decoder, &pkt, sizeof(pkt))) > 0) {
		if (pkt.type != ppt_pip) {
			others++;
			continue;
		}
		if (n >= w->n || pkt.payload.pip.cr3 != w->pips[n].cr3 ||
		    pkt.payload.pip.nr != w->pips[n].nr)
			ck_abort_msg("seed %#llx: PIP %u", (unsigned long long)seed, n);
		n++;
	}
	ck_assert_msg(ret == -pte_eos && n == w->n && others == w->others,
		      "seed %#llx: %d, %u of %u PIPs, %u of %u others", (unsigned long long)seed,
		      ret, n, w->n, others, w->others);
	pt_pkt_free_decoder(decoder);
}

static u64 one_buffer(u64 seed)
{
	struct whole *w = calloc(1, sizeof(*w));
	u64 pmis;

	ck_assert_ptr_nonnull(w);
	w->rng.state = seed;
	pip_bed_init(&w->bed);
	make_tables(w);
	if (seed % 2)
		guest_shuffle(&w->bed.guest, seed);
	while (w->bytes + 64 < w->size && w->n < EVENTS_MAX) {
		/* The guest's handler resets the bit. */
		w->bed.v.global_status = false;
		if (test_random(&w->rng) % 3)
			other_packet(w);
		else
			a_pip(w);
	}
	read_out(w);
	read_by_libipt(w, w->bytes, seed);
	pmis = w->bed.guest.pmis;
	pip_bed_free(&w->bed);
	free(w->buffer);
	free(w);
	return pmis;
}

START_TEST(whole_buffers)
{
	u64 seed, pmis = 0;

	for (seed = 1; seed <= 40; seed++)
		pmis += one_buffer(seed);
	/* INT in every second of eight regions; the last one is not filled */
	ck_assert_uint_eq(pmis, 40 * 3);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pip-output");
	TCase *tc = tcase_create("output");

	tcase_add_loop_test(tc, around_a_region_end, 0, WAYS);
	tcase_add_loop_test(tc, each_access_fails, 0, 2 * WAYS);
	tcase_add_loop_test(tc, a_policy, 0, (int)VMPT_ARRAY_SIZE(policy_rows));
	tcase_add_test(tc, memory_ends_in_a_region);
	tcase_add_test(tc, errno_of_a_callback);
	tcase_add_test(tc, whole_buffers);
	suite_add_tcase(suite, tc);
	return suite;
}
