// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT on the command line: dump, stat, vms and split of streams that are written out by hand. The
 * side record has test-rtit-record.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/rtit-streams.h"
#include "tests/support/support.h"

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

static void setup(void)
{
	cli_setup();
	write_all();
}

/* ---- dump ---- */

START_TEST(dump_lines)
{
	static const char want[] =
		"  OFFSET  OWNER       BYTES                 TSC               PACKET\n"
		"       0  host~       c0 00 ×8              –                 PSB\n"
		"       9  web vcpu 0  82 00 10 00 81 ff ff  –                 "
		"FUP.PGE     0xffff81001000 cnt=2\n"
		"      10  web vcpu 0  d4 10 00 70 56 34 12  1234567000        "
		"STS         acbr=16 ecbr=16 tsc=0x1234567000\n"
		"      17  web vcpu 0  c4 60                 1234567000 ?      "
		"MTC         rng=0 tsc=0x60 (E7: the first after an enable, ignored)\n"
		"      19  web vcpu 0  c4 e1                 1234567080 ±127   "
		"MTC         rng=0 tsc=0xe1\n"
		"      1b  web vcpu 0  76                    1234567080 ±127   "
		"TNT         TTNTTN\n"
		"      1c  web vcpu 0  b0 10 20              1234567080 ±127   "
		"TIP         0xffff81002010 cnt=0\n"
		"      1f  web vcpu 0  c3 00 a0 07 00 00     1234567080 ±127   "
		"PIP         pg cr3=0x7a000\n"
		"      25  web vcpu 0  88 20 20              1234567080 ±127   "
		"FUP.PGD     0xffff81002020 cnt=0\n"
		"      28  db vcpu 1   85 00 10 40 00        1234567080 ?      "
		"FUP.PGE     0x401000 cnt=1 zext\n"
		"      2d  db vcpu 1   b8 55 10              1234567080 ?      "
		"FUP.Far     0x401055 cnt=0\n"
		"      30  db vcpu 1   b2 10 00 fe 81 ff ff  1234567080 ?      "
		"TIP         0xffff81fe0010 cnt=2\n"
		"      37  db vcpu 1   88 33 00              1234567080 ?      "
		"FUP.PGD     0xffff81fe0033 cnt=0\n"
		"      3a  db vcpu 1   88 44 00              1234567080 ?      "
		"FUP.PGD     0xffff81fe0044 cnt=0 (E2: one too many, ignored)\n"
		"      3d  web vcpu 0  80 21 20              1234567080 ?      "
		"FUP.PGE     0xffff81fe2021 cnt=0\n"
		"      40  web vcpu 0  92 40 20 00 81 ff ff  1234567080 ?      "
		"FUP.BuffOvf 0xffff81002040 cnt=2\n"
		"      47  web vcpu 0  b0 40 20              1234567080 ?      "
		"TIP         0xffff81002040 cnt=0 (E5: meaningless, ignored)\n"
		"      4a  web vcpu 0  c1                    1234567080 ?      TraceSTOP\n";
	const struct run *r = vmpt("dump --side-record=vms.jsonl x.cpu0.rtit");

	ck_assert_str_eq(r->out, want);
	ck_assert_str_eq(r->err, "");
	ck_assert_int_eq(r->code, 0);
}
END_TEST

START_TEST(dump_cycles)
{
	const struct run *r = vmpt("dump --no-bytes --tsc-ratio=16 --start=0x11 cycles.rtit");

	ck_assert_str_eq(r->out, "  OFFSET  OWNER       TSC               PACKET\n"
				 "      11  host~       1234567000        "
				 "STS         acbr=16 ecbr=16 tsc=0x1234567000 +7\n"
				 "      19  host~       123456700d        TNT         TTNTTN +12\n"
				 /* Sent because of the TIP: not after it */
				 "      1b  host~       123456700d ±100   TNT         TN\n"
				 "      1c  host~       1234567071        "
				 "TIP         0xffff81002010 cnt=0 +99\n"
				 "      21  host~       1234567071 ±1     "
				 "TIP         0xffff81002011 cnt=0 +0\n");
	/* Without the ratio cycles tell nothing. */
	r = vmpt("dump --no-bytes --start=0x1c --end=0x21 cycles.rtit");
	ck_has(r->out, "1234567000 ?      TIP ");
	/* Read without counts it is another trace. */
	ck_assert_int_eq(vmpt("dump --cycle-acc=yes cycles.rtit")->code, 0);
	ck_has(vmpt("dump --cycle-acc=no cycles.rtit")->out, "TNT         NTNT\n");
}
END_TEST

/* Steps of 128 ticks and cycles: at ACBR 10 that is 10 ticks a bus clock. E7's MTC comes first. */
START_TEST(dump_with_a_wrong_ratio)
{
	/* clang-format off */
	static const u8 bytes[] = {
		0x85, 0x00, 0x10, 0x40, 0x00, 0x01,		/* FUP.PGE 401000 +0 */
		0xd2, 0x8a, 0x00, 0x00, 0x10, 0x00, 0x00, 0x01, /* STS 10/10 100000 +0 */
		0xc4, 0x01, 0xfe, 0x01,				/* MTC 0:01 +127 */
		0xc4, 0x02, 0xfe, 0x01,				/* MTC 0:02 +127 */
		0xc4, 0x03, 0xfe, 0x01,				/* MTC 0:03 +127 */
	};
	/* clang-format on */
	u8 file[9 + sizeof(bytes)];
	const struct run *r;

	memcpy(file, plain, 9); /* PSB */
	memcpy(file + 9, bytes, sizeof(bytes));
	write_file("ratio.rtit", file, sizeof(file));
	r = vmpt("dump --no-bytes --cycle-acc=yes --tsc-ratio=5 ratio.rtit");
	ck_has(r->err, "--tsc-ratio=5 contradict the MTCs and STSs");
	ck_assert_ptr_eq(strchr(r->err, '\n'), strrchr(r->err, '\n'));
	ck_has(r->out, "100100 ±127       MTC         rng=0 tsc=0x2 +127\n");
	ck_has(r->out, "100180 ±127       MTC         rng=0 tsc=0x3 +127\n");
	r = vmpt("dump --no-bytes --cycle-acc=yes --tsc-ratio=10 ratio.rtit");
	ck_assert_str_eq(r->err, "");
	ck_has(r->out, "100100            MTC         rng=0 tsc=0x2 +127\n");
	ck_has(r->out, "100180            MTC         rng=0 tsc=0x3 +127\n");
}
END_TEST

START_TEST(dump_chooses)
{
	const struct run *r = vmpt("dump --kinds=fup.pgd,psb --no-bytes x.cpu0.rtit");

	ck_has(r->out, " PSB\n");
	ck_has(r->out, " FUP.PGD ");
	ck_lacks(r->out, " FUP.PGE ");
	ck_lacks(r->out, " TIP ");
	r = vmpt("dump --kinds=timing x.cpu0.rtit");
	ck_has(r->out, " MTC ");
	ck_has(r->out, " STS ");
	ck_lacks(r->out, " TNT ");
	r = vmpt("dump --kinds=fup x.cpu0.rtit");
	ck_has(r->out, " FUP.Far ");
	ck_lacks(r->out, " TIP ");
	r = vmpt("dump --side-record=vms.jsonl --owner=db x.cpu0.rtit");
	ck_has(r->out, "0x401055");
	ck_lacks(r->out, "web");
	ck_lacks(r->out, "host");
	r = vmpt("dump --side-record=vms.jsonl --owner=vm --head=2 x.cpu0.rtit");
	ck_has(r->out, "      10  web vcpu 0 ");
	ck_lacks(r->out, "      17  ");
	r = vmpt("dump --start=0x28 --end=0x30 x.cpu0.rtit");
	ck_has(r->out, "\n      28 ");
	ck_has(r->out, "\n      2d ");
	ck_lacks(r->out, "\n      25 ");
	ck_lacks(r->out, "\n      30 ");
}
END_TEST

/* By what the column prints, and in short; a VM's whole name goes before both. */
START_TEST(dump_chooses_a_vcpu)
{
	static const char *const owner[] = { "web\tvcpu\t1", "web:1" };
	static const char two[] =
		"{\"rtit\":1,\"vm\":\"web\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x9\"}\n"
		"{\"rtit\":1,\"vm\":\"web\",\"vcpu\":1,\"cpu\":0,\"offset\":\"0x28\"}\n"
		"{\"rtit\":1,\"vm\":\"web:0\",\"vcpu\":7,\"cpu\":0,\"offset\":\"0x3d\"}\n";
	const struct run *r;
	size_t i;

	write_text("two.jsonl", two);
	for (i = 0; i < VMPT_ARRAY_SIZE(owner); i++) {
		r = vmpt("dump --side-record=two.jsonl --owner=%s x.cpu0.rtit", owner[i]);
		ck_assert_int_eq(r->code, 0);
		ck_has(r->out, "\n      28  web vcpu 1    ");
		ck_lacks(r->out, "  web vcpu 0  ");
		ck_lacks(r->out, "  web:0 vcpu 7");
	}
	r = vmpt("dump --side-record=two.jsonl --owner=web x.cpu0.rtit");
	ck_has(r->out, "  web vcpu 0 ");
	ck_has(r->out, "  web vcpu 1 ");
	r = vmpt("dump --side-record=two.jsonl --owner=web:0 x.cpu0.rtit");
	ck_has(r->out, "  web:0 vcpu 7");
	ck_lacks(r->out, "  web vcpu 0 ");
	ck_assert_int_eq(vmpt("dump --side-record=two.jsonl --owner=web:2 x.cpu0.rtit")->code, 2);
}
END_TEST

/* A packet of 7 bytes and its count of 3 are no wider than the column. */
START_TEST(dump_has_room_for_cycle_counts)
{
	static const u8 trace[] = {
		PSB,						      /* 0 */
		0x76, 0x31,					      /* 9 TNT +12 */
		0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0x03, 0, 1, /* 11 FUP.PGE +16384 */
		0x76, 0x31,					      /* 21 */
	};

	write_file("wide.rtit", trace, sizeof(trace));
	ck_assert_str_eq(vmpt("dump --cycle-acc=yes wide.rtit")->out,
			 "  OFFSET  OWNER       BYTES                          TSC"
			 "               PACKET\n"
			 "       0  host~       c0 00 ×8                       –  "
			 "               PSB\n"
			 "       9  host~       76 31                          –  "
			 "               TNT         TTNTTN +12\n"
			 "       b  host~       82 00 10 00 81 ff ff 03 00 01  –  "
			 "               FUP.PGE     0xffff81001000 cnt=2 +16384\n"
			 "      15  host~       76 31                          –  "
			 "               TNT         TTNTTN +12\n");
}
END_TEST

START_TEST(dump_losses)
{
	const struct run *r = vmpt("dump damaged.cpu0.rtit");

	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "LOST      2 bytes: ");
	ck_has(r->out, "TIP         0x????????9999 cnt=0\n");
	ck_has(r->out, "FUP.PGE     0x402000 cnt=1 zext\n");
	ck_has(r->err, "at 0x4b of CPU 0, 2 bytes");
}
END_TEST

/* Line by line; the objects are contiguous and cover the file. */
START_TEST(dump_json)
{
	const struct run *r = vmpt("dump --json --side-record=vms.jsonl damaged.cpu0.rtit");
	char *text = strdup(r->out), *at = text, *line;
	u64 end = 0;
	int n = 0;

	while ((line = strsep(&at, "\n")) != NULL && *line) {
		json_t *o = json_loads(line, 0, NULL);

		ck_assert_ptr_nonnull(o);
		ck_assert_uint_eq(json_u64(o, "offset"), end);
		end += json_u64(o, "size");
		if (end == 0x19) { /* the MTC of E7 */
			ck_assert_str_eq(json_text(o, "packet"), "MTC");
			ck_assert_str_eq(json_text(o, "erratum"), "E7");
			ck_assert(json_is_true(json_at(o, "ignored")));
			ck_assert_str_eq(json_text(o, "time"), "0x1234567000");
			ck_assert(json_is_null(json_at(o, "time_error")));
			ck_assert_str_eq(json_text(o, "vm"), "web");
			ck_assert_uint_eq(json_u64(o, "vcpu"), 0);
		}
		if (end == 0x1c) {
			ck_assert_str_eq(json_text(o, "bits"), "TTNTTN");
			ck_assert_uint_eq(json_u64(o, "time_error"), 127);
		}
		if (end == 0x1f) {
			ck_assert_str_eq(json_text(o, "lip"), "0x2010");
			ck_assert_str_eq(json_text(o, "full_lip"), "0xffff81002010");
			ck_assert_str_eq(json_text(o, "bytes"), "b01020");
			ck_assert_uint_eq(json_u64(o, "cnt"), 0);
		}
		if (end == 0x4d)
			ck_assert_str_eq(json_text(o, "lost"), "unknown opcode");
		if (end == 0x59)
			ck_assert_ptr_null(json_object_get(o, "full_lip"));
		n++;
		json_decref(o);
	}
	ck_assert_uint_eq(end, DAMAGED_SIZE);
	ck_assert_int_eq(n, 22);
	free(text);
}
END_TEST

/* ---- stat ---- */

START_TEST(stat_counts)
{
	const struct run *r = vmpt("stat damaged.cpu0.rtit");
	json_t *doc;

	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "CPU 0: 94 bytes, 21 packets, 1 loss of 2 bytes\n");
	ck_has(r->out, "\n  FUP.PGE                   4     20  21.28 %\n");
	ck_has(r->out, "\n  cycle counts: no, as found\n");
	ck_has(r->out, "\n  MTC range: 0, a step is 128 ticks of the TSC\n");
	ck_has(r->out, "\n  errata: E2 1, E5 1, E7 1\n");
	ck_has(r->out, "\n  CR3s: 7a000\n");
	doc = run_json(vmpt("stat --json cycles.rtit x.cpu0.rtit"));
	ck_assert_str_eq(json_text(doc, "isa"), "rtit");
	ck_assert(json_is_true(json_at(doc, "streams/0/cycle_acc")));
	ck_assert(json_is_false(json_at(doc, "streams/0/cycle_acc_given")));
	ck_assert_uint_eq(json_u64(doc, "streams/0/cycle_counts/count"), 5);
	ck_assert_uint_eq(json_u64(doc, "streams/0/cycle_counts/bytes"), 6);
	ck_assert_uint_eq(json_u64(doc, "streams/0/errata/E6"), 4);
	ck_assert(json_is_false(json_at(doc, "streams/1/cycle_acc")));
	ck_assert_uint_eq(json_u64(doc, "streams/1/kinds/FUP.PGD/packets"), 3);
	ck_assert_uint_eq(json_u64(doc, "streams/1/mtc_ranges/0"), 0);
	ck_assert_str_eq(json_text(doc, "streams/1/cr3s/0"), "0x7a000");
	ck_assert_uint_eq(json_u64(doc, "total/bytes"), SIZE + sizeof(cycles));
	json_decref(doc);
	ck_has(vmpt("stat --cycle-acc=yes cycles.rtit")->out, "cycle counts: yes, as given\n");
}
END_TEST

START_TEST(stat_psb_distance)
{
	static const u8 trace[] = { PSB, 0x43, PSB, 0x43, 0x43, 0x43, PSB, 0xc1 };
	json_t *doc;

	write_file("psb.rtit", trace, sizeof(trace));
	ck_has(vmpt("stat psb.rtit")->out, "PSB distance: 10 to 12 bytes, 11 on average\n");
	doc = run_json(vmpt("stat --json psb.rtit"));
	ck_assert_uint_eq(json_u64(doc, "total/psb_distance/min"), 10);
	ck_assert_uint_eq(json_u64(doc, "total/psb_distance/max"), 12);
	ck_assert_uint_eq(json_u64(doc, "total/psb_distance/mean"), 11);
	json_decref(doc);
}
END_TEST

/* Both readings fit: reported as unknown. */
START_TEST(stat_says_what_is_assumed)
{
	static const u8 trace[] = { PSB, 0xc1 };
	json_t *doc;

	write_file("little.rtit", trace, sizeof(trace));
	ck_has(vmpt("stat little.rtit")->out,
	       "cycle counts: no, assumed: only --cycle-acc can give it\n");
	ck_has(vmpt("stat --cycle-acc=no little.rtit")->out, "cycle counts: no, as given\n");
	doc = run_json(vmpt("stat --json little.rtit cycles.rtit"));
	ck_assert(json_is_false(json_at(doc, "streams/0/cycle_acc")));
	ck_assert(json_is_false(json_at(doc, "streams/0/cycle_acc_sure")));
	ck_assert(json_is_true(json_at(doc, "streams/1/cycle_acc")));
	ck_assert(json_is_true(json_at(doc, "streams/1/cycle_acc_sure")));
	json_decref(doc);
	doc = run_json(vmpt("stat --json --cycle-acc=no little.rtit"));
	ck_assert(json_is_true(json_at(doc, "streams/0/cycle_acc_sure")));
	json_decref(doc);
}
END_TEST

/* From the first STS to the last, over a wrap; without any, what MTCs tell. */
START_TEST(stat_time)
{
	static const u8 sts[] = {
		PSB,  0xd4, 0x10, 0xf0, 0xff, 0xff, 0xff, 0xff, /* fffffffff0 */
		0xd4, 0x10, 0x10, 0x00, 0x00, 0x00, 0x00,	/* 10, once round */
	};
	static const u8 mtc[] = {
		PSB,  0xc5, 0x07,		    /* rng 1, 512 ticks a step: E7 */
		0xc5, 0xfe, 0xc5, 0xff, 0xc5, 0x02, /* 1 + 3 steps */
		0xe3, PSB,  0xc5, 0x80, 0xc5, 0x82, /* after a loss: E7 or not, at most 2 */
	};
	json_t *doc;

	write_file("sts.rtit", sts, sizeof(sts));
	write_file("mtc.rtit", mtc, 9 + 2 + 6);
	ck_has(vmpt("stat sts.rtit")->out,
	       "\n  time: STSs from fffffffff0 to 10000000010, 32 ticks of the TSC\n");
	ck_has(vmpt("stat mtc.rtit")->out,
	       "\n  time: no STS; by MTCs at least 2,048 ticks of the TSC\n");
	doc = run_json(vmpt("stat --json sts.rtit mtc.rtit"));
	ck_assert_str_eq(json_text(doc, "streams/0/first_tsc"), "0xfffffffff0");
	ck_assert_str_eq(json_text(doc, "streams/0/last_tsc"), "0x10000000010");
	ck_assert_uint_eq(json_u64(doc, "streams/1/mtc_ticks"), 2048);
	json_decref(doc);
	/* What was lost is not made up. */
	write_file("loss.rtit", mtc, sizeof(mtc));
	doc = run_json(vmpt("stat --json loss.rtit"));
	ck_assert_uint_le(json_u64(doc, "streams/0/mtc_ticks"), 2048 + 2 * 512);
	json_decref(doc);
}
END_TEST

/* ---- vms ---- */

START_TEST(vms_by_the_record)
{
	const struct run *r = vmpt("vms --side-record=vms.jsonl x.cpu0.rtit");
	json_t *doc;

	ck_assert_int_eq(r->code, 0);
	/* 9 to 28, 3d to 4b; 28 to 3d; the first PSB */
	ck_has(r->out, "VM          CPUS  RUNS  PGE  PGD  BYTES   SHARE\n"
		       "web vcpu 0  0        2    2    1     45  60.0 %\n"
		       "db vcpu 1   0        1    1    1     21  28.0 %\n"
		       "host        0        1    0    0      9  12.0 %\n");
	ck_has(r->out, "\nweb vcpu 0       0  1234567000  1234567000  7a000\n");
	ck_has(r->out, "\ndb vcpu 1: errata E2 1\n");
	ck_has(r->out, "\nweb vcpu 0: errata E5 1, E7 1\n");
	ck_lacks(r->out, "do not contain");
	doc = run_json(vmpt("vms --json --side-record=vms.jsonl x.cpu0.rtit"));
	ck_assert_str_eq(json_text(doc, "side_record"), "vms.jsonl");
	ck_assert_str_eq(json_text(doc, "owners/0/vm"), "web");
	ck_assert_uint_eq(json_u64(doc, "owners/0/vcpu"), 0);
	ck_assert_uint_eq(json_u64(doc, "owners/0/slices"), 2);
	ck_assert_uint_eq(json_u64(doc, "owners/0/enables"), 2);
	ck_assert_uint_eq(json_u64(doc, "owners/0/bytes"), 45);
	ck_assert_str_eq(json_text(doc, "owners/0/first_tsc"), "0x1234567000");
	/* Of its last line */
	ck_assert_str_eq(json_text(doc, "owners/0/tsc_offset"), "0x12");
	ck_assert_str_eq(json_text(doc, "owners/0/core_offset"), "0x22");
	ck_assert_str_eq(json_text(doc, "owners/1/vm"), "db");
	ck_assert_str_eq(json_text(doc, "owners/2/owner"), "host");
	json_decref(doc);
}
END_TEST

START_TEST(vms_without_a_record)
{
	const struct run *r = vmpt("vms x.cpu0.rtit");

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "host  0        1    3    2     75  100.0 %\n");
	ck_has(r->out, "host: 75 bytes assumed\n");
	ck_has(r->out, "RTIT packets do not contain who ran: all is taken for the host's.");
	ck_has(r->out, "--side-record");
}
END_TEST

/* STSs go round in 40 bits: the last is not before the first. */
START_TEST(vms_times_go_on)
{
	static const u8 trace[] = {
		PSB,  0xd4, 0x10, 0xf0, 0xff, 0xff, 0xff, 0xff, /* ffffffffff0 less one digit */
		0xd4, 0x10, 0x10, 0x00, 0x00, 0x00, 0x00,	/* 10, once round */
	};
	json_t *doc;

	write_file("wrap.rtit", trace, sizeof(trace));
	doc = run_json(vmpt("vms --json wrap.rtit"));
	ck_assert_str_eq(json_text(doc, "owners/0/first_tsc"), "0xfffffffff0");
	ck_assert_str_eq(json_text(doc, "owners/0/last_tsc"), "0x10000000010");
	json_decref(doc);
}
END_TEST

/* ---- split ---- */

static json_t *load(const char *name)
{
	json_t *doc = json_load_file(name, 0, NULL);

	ck_assert_ptr_nonnull(doc);
	return doc;
}

static void check_file(const char *name, const void *bytes, size_t n)
{
	size_t size;
	u8 *got = test_read_file(name, &size);

	ck_assert_uint_eq(size, n);
	ck_assert_mem_eq(got, bytes, n);
	free(got);
}

START_TEST(split_by_the_record)
{
	static const u8 db[] = {
		PSB,  0x85, 0x00, 0x10, 0x40, 0x00, 0xb8, 0x55, 0x10, 0xb2, 0x10,
		0x00, 0xfe, 0x81, 0xff, 0xff, 0x88, 0x33, 0x00, 0x88, 0x44, 0x00,
	};
	const struct run *r = vmpt("split -o out --side-record=vms.jsonl x.cpu0.rtit");
	json_t *doc;

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "out/index.json: 4 slices\n");
	check_file("out/host.cpu0.rtit", plain, WEB_1);
	check_file("out/vm-db-vcpu1.cpu0.rtit", db, sizeof(db));
	doc = load("out/index.json");
	ck_assert_str_eq(json_text(doc, "slices/1/file"), "vm-web-vcpu0.cpu0.rtit");
	ck_assert_str_eq(json_text(doc, "slices/1/vm"), "web");
	ck_assert_uint_eq(json_u64(doc, "slices/1/offset"), WEB_1);
	ck_assert_uint_eq(json_u64(doc, "slices/1/errata/E7"), 1);
	ck_assert_str_eq(json_text(doc, "slices/3/vm"), "web");
	ck_assert_uint_eq(json_u64(doc, "slices/3/offset"), WEB_2);
	ck_assert_uint_eq(json_u64(doc, "slices/3/ips_reencoded"), 1);
	ck_assert(json_is_true(json_at(doc, "slices/3/head")));
	ck_assert(json_is_true(json_at(doc, "slices/3/returns_may_lack_calls")));
	ck_assert_str_eq(json_text(doc, "streams/1/vm"), "web");
	json_decref(doc);
	/* Each is a trace: its LIPs are those it had, its CPU is in its name. */
	r = vmpt("dump --no-bytes --kinds=fup,tip out/vm-web-vcpu0.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "FUP.PGE     0xffff81fe2021 cnt=2\n");
	ck_has(r->out, "FUP.BuffOvf 0xffff81002040 cnt=2\n");
	ck_has(vmpt("stat out/vm-web-vcpu0.cpu0.rtit")->out, "CPU 0: ");
	/* Again: not without --force; then files that are not written again go. */
	ck_assert_int_eq(vmpt("split -o out x.cpu0.rtit")->code, 1);
	r = vmpt("split -f -o out x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "removed 2 streams");
	ck_has(r->out, "out/index.json: 1 slice\n");
	ck_assert_int_ne(access("out/vm-db-vcpu1.cpu0.rtit", F_OK), 0);
	check_file("out/host.cpu0.rtit", plain, SIZE);
}
END_TEST

START_TEST(split_tells_what_is_not_for_rtit)
{
	ck_assert_int_eq(vmpt("split -o out --conceal x.cpu0.rtit")->code, 2);
	ck_assert_int_eq(vmpt("split -o out --perf x.cpu0.rtit")->code, 2);
	ck_assert_int_eq(vmpt("vms --tsc-ratio=16 x.cpu0.rtit")->code, 2);
	ck_assert_int_ne(access("out", F_OK), 0);
}
END_TEST

/* ---- what holds for all commands ---- */

START_TEST(formats)
{
	const struct run *r;

	write_mixed("x.pt");
	/* Intel PT and RTIT are no one trace. */
	r = vmpt("stat x.cpu0.rtit x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "x.pt: its first PSB is of Intel PT, but the files before it are of RTIT");
	/* Without a PSB it is Intel PT, unless --format is given. */
	write_file("bare", plain + 9, 7);
	ck_has(vmpt("stat --json bare")->out, "\"isa\": \"pt\"");
	r = vmpt("dump --no-bytes --format=rtit --headless bare");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "FUP.PGE     0xffff81001000 cnt=2\n");
	ck_has(vmpt("stat --json --format=pt x.cpu0.rtit")->out, "\"isa\": \"pt\"");
	/* The CPU in a name */
	write_file("cpu5.rtit", plain, SIZE);
	ck_has(vmpt("stat cpu5.rtit")->out, "CPU 5: ");
}
END_TEST

START_TEST(wrong_usage_is_2)
{
	static const char *const line[] = {
		"dump --side-record=vms.jsonl x.pt",
		"dump --tsc-ratio=16 x.pt",
		"dump --tsc-ratio=0 x.cpu0.rtit",
		"dump --tsc-ratio=256 x.cpu0.rtit",
		"dump --owner=web x.cpu0.rtit",
		"dump --side-record=vms.jsonl --owner=nobody x.cpu0.rtit",
		"dump --kinds=vmcs x.cpu0.rtit",
		"dump --kinds=sts x.pt",
		"dump --kinds=nonsense x.cpu0.rtit",
		"vms --guest-only=yes x.cpu0.rtit",
	};
	size_t i;

	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s", line[i]);

		ck_assert_msg(r->code == 2, "vmpt %s: exit code %d", line[i], r->code);
		ck_has(r->err, "Try 'vmpt ");
		ck_assert_str_eq(r->out, "");
	}
}
END_TEST

START_TEST(color_on_a_terminal_only)
{
	ck_has(vmpt_terminal("dump --side-record=vms.jsonl x.cpu0.rtit")->out, "\033[");
	ck_lacks(vmpt("dump --side-record=vms.jsonl x.cpu0.rtit")->out, "\033[");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli rtit");
	TCase *t = tcase_create("rtit");

	tcase_add_checked_fixture(t, setup, cli_clean);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, dump_lines);
	tcase_add_test(t, dump_cycles);
	tcase_add_test(t, dump_with_a_wrong_ratio);
	tcase_add_test(t, dump_chooses);
	tcase_add_test(t, dump_chooses_a_vcpu);
	tcase_add_test(t, dump_has_room_for_cycle_counts);
	tcase_add_test(t, dump_losses);
	tcase_add_test(t, dump_json);
	tcase_add_test(t, stat_counts);
	tcase_add_test(t, stat_psb_distance);
	tcase_add_test(t, stat_says_what_is_assumed);
	tcase_add_test(t, stat_time);
	tcase_add_test(t, vms_by_the_record);
	tcase_add_test(t, vms_without_a_record);
	tcase_add_test(t, vms_times_go_on);
	tcase_add_test(t, split_by_the_record);
	tcase_add_test(t, split_tells_what_is_not_for_rtit);
	tcase_add_test(t, formats);
	tcase_add_test(t, wrong_usage_is_2);
	tcase_add_test(t, color_on_a_terminal_only);
	suite_add_tcase(s, t);
	return s;
}
