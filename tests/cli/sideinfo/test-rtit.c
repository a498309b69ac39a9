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

/* A list to take apart; NULL if there is none. */
static char *copy(char list[1024], const char *from)
{
	if (from)
		ck_assert_int_lt(snprintf(list, 1024, "%s", from), 1024);
	return from ? list : NULL;
}

static const u8 psbs[] = { PSB, 0x43, PSB, 0x43, 0x43, 0x43, PSB, 0xc1 };
static const u8 little[] = { PSB, 0xc1 };
static const u8 sts[] = {
	PSB,  0xd4, 0x10, 0xf0, 0xff, 0xff, 0xff, 0xff, /* fffffffff0 */
	0xd4, 0x10, 0x10, 0x00, 0x00, 0x00, 0x00,	/* 10, once round */
};
static const u8 mtc[] = {
	PSB,  0xc5, 0x07,		    /* rng 1, 512 ticks a step: E7 */
	0xc5, 0xfe, 0xc5, 0xff, 0xc5, 0x02, /* 1 + 3 steps */
	0xe3, PSB,  0xc5, 0x80, 0xc5, 0x82, /* after a loss: E7 or not, at most 2 */
};
static const char two[] =
	"{\"rtit\":1,\"vm\":\"web\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x9\"}\n"
	"{\"rtit\":1,\"vm\":\"web\",\"vcpu\":1,\"cpu\":0,\"offset\":\"0x28\"}\n"
	"{\"rtit\":1,\"vm\":\"web:0\",\"vcpu\":7,\"cpu\":0,\"offset\":\"0x3d\"}\n";

static void setup(void)
{
	cli_setup();
	write_all();
	write_mixed("x.pt");
	write_text("two.jsonl", two);
	write_file("bare", plain + 9, 7);
	write_file("cpu5.rtit", plain, SIZE);
	write_file("psb.rtit", psbs, sizeof(psbs));
	write_file("little.rtit", little, sizeof(little));
	write_file("sts.rtit", sts, sizeof(sts));
	write_file("mtc.rtit", mtc, 9 + 2 + 6);
	write_file("loss.rtit", mtc, sizeof(mtc));
}

/* ---- texts of all commands ---- */

/* The texts, with | between them, that stdout has and lacks and that stderr has. */
static const struct {
	const char *args;
	int code;
	const char *has, *lacks, *err;
} texts[] = {
	{ "dump --kinds=fup.pgd,psb --no-bytes x.cpu0.rtit", 0, " PSB\n| FUP.PGD ",
	  " FUP.PGE | TIP ", NULL },
	{ "dump --kinds=timing x.cpu0.rtit", 0, " MTC | STS ", " TNT ", NULL },
	{ "dump --kinds=fup x.cpu0.rtit", 0, " FUP.Far ", " TIP ", NULL },
	{ "dump --side-record=vms.jsonl --owner=db x.cpu0.rtit", 0, "0x401055", "web|host", NULL },
	{ "dump --side-record=vms.jsonl --owner=vm --head=2 x.cpu0.rtit", 0,
	  "      10  web vcpu 0 ", "      17  ", NULL },
	{ "dump --start=0x28 --end=0x30 x.cpu0.rtit", 0, "\n      28 |\n      2d ",
	  "\n      25 |\n      30 ", NULL },
	/* A vCPU by what the column prints, and in short; a VM's whole name goes before both. */
	{ "dump --side-record=two.jsonl --owner=web\tvcpu\t1 x.cpu0.rtit", 0,
	  "\n      28  web vcpu 1    ", "  web vcpu 0  |  web:0 vcpu 7", NULL },
	{ "dump --side-record=two.jsonl --owner=web:1 x.cpu0.rtit", 0, "\n      28  web vcpu 1    ",
	  "  web vcpu 0  |  web:0 vcpu 7", NULL },
	{ "dump --side-record=two.jsonl --owner=web x.cpu0.rtit", 0, "  web vcpu 0 |  web vcpu 1 ",
	  NULL, NULL },
	{ "dump --side-record=two.jsonl --owner=web:0 x.cpu0.rtit", 0, "  web:0 vcpu 7",
	  "  web vcpu 0 ", NULL },
	{ "dump --side-record=two.jsonl --owner=web:2 x.cpu0.rtit", 2, NULL, NULL, NULL },
	/* Without the ratio cycles tell nothing. */
	{ "dump --no-bytes --start=0x1c --end=0x21 cycles.rtit", 0, "1234567000 ?      TIP ", NULL,
	  NULL },
	/* Read without counts it is another trace. */
	{ "dump --cycle-acc=yes cycles.rtit", 0, NULL, NULL, NULL },
	{ "dump --cycle-acc=no cycles.rtit", 3, "TNT         NTNT\n", NULL, NULL },
	{ "dump damaged.cpu0.rtit", 3,
	  "LOST      2 bytes: |TIP         0x????????9999 cnt=0\n|"
	  "FUP.PGE     0x402000 cnt=1 zext\n",
	  NULL, "at 0x4b of CPU 0, 2 bytes" },
	{ "stat damaged.cpu0.rtit", 3,
	  "CPU 0: 94 bytes, 21 packets, 1 loss of 2 bytes\n|"
	  "\n  FUP.PGE                   4     20  21.28 %\n|"
	  "\n  cycle counts: no, as found\n|"
	  "\n  MTC range: 0, a step is 128 ticks of the TSC\n|"
	  "\n  errata: E2 1, E5 1, E7 1\n|"
	  "\n  CR3s: 7a000\n",
	  NULL, NULL },
	{ "stat --cycle-acc=yes cycles.rtit", 0, "cycle counts: yes, as given\n", NULL, NULL },
	{ "stat psb.rtit", 0, "PSB distance: 10 to 12 bytes, 11 on average\n", NULL, NULL },
	/* Both readings fit: reported as unknown. */
	{ "stat little.rtit", 0, "cycle counts: no, assumed: only --cycle-acc can give it\n", NULL,
	  NULL },
	{ "stat --cycle-acc=no little.rtit", 0, "cycle counts: no, as given\n", NULL, NULL },
	/* From the first STS to the last, over a wrap; without any, what MTCs tell. */
	{ "stat sts.rtit", 0,
	  "\n  time: STSs from fffffffff0 to 10000000010, 32 ticks of the TSC\n", NULL, NULL },
	{ "stat mtc.rtit", 0, "\n  time: no STS; by MTCs at least 2,048 ticks of the TSC\n", NULL,
	  NULL },
	/* 9 to 28, 3d to 4b; 28 to 3d; the first PSB */
	{ "vms --side-record=vms.jsonl x.cpu0.rtit", 0,
	  "VM          CPUS  RUNS  PGE  PGD  BYTES   SHARE\n"
	  "web vcpu 0  0        2    2    1     45  60.0 %\n"
	  "db vcpu 1   0        1    1    1     21  28.0 %\n"
	  "host        0        1    0    0      9  12.0 %\n|"
	  "\nweb vcpu 0       0  1234567000  1234567000  7a000\n|"
	  "\ndb vcpu 1: errata E2 1\n|\nweb vcpu 0: errata E5 1, E7 1\n",
	  "do not contain", NULL },
	{ "vms x.cpu0.rtit", 0,
	  "host  0        1    3    2     75  100.0 %\n|host: 75 bytes assumed\n|"
	  "RTIT packets do not contain who ran: all is taken for the host's.|--side-record",
	  NULL, NULL },
	/* Intel PT and RTIT are no one trace. */
	{ "stat x.cpu0.rtit x.pt", 1, NULL, NULL,
	  "x.pt: its first PSB is of Intel PT, but the files before it are of RTIT" },
	/* Without a PSB it is Intel PT, unless --format is given. */
	{ "stat --json bare", 3, "\"isa\": \"pt\"", NULL, NULL },
	{ "dump --no-bytes --format=rtit --headless bare", 0, "FUP.PGE     0xffff81001000 cnt=2\n",
	  NULL, NULL },
	{ "stat --json --format=pt x.cpu0.rtit", 3, "\"isa\": \"pt\"", NULL, NULL },
	/* The CPU in a name */
	{ "stat cpu5.rtit", 0, "CPU 5: ", NULL, NULL },
};

/* Whether @text has each or none of @list. */
static void check_texts(const char *args, const char *text, const char *list, bool has)
{
	char words[1024], *at = copy(words, list), *word;

	while ((word = strsep(&at, "|")) != NULL)
		ck_assert_msg(!strstr(text, word) != has, "vmpt %s: %s'%s' in: %s", args,
			      has ? "no " : "", word, text);
}

START_TEST(text)
{
	const char *args = texts[_i].args;
	const struct run *r = vmpt("%s", args);

	ck_assert_msg(r->code == texts[_i].code, "vmpt %s: exit code %d", args, r->code);
	check_texts(args, r->out, texts[_i].has, true);
	check_texts(args, r->out, texts[_i].lacks, false);
	check_texts(args, r->err, texts[_i].err, true);
}
END_TEST

static const char *const refused[] = {
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
	"vms --tsc-ratio=16 x.cpu0.rtit",
	"split -o out --conceal x.cpu0.rtit",
	"split -o out --perf x.cpu0.rtit",
};

START_TEST(wrong_usage_is_2)
{
	const struct run *r = vmpt("%s", refused[_i]);

	ck_assert_msg(r->code == 2, "vmpt %s: exit code %d", refused[_i], r->code);
	ck_has(r->err, "Try 'vmpt ");
	ck_assert_str_eq(r->out, "");
	ck_assert_int_ne(access("out", F_OK), 0);
}
END_TEST

/* ---- JSON of all commands ---- */

static const struct {
	const char *args, *members;
} documents[] = {
	{ "stat --json cycles.rtit x.cpu0.rtit",
	  "isa='rtit'|streams/1/cycle_acc=true|streams/1/cycle_acc_given=false|"
	  "streams/1/cycle_counts/count=5|streams/1/cycle_counts/bytes=6|streams/1/errata/E6=4|"
	  "streams/0/cycle_acc=false|streams/0/kinds/FUP.PGD/packets=3|streams/0/mtc_ranges/0=0|"
	  "streams/0/cr3s/0='0x7a000'|total/bytes=112" }, /* 37 + 75 */
	{ "stat --json psb.rtit",
	  "total/psb_distance/min=10|total/psb_distance/max=12|total/psb_distance/mean=11" },
	{ "stat --json little.rtit cycles.rtit",
	  "streams/0/cycle_acc=false|streams/0/cycle_acc_sure=false|"
	  "streams/1/cycle_acc=true|streams/1/cycle_acc_sure=true" },
	{ "stat --json --cycle-acc=no little.rtit", "streams/0/cycle_acc_sure=true" },
	{ "stat --json sts.rtit mtc.rtit",
	  "streams/0/first_tsc='0xfffffffff0'|streams/0/last_tsc='0x10000000010'|"
	  "streams/1/mtc_ticks=2048" },
	/* The last line of a record has the offsets. */
	{ "vms --json --side-record=vms.jsonl x.cpu0.rtit",
	  "side_record='vms.jsonl'|owners/0/vm='web'|owners/0/vcpu=0|"
	  "owners/0/slices=2|owners/0/enables=2|owners/0/bytes=45|owners/0/first_tsc='0x1234567000'|"
	  "owners/0/tsc_offset='18'|owners/0/core_offset='34'|owners/1/vm='db'|owners/2/owner='host'" },
	/* STSs go round in 40 bits: the last is not before the first. */
	{ "vms --json sts.rtit",
	  "owners/0/first_tsc='0xfffffffff0'|owners/0/last_tsc='0x10000000010'" },
};

START_TEST(members)
{
	const char *args = documents[_i].args;
	json_t *doc = run_json(vmpt("%s", args));

	check_members(args, doc, documents[_i].members);
	json_decref(doc);
}
END_TEST

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

/* Line by line; the objects are contiguous and cover the file. */
START_TEST(dump_json)
{
	static const struct {
		u64 end; /* of the packet */
		const char *members;
	} want[] = {
		{ 0x19,
		  "packet='MTC'|erratum='E7'|ignored=true|host_tsc='0x1234567000'|host_tsc_error=null|"
		  "vm='web'|vcpu=0" },
		{ 0x1c, "bits='TTNTTN'|host_tsc_error=127" },
		{ 0x1f, "lip='0x2010'|full_lip='0xffff81002010'|raw='b01020'|cnt=0" },
		{ 0x4d, "lost='unknown opcode'" },
	};
	json_t *lines = run_packets(vmpt("dump --json --side-record=vms.jsonl damaged.cpu0.rtit"));
	size_t i = 0, k;
	json_t *o;
	u64 end = 0;
	int n = 0;

	json_array_foreach(lines, k, o)
	{
		ck_assert_uint_eq(json_u64(o, "offset"), end);
		end += json_u64(o, "size");
		if (end == 0x59)
			ck_assert_ptr_null(json_object_get(o, "full_lip"));
		n++;
		if (i < VMPT_ARRAY_SIZE(want) && end == want[i].end)
			check_members("dump", o, want[i++].members);
	}
	ck_assert_uint_eq(i, VMPT_ARRAY_SIZE(want));
	ck_assert_uint_eq(end, DAMAGED_SIZE);
	ck_assert_int_eq(n, 22);
	json_decref(lines);
}
END_TEST

/* ---- stat ---- */

/* What was lost is not made up. */
START_TEST(stat_time_of_a_loss)
{
	json_t *doc = run_json(vmpt("stat --json --format=rtit loss.rtit"));

	ck_assert_uint_le(json_u64(doc, "streams/0/mtc_ticks"), 2048 + 2 * 512);
	json_decref(doc);
}
END_TEST

/* ---- split ---- */

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
	ck_has(r->out, "out/slices.gz: 4 slices\n");
	check_file("out/host.cpu0.rtit", plain, WEB_1);
	check_file("out/vm-db-vcpu1.cpu0.rtit", db, sizeof(db));
	doc = split_index("out");
	check_members("index.json", doc,
		      "index/1/file='vm-web-vcpu0.cpu0.rtit'|index/1/vm='web'|index/1/offset=9|"
		      "index/1/errata/E7=1|index/3/vm='web'|index/3/offset=61|"
		      "index/3/ips_reencoded=1|index/3/head=true|"
		      "index/3/returns_may_lack_calls=true|streams/1/vm='web'");
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
	ck_has(r->out, "out/slices.gz: 1 slice\n");
	ck_assert_int_ne(access("out/vm-db-vcpu1.cpu0.rtit", F_OK), 0);
	check_file("out/host.cpu0.rtit", plain, SIZE);
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
	tcase_add_loop_test(t, text, 0, VMPT_ARRAY_SIZE(texts));
	tcase_add_loop_test(t, wrong_usage_is_2, 0, VMPT_ARRAY_SIZE(refused));
	tcase_add_loop_test(t, members, 0, VMPT_ARRAY_SIZE(documents));
	tcase_add_test(t, dump_lines);
	tcase_add_test(t, dump_cycles);
	tcase_add_test(t, dump_with_a_wrong_ratio);
	tcase_add_test(t, dump_has_room_for_cycle_counts);
	tcase_add_test(t, dump_json);
	tcase_add_test(t, stat_time_of_a_loss);
	tcase_add_test(t, split_by_the_record);
	tcase_add_test(t, color_on_a_terminal_only);
	suite_add_tcase(s, t);
	return s;
}
