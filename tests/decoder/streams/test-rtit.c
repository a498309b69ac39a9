// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One owner's stream from RTIT traces: bytes written out by hand; and random streams with random
 * cuts, where each written stream decodes on its own to the packets of its owner's slices.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/decoder/extract-memory.h"
#include "tests/decoder/rtit-streams.h"

#define PSB 0xc0, 0, 0, 0, 0, 0, 0, 0, 0

static const struct vmpt_owner vm_1 = { .vmcs = 1, .kind = VMPT_OWNER_VM };
static const struct vmpt_owner vm_2 = { .vmcs = 2, .kind = VMPT_OWNER_VM };

static struct vmpt_stream stream_of(const u8 *bytes, u64 size)
{
	return (struct vmpt_stream){
		.data = bytes, .size = size, .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT
	};
}

static void check_stream(const struct extracted *e, u64 vmcs, const u8 *bytes, size_t size)
{
	const struct extracted_stream *s = extracted_find(e, vmcs);

	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->size, size);
	ck_assert_mem_eq(s->bytes, bytes, size);
}

/* ---- by hand ---- */

START_TEST(a_lip_that_leans_on_another_owner_is_full)
{
	static const u8 trace[] = {
		PSB,					  /* 0 */
		0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, /* 9 FUP.PGE ffff81001000 */
		0x43,					  /* 16 TNT */
		0x88, 0x20, 0x10,			  /* 17 FUP.PGD, last LIP: …1020 */
		0x80, 0x00, 0x20,			  /* 20 FUP.PGE, last LIP: …2000 */
		0xb0, 0x10, 0x20,			  /* 23 TIP …2010 */
		0x8d, 0x00, 0x00, 0x40, 0x00,		  /* 26 FUP.PGD 400000, zext */
		0x80, 0x30, 0x10,			  /* 31 FUP.PGE 401030, last LIP */
		0xb5, 0x44, 0x33, 0x22, 0x11,		  /* 34 TIP 11223344, zext */
	};
	static const u8 first[] = {
		PSB,  0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0x43, 0x88, 0x20, 0x10, PSB,
		0x82, 0x30, 0x10, 0x40, 0x00, 0x00, 0x00, 0xb5, 0x44, 0x33, 0x22, 0x11,
	};
	static const u8 second[] = {
		PSB,  0x82, 0x00, 0x20, 0x00, 0x81, 0xff, 0xff,
		0xb0, 0x10, 0x20, 0x8d, 0x00, 0x00, 0x40, 0x00,
	};
	const struct vmpt_run runs[] = { { .at = 0, .owner = vm_1 },
					 { .at = 20, .owner = vm_2 },
					 { .at = 31, .owner = vm_1 } };
	struct vmpt_extract_options options = {
		.decode = { .cycle_acc = VMPT_CYCLE_ACC_NO, .runs = runs, .run_count = 3 },
	};
	struct vmpt_stream stream = stream_of(trace, sizeof(trace));
	struct extracted e;

	extract_to_memory(&e, &stream, &options);
	ck_assert_int_eq(e.count, 2);
	check_stream(&e, 1, first, sizeof(first));
	check_stream(&e, 2, second, sizeof(second));
	ck_assert_uint_eq(e.slice_count, 3);
	/* The first begins with its own PSB. */
	ck_assert(!e.slices[0].head && !e.slices[0].lacks_calls);
	ck_assert(e.slices[1].head && e.slices[1].lacks_calls);
	ck_assert(e.slices[2].head && e.slices[2].lacks_calls);
	ck_assert_uint_eq(e.slices[1].ips_reencoded, 1);
	ck_assert_uint_eq(e.slices[2].out_offset, 20);
	ck_assert_uint_eq(e.slices[2].out_size, 9 + 7 + 5);
	extracted_free(&e);
}
END_TEST

/* A decoder of the stream may clear the last LIP at the added PSB, or not. */
START_TEST(behind_a_cut_a_lip_is_full_all_the_same)
{
	static const u8 trace[] = {
		PSB,  0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, /* 0 */
		0x80, 0x00, 0x20,				/* 16 FUP.PGE, last LIP: …2000 */
		0x80, 0x00, 0x30,				/* 19 FUP.PGE, last LIP: …3000 */
		0xb0, 0x10, 0x30,				/* 22 TIP …3010 */
	};
	static const u8 first[] = {
		PSB,  0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, PSB,  0x82,
		0x00, 0x30, 0x00, 0x81, 0xff, 0xff, 0xb0, 0x10, 0x30,
	};
	const struct vmpt_run runs[] = { { .at = 0, .owner = vm_1 },
					 { .at = 16, .owner = vm_2 },
					 { .at = 19, .owner = vm_1 } };
	struct vmpt_extract_options options = {
		.decode = { .cycle_acc = VMPT_CYCLE_ACC_NO, .runs = runs, .run_count = 3 },
	};
	struct vmpt_stream stream = stream_of(trace, sizeof(trace));
	struct extracted e;

	extract_to_memory(&e, &stream, &options);
	check_stream(&e, 1, first, sizeof(first));
	extracted_free(&e);
}
END_TEST

/* A cycle count stays with its packet; the trace's own PSB needs no second one. */
START_TEST(cycle_counts_and_psbs_stay)
{
	static const u8 trace[] = {
		PSB,  0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0x21, /* 0: 17 bytes */
		PSB,						      /* 17 */
		0x80, 0x00, 0x20, 0x2d,				      /* 26 */
		0x43, 0x05,					      /* 30 full TNT, 1 cycle */
	};
	static const u8 second[] = {
		PSB, 0x82, 0x00, 0x20, 0x00, 0x81, 0xff, 0xff, 0x2d, 0x43, 0x05,
	};
	const struct vmpt_run runs[] = { { .at = 0, .owner = vm_1 }, { .at = 17, .owner = vm_2 } };
	struct vmpt_extract_options options = {
		.decode = { .cycle_acc = VMPT_CYCLE_ACC_YES, .runs = runs, .run_count = 2 },
	};
	struct vmpt_stream stream = stream_of(trace, sizeof(trace));
	struct extracted e;

	extract_to_memory(&e, &stream, &options);
	/* The owner changes with the enable's PSB. */
	check_stream(&e, 1, trace, 17);
	check_stream(&e, 2, second, sizeof(second));
	extracted_free(&e);
}
END_TEST

/* After the loss the TIP's upper bits are unknown; a reader of the stream must not guess them. */
START_TEST(an_unknown_lip_stays_unknown)
{
	static const u8 trace[] = {
		PSB, 0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0xff, 0x11, /* 0: loss at 16 */
		PSB, 0xb0, 0x10, 0x20,					   /* 18 */
	};
	static const u8 want[] = {
		PSB, 0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, PSB, 0xff, PSB, 0xb0, 0x10, 0x20,
	};
	struct vmpt_extract_options options = { .decode = { .cycle_acc = VMPT_CYCLE_ACC_NO } };
	struct vmpt_stream stream = stream_of(trace, sizeof(trace));
	struct extracted e;

	extract_to_memory(&e, &stream, &options);
	ck_assert_int_eq(e.count, 1);
	check_stream(&e, 0, want, sizeof(want));
	ck_assert_uint_eq(e.slice_count, 3);
	ck_assert_int_eq(e.slices[1].stream, -1);
	ck_assert_uint_eq(e.slices[2].lips_unknown, 1);
	extracted_free(&e);
}
END_TEST

/* ---- random ---- */

#define PACKETS 400
#define RUNS	24
#define GAPS	4
#define OWNERS	4 /* the host, and VMs 1 to 3 */

struct trace {
	struct rtit_builder b;
	struct vmpt_run runs[RUNS];
	size_t run_count;
	struct vmpt_gap gaps[GAPS]; /* at PSBs: nothing else is lost */
	size_t gap_count;
};

static void random_runs(struct trace *t, struct test_rng *rng)
{
	u64 at = 0, owner;

	t->run_count = test_random(rng) % RUNS;
	for (u64 i = 0; i < t->run_count; i++) {
		owner = test_random(rng) % OWNERS;
		t->runs[i] = (struct vmpt_run){ .at = at };
		t->runs[i].owner.kind = owner ? VMPT_OWNER_VM : VMPT_OWNER_HOST;
		t->runs[i].owner.vmcs = owner;
		at += test_random(rng) % 300;
	}
}

static void random_trace(struct trace *t, u64 seed, bool damage)
{
	struct test_rng rng = { seed };
	unsigned int i, kind;

	*t = (struct trace){ .b.cycle_acc = test_random(&rng) & 1 };
	rtit_stream_psb(&t->b);
	for (i = 0; i < PACKETS; i++) {
		kind = (unsigned int)(test_random(&rng) % VMPT_RTIT_KINDS);
		if (kind == VMPT_RTIT_PSB && t->gap_count < GAPS && !(test_random(&rng) & 7))
			t->gaps[t->gap_count++].offset = t->b.size;
		rtit_random(&t->b, &rng, kind);
		/* A PSB clears the state at once, or later (3.3.9). */
		if (kind == VMPT_RTIT_PSB && test_random(&rng) & 1)
			t->b.last.valid = false;
	}
	for (i = 0; damage && i < 5; i++)
		t->b.buf[test_random(&rng) % t->b.size] = (u8)test_random(&rng);
	random_runs(t, &rng);
}

/* The next packet of @owner (NULL: any) that is no PSB; no TIP with guessed bits. */
static int next_packet(struct vmpt_decoder *dec, struct vmpt_cursor *at, int owner,
		       struct vmpt_packet *pkt)
{
	int ret;

	while ((ret = vmpt_packet_next(dec, at, pkt)) > 0) {
		if (pkt->kind == VMPT_ITEM_LOSS || pkt->kind == VMPT_ITEM_RTIT + VMPT_RTIT_PSB)
			continue;
		if (owner < 0 || (pkt->owner.kind == (owner ? VMPT_OWNER_VM : VMPT_OWNER_HOST) &&
				  pkt->owner.vmcs == (u64)owner))
			return 1;
	}
	return ret;
}

/* Packets, full LIPs, whether a LIP is known; not the number of bytes sent. */
static void check_same(const struct trace *t, const struct vmpt_stream *from,
		       const struct vmpt_options *options, const struct extracted_stream *to)
{
	struct vmpt_options alone = { .cycle_acc = options->cycle_acc };
	struct vmpt_stream written = stream_of(to->bytes, to->size);
	struct vmpt_cursor at = { 0 }, at_2 = { 0 };
	struct vmpt_packet want = { 0 }, got = { 0 };
	struct vmpt_decoder *dec, *dec_2;
	int ret, ret_2, n;

	ck_assert_int_eq(vmpt_decoder_open(&dec, from, options), 0);
	ck_assert_int_eq(vmpt_decoder_open(&dec_2, &written, &alone), 0);
	for (n = 0;; n++) {
		ret = next_packet(dec, &at, (int)to->owner.vmcs, &want);
		ret_2 = next_packet(dec_2, &at_2, -1, &got);
		if (ret != ret_2)
			ck_abort_msg("size %zu, packet %d of VM %llu: %d, want %d", t->b.size, n,
				     (unsigned long long)to->owner.vmcs, ret_2, ret);
		if (ret <= 0)
			break;
		if (got.kind != want.kind || got.payload != want.payload ||
		    (got.aux ^ want.aux) & VMPT_RTIT_AUX_NO_LIP)
			ck_abort_msg("size %zu, packet %d of VM %llu: kind %u payload %llx aux %x, "
				     "want %u %llx %x (at %llx)",
				     t->b.size, n, (unsigned long long)to->owner.vmcs, got.kind,
				     (unsigned long long)got.payload, got.aux, want.kind,
				     (unsigned long long)want.payload, want.aux,
				     (unsigned long long)want.offset);
	}
	vmpt_decoder_close(dec);
	vmpt_decoder_close(dec_2);
}

static void check_random(u64 seed, bool damage)
{
	static struct trace t;
	struct vmpt_extract_options options = { 0 };
	struct vmpt_stream stream;
	struct extracted e;
	int i;

	random_trace(&t, seed, damage);
	options.decode.cycle_acc = t.b.cycle_acc ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
	options.decode.runs = t.runs;
	options.decode.run_count = t.run_count;
	stream = stream_of(t.b.buf, t.b.size);
	stream.gaps = t.gaps;
	stream.gap_count = t.gap_count;
	extract_to_memory(&e, &stream, &options);
	for (i = 0; i < e.count; i++)
		check_same(&t, &stream, &options.decode, &e.streams[i]);
	/* Each owner of a slice has a stream. */
	for (size_t k = 0; k < e.slice_count; k++)
		if (e.slices[k].stream < 0 && e.slices[k].slice.begin != VMPT_BEGIN_LOSS)
			ck_abort_msg("seed %llu: slice %zu has no stream", (unsigned long long)seed,
				     k);
	extracted_free(&e);
	free(t.b.buf);
}

START_TEST(streams_have_the_packets_of_their_slices)
{
	int i;

	for (i = 0; i < 40; i++)
		check_random((u64)_i * 1000 + (u64)i, _i & 1);
}
END_TEST

/* VMPT_SOAK: other seeds, in a fixed order, for this many seconds. */
static int soak_seconds(void)
{
	const char *seconds = getenv("VMPT_SOAK");

	return seconds ? atoi(seconds) : 0;
}

START_TEST(soak_streams)
{
	time_t end = time(NULL) + soak_seconds();
	u64 seed;

	for (seed = 1000000; time(NULL) < end; seed++)
		check_random(seed, seed & 1);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-extract");
	TCase *t = tcase_create("streams");

	tcase_add_test(t, a_lip_that_leans_on_another_owner_is_full);
	tcase_add_test(t, behind_a_cut_a_lip_is_full_all_the_same);
	tcase_add_test(t, cycle_counts_and_psbs_stay);
	tcase_add_test(t, an_unknown_lip_stays_unknown);
	tcase_add_loop_test(test_random_case(s), streams_have_the_packets_of_their_slices, 0, 20);
	suite_add_tcase(s, t);
	if (soak_seconds())
		tcase_add_test(test_random_case(s), soak_streams);
	return s;
}
