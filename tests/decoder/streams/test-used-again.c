// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A VMCS's page that is another VM's after a pause: tracing was off, bytes were lost, or an
 * overflow took long, and the PSB+ after it is in the guest. The time line has the guest from the
 * PSB+'s TSC on, and with who() the extractor begins another stream there.
 */
#include <stdlib.h>

#include "decoder/vmpt-timeline.h"
#include "tests/decoder/extract-memory.h"
#include "tests/decoder/streams.h"

#define VMCS  0x3b56ee000
#define START (1ULL << 44)
#define LATER (START + 3000000000)

enum pause { PAUSE_OFF, PAUSE_LOSS, PAUSE_OVERFLOW, PAUSES };

static struct builder built;
static struct vmpt_stream stream;
static const struct vmpt_stream *const streams[1] = { &stream };
static struct vmpt_clocks *clocks;

static void ip(unsigned int kind, u64 to)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	pkt.ip.ipbytes = 6;
	pkt.ip.ip = to;
	build(&built, &pkt);
}

static void pip(bool guest)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PIP };

	pkt.pip.cr3 = guest ? 0x2000 : 0x1000;
	pkt.pip.nr = guest;
	build(&built, &pkt);
}

static void vmcs(void)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_VMCS };

	pkt.vmcs.pointer = VMCS;
	build(&built, &pkt);
}

static void psb(bool guest, u64 tsc)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC };

	build_kind(&built, VMPT_PT_PSB);
	if (guest)
		vmcs();
	pip(guest);
	pkt.tsc.tsc = tsc;
	build(&built, &pkt);
	pkt = (struct vmpt_pt_packet){ .kind = VMPT_PT_TMA };
	pkt.tma.ctc = tsc / 100 & 0xffff;
	pkt.tma.fast_counter = tsc % 100;
	build(&built, &pkt);
	build_kind(&built, VMPT_PT_PSBEND);
	ip(VMPT_PT_TIP_PGE, guest ? 0x501000 : 0x401000);
}

static void leave(void)
{
	ip(VMPT_PT_FUP, 0x501010);
	pip(false);
	ip(VMPT_PT_TIP, 0x402000);
}

static void make(enum pause pause)
{
	struct vmpt_clocks_options options = {
		.rates = { .tsc_num = 100,
			   .tsc_den = 1,
			   .nominal = 24,
			   .mtc_freq = 3,
			   .has_mtc_freq = true },
	};
	const struct vmpt_given given = { .vmcs = VMCS,
					  .map = { VMPT_TSC_UNSCALED, 0 },
					  .source = VMPT_MAP_USER };

	memset(&built, 0, sizeof(built));
	psb(false, START);
	vmcs();
	pip(true);
	ip(VMPT_PT_TIP, 0x501000);
	leave();
	if (pause == PAUSE_OFF)
		build_kind(&built, VMPT_PT_TIP_PGD);
	else if (pause == PAUSE_LOSS)
		build_bytes(&built, "\x02\xff\x02\xff", 4);
	else
		build_kind(&built, VMPT_PT_OVF);
	psb(true, LATER);
	leave();
	stream = (struct vmpt_stream){ .data = built.buf, .size = built.size, .cpu = 0, .tid = -1 };
	options.given = &given;
	options.given_count = 1;
	ck_assert_int_eq(vmpt_clocks_open(&clocks, streams, 1, &options), 0);
}

static void teardown(void)
{
	vmpt_clocks_close(clocks);
	clocks = NULL;
	free(built.buf);
}

START_TEST(begins_with_its_psb)
{
	struct vmpt_timeline *t;
	struct vmpt_span span;
	unsigned int guests = 0;

	make(_i);
	ck_assert_int_eq(vmpt_timeline_open(&t, clocks, streams, 1, NULL), 0);
	while (vmpt_timeline_next(t, &span) > 0) {
		if (span.kind != VMPT_SPAN_GUEST)
			continue;
		if (guests++)
			ck_assert_uint_ge(span.start.tsc, LATER);
		else
			ck_assert_uint_lt(span.end.tsc, START + 1000);
	}
	ck_assert_uint_eq(guests, 2);
	vmpt_timeline_close(t);
}
END_TEST

/* The page's owner changes in the middle of the pause. */
static u64 who(void *opaque, u64 of, const struct vmpt_time *at)
{
	(void)opaque;
	ck_assert_uint_eq(of, VMCS);
	return at->tsc < START + 1000000000 ? 7 : 8;
}

START_TEST(is_a_stream_of_its_own)
{
	struct vmpt_extract_options options = { .clock = VMPT_EXTRACT_CLOCK_HOST, .who = who };
	struct extracted e;
	size_t i, slices[2] = { 0, 0 };

	make(_i);
	options.clocks = clocks;
	extract_to_memory(&e, &stream, &options);
	ck_assert_int_eq(e.count, 3);
	ck_assert_int_eq(e.streams[0].owner.kind, VMPT_OWNER_HOST);
	for (i = 0; i < e.slice_count; i++) {
		const struct vmpt_extracted *s = &e.slices[i];

		if (s->slice.owner.kind != VMPT_OWNER_VM)
			continue;
		ck_assert(s->who_known);
		ck_assert_uint_eq(s->who, 6 + (u64)s->stream);
		slices[s->stream - 1]++;
	}
	ck_assert_uint_eq(slices[0], 1);
	ck_assert_uint_eq(slices[1], 1);
	extracted_free(&e);
}
END_TEST

/* Without who(): one stream. */
START_TEST(or_one_stream)
{
	struct vmpt_extract_options options = { .clock = VMPT_EXTRACT_CLOCK_HOST };
	struct extracted e;

	make(_i);
	options.clocks = clocks;
	extract_to_memory(&e, &stream, &options);
	ck_assert_int_eq(e.count, 2);
	extracted_free(&e);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/used-again");
	TCase *tcase = tcase_create("used-again");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_loop_test(tcase, begins_with_its_psb, 0, PAUSES);
	tcase_add_loop_test(tcase, is_a_stream_of_its_own, 0, PAUSES);
	tcase_add_loop_test(tcase, or_one_stream, 0, PAUSES);
	suite_add_tcase(suite, tcase);
	return suite;
}
