// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* dump, stat, vms and split of a trace counted by hand, and of real ones. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static size_t lines_of(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n')) != NULL) {
		text++;
		n++;
	}
	return n;
}

START_TEST(stat_counts)
{
	json_t *doc;

	write_mixed("x.pt");
	doc = run_json(vmpt("stat --json x.pt"));
	check_members("stat", doc,
		      "total/bytes=99|total/packets=19|total/kinds/PSB/packets=1|"
		      "total/kinds/PIP/packets=4|total/kinds/PIP/bytes=32|"
		      "total/kinds/VMCS/packets=2|total/kinds/TNT-8/packets=7|"
		      "total/kinds/TIP/bytes=21|total/kinds/FUP/packets=1|total/loss_count=0");
	json_decref(doc);
	doc = run_json(vmpt("stat --json x.pt x.pt x.pt"));
	ck_assert_uint_eq(json_u64(doc, "streams/2/packets"), 19);
	ck_assert_uint_eq(json_u64(doc, "total/packets"), 57);
	ck_assert_uint_eq(json_u64(doc, "total/kinds/PIP/bytes"), 96);
	json_decref(doc);
}
END_TEST

START_TEST(vms_counts)
{
	json_t *doc;

	write_mixed("x.pt");
	doc = run_json(vmpt("vms --json x.pt@4"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 3);
	check_members("vms", doc,
		      "owners/0/vmcs='" MIXED_A "'|owners/0/slices=1|owners/0/entries=1|"
		      "owners/0/exits=1|owners/0/leaves=1|owners/0/returns=0|owners/0/bytes=24|"
		      "owners/0/cr3s/0='0x2000'|owners/0/streams/0/cpu=4|"
		      "owners/1/vmcs='" MIXED_B "'|owners/1/entries=1|owners/1/exits=0|"
		      "owners/1/leaves=0|owners/1/bytes=16|owners/2/owner='host'|"
		      "owners/2/slices=2|owners/2/leaves=2|owners/2/returns=1|owners/2/bytes=59|"
		      "owners/2/entries=null");
	json_decref(doc);
}
END_TEST

/* Two CPUs: the rows add up, a return is counted per CPU. */
START_TEST(vms_adds_cpus)
{
	json_t *doc;

	write_mixed("x.pt");
	write_mixed_times("y.pt", 3, 0);
	doc = run_json(vmpt("vms --json x.pt y.pt"));
	check_members("vms", doc,
		      "owners/0/slices=4|owners/0/returns=2|owners/0/bytes=96|"
		      "owners/0/streams/1/slices=3|owners/0/streams/1/returns=2");
	json_decref(doc);
	ck_has(vmpt("vms x.pt y.pt")->out, "a000  0,1  ");
}
END_TEST

/* 02 7f is no packet: bytes up to the next PSB are lost, between b000 and the host. */
START_TEST(losses_are_given)
{
	static const u8 damage[4] = { 0x02, 0x7f, 0x06, 0x06 };
	u8 bytes[2 * MIXED_SIZE + 4];
	u8 *one;
	size_t n;
	json_t *doc;
	const struct run *r;

	write_mixed("x.pt");
	one = test_read_file("x.pt", &n);
	memcpy(bytes, one, n);
	memcpy(bytes + n, damage, sizeof(damage));
	memcpy(bytes + n + 4, one, n);
	free(one);
	write_file("bad.pt", bytes, sizeof(bytes));
	r = vmpt("vms --json bad.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "bad.pt: lost 4 bytes in 1 place\n"
		       "  at 0x63, 4 bytes: unknown opcode 02 7f\n");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 4);
	check_members(
		"vms", doc,
		"owners/0/loss_count=0|owners/1/loss_count=1|owners/1/leaves=1|owners/2/loss_count=1|"
		"owners/3/owner='lost'|owners/3/bytes=4");
	json_decref(doc);
	r = vmpt("stat --json bad.pt");
	ck_assert_int_eq(r->code, 3);
	doc = run_json(r);
	ck_assert_uint_eq(json_u64(doc, "total/packets"), 38);
	ck_assert_uint_eq(json_u64(doc, "total/loss_causes/unknown opcode/bytes"), 4);
	json_decref(doc);
	r = vmpt("dump --kinds=lost bad.pt");
	ck_assert_int_eq(r->code, 3);
	ck_assert_uint_eq(lines_of(r->out), 2);
	ck_has(r->out, "02 7f 06 06              LOST      4 bytes: unknown opcode 02 7f\n");
	ck_assert_int_eq(vmpt("dump --end 0x63 bad.pt")->code, 0);
	ck_assert_int_eq(vmpt("dump --start 0x67 bad.pt")->code, 0);
	ck_assert_int_eq(vmpt("dump --start 0x66 bad.pt")->code, 3);
}
END_TEST

/* The host's TRIG with a FUP, then a VM's with a count that looks like a TSC's header. */
START_TEST(a2_a_trig_is_no_loss)
{
	static const u8 bytes[] = {
		2,    0x82, 2,	  0x82, 2,    0x82, 2,	  0x82, 2,    0x82, 2,	  0x82,
		2,    0x82, 2,	  0x82, 0x02, 0x43, 0x00, 0x01, 0,    0,    0,	  0,
		0x02, 0xc8, 0x0a, 0,	0,    0,    0,	  0x02, 0x23, 0xd9, 0x9f, 0x03,
		0x7d, 0x10, 0x10, 0x40, 0,    0,    0,	  0x02, 0x43, 0x01, 0x02, 0,
		0,    0,    0,	  0x0d, 0x1c, 0xd9, 0x60, 0x01, 0x19, 0x07, 0x59, 0x0a,
	};
	const struct run *r;
	json_t *doc;

	write_file("trig.pt", bytes, sizeof(bytes));
	r = vmpt("dump trig.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "  host        d9 9f 03                 TRIG      ip trbv=0x3\n");
	ck_has(r->out, "  a000        d9 60 01 19 07           TRIG      icntv mult trbv=0x1 "
		       "icnt=1817\n");
	ck_assert_uint_eq(lines_of(vmpt("dump --kinds trig --time trig.pt")->out), 3);
	doc = run_json(vmpt("stat --json trig.pt"));
	check_members("stat", doc,
		      "total/packets=11|total/kinds/TRIG/packets=2|total/kinds/TRIG/bytes=8|"
		      "total/loss_count=0");
	json_decref(doc);
	ck_assert_int_eq(vmpt("split -o trig trig.pt")->code, 0);
	doc = run_json(vmpt("stat --json trig/vmcs-a000.pt"));
	check_members("stat", doc, "total/kinds/TRIG/packets=1|total/loss_count=0");
	json_decref(doc);
}
END_TEST

START_TEST(dump_lines)
{
	static const char *const line[] = {
		"       0  host        02 82 ×8                 PSB\n",
		"      10  host        02 43 00 01 00 00 00 00  PIP       cr3=0x1000\n",
		"      18  host        02 c8 0a 00 00 00 00     VMCS      pointer=0xa000\n",
		"      1f  host        02 23                    PSBEND\n",
		"      23  host        1c                       TNT-8     TTN\n",
		"      24  a000        02 43 01 02 00 00 00 00  PIP       cr3=0x2000 nr\n",
		"      35  a000        7d 10 10 40 00 00 00     FUP       0x401010 011b\n",
		"      3c  host        02 43 00 01 00 00 00 00  PIP       cr3=0x1000\n",
		"      44  host        6d 00 00 00 81 ff ff     TIP       0xffffffff81000000 011b\n",
		"      53  b000        02 43 01 03 00 00 00 00  PIP       cr3=0x3000 nr\n",
	};
	const struct run *r;
	size_t i;

	write_mixed("x.pt");
	r = vmpt("dump x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_uint_eq(lines_of(r->out), 1 + 19);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++)
		ck_has(r->out, line[i]);
	ck_has(vmpt("dump --no-bytes x.pt")->out, "      1f  host        PSBEND\n");
}
END_TEST

/* PSB, TSC 1000000, TMA CTC 1234H FastCounter 50, PSBEND, MTC 47H: 352 ticks after 999950. */
START_TEST(dump_times)
{
	static const u8 bytes[] = {
		0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
		0x82, 0x02, 0x82, 0x02, 0x82, 0x19, 0x40, 0x42, 0x0f, 0,    0,
		0,    0,    0x02, 0x73, 0x34, 0x12, 0,	  50,	0,    0x02, 0x43,
		0,    0x10, 0,	  0,	0,    0,    0x02, 0x23, 0x59, 0x47,
	};
	const struct run *r;
	json_t *doc, *o;

	write_file("time.pt", bytes, sizeof(bytes));
	r = vmpt("dump --time --tsc-ratio=176/2 --mtc-freq=3 --no-bytes time.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "HOST TSC");
	ck_has(r->out, "f4240 -0 +0 ");
	/* The rates are unknown: reported, and the TSC is still shown. */
	r = vmpt("dump --time --no-bytes time.pt");
	ck_has(r->err, "the rates of the clocks");
	ck_has(r->out, "f4240 -0 +0 ");
	doc = run_packets(
		vmpt("dump --json --time --tsc-ratio=176/2 --mtc-freq=3 --start=0x29 time.pt"));
	o = json_at(doc, "0");
	/* 1000302, to a tick */
	ck_assert_uint_ge(strtoull(json_string_value(json_object_get(o, "host_tsc")), NULL, 16),
			  1000301);
	ck_assert_uint_le(strtoull(json_string_value(json_object_get(o, "host_tsc")), NULL, 16),
			  1000303);
	ck_assert_uint_ge((u64)json_integer_value(json_object_get(o, "late")), 704);
	json_decref(doc);
}
END_TEST

START_TEST(dump_chooses)
{
	static const struct {
		const char *options;
		size_t lines; /* without the header */
	} want[] = {
		{ "--owner=host", 11 },
		{ "--owner=a000", 5 },
		{ "--owner=0xb000,host", 14 },
		{ "--owner=vm", 8 },
		{ "--owner=unknown", 0 },
		{ "--kinds=pip", 4 },
		{ "--kinds=Tip,psbend", 4 },
		{ "--kinds=ip", 4 },
		{ "--kinds=tnt --owner=vm", 3 },
		{ "--kinds=timing", 0 },
		{ "--start=0x24 --end=0x3c", 5 },
		{ "--start=0x25 --end=0x3c", 5 }, /* a packet that reaches into it */
		{ "--head=7", 7 },
		{ "-n 7 --kinds=psb", 1 },
	};
	size_t i;

	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		const struct run *r = vmpt("dump %s x.pt", want[i].options);

		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(lines_of(r->out) == want[i].lines + 1, "%s: %s", want[i].options,
			      r->out);
	}
}
END_TEST

START_TEST(dump_pads)
{
	const struct run *r;

	write_mixed_times("x.pt", 2, 70000);
	r = vmpt("dump x.pt");
	ck_assert_uint_eq(lines_of(r->out), 1 + 2 * 20);
	ck_has(r->out, "      63  b000        00 ×70000                PAD       ×70000\n");
	r = vmpt("dump --no-pad x.pt");
	ck_assert_uint_eq(lines_of(r->out), 1 + 2 * 19);
	r = vmpt("dump --expand-pad x.pt");
	ck_assert_uint_eq(lines_of(r->out), 1 + 2 * (19 + 70000));
	ck_has(r->out, "      64  b000        00                       PAD\n");
	/* cut by the range asked for */
	r = vmpt("dump --start=99 --end=109 x.pt");
	ck_has(r->out, "×10\n");
	ck_assert_uint_eq(lines_of(r->out), 2);
}
END_TEST

/* The lines of JSON tile the file. */
static void check_tiling(const struct run *r, u64 size)
{
	json_t *lines = run_packets(r), *o;
	u64 at = 0;
	size_t i;

	json_array_foreach(lines, i, o)
	{
		ck_assert_uint_eq(json_u64(o, "offset"), at);
		at += json_u64(o, "size");
		ck_assert_ptr_nonnull(json_text(o, "packet"));
	}
	ck_assert_uint_eq(at, size);
	json_decref(lines);
}

START_TEST(dump_json_tiles_the_file)
{
	json_t *o;

	write_mixed_times("x.pt", 20, 33);
	check_tiling(vmpt("dump --json x.pt"), 20 * (MIXED_SIZE + 33));
	o = run_packets(vmpt("dump --json --start=0x44 --head=1 x.pt@3"));
	check_members("dump", json_at(o, "0"),
		      "cpu=3|packet='TIP'|owner='host'|full_ip='0xffffffff81000000'|"
		      "raw='6d00000081ffff'|ipbytes=3");
	json_decref(o);
}
END_TEST

START_TEST(split_writes_files_and_index)
{
	static const char *const name[] = { "host.cpu5.pt", "vmcs-a000.cpu5.pt",
					    "vmcs-b000.cpu5.pt" };
	json_t *doc, *said, *index;
	size_t i;

	write_mixed("x.pt");
	said = run_json(vmpt("split --json -o out x.pt@5"));
	index = split_index("out");
	ck_assert_uint_eq(json_array_size(json_at(index, "index")), 4);
	ck_assert_uint_eq(json_u64(index, "slices"), 4);
	check_members("split", index,
		      "index/1/offset=36|index/1/size=24|index/1/begin='entry'|"
		      "index/2/begin='exit'");
	ck_assert_str_eq(json_text(index, "index/3/file"), name[2]);
	ck_assert_str_eq(json_text(index, "ret_compression"), "possible");
	ck_assert_uint_eq(json_array_size(json_at(index, "streams")), 3);
	ck_assert(json_equal(json_at(index, "streams"), json_at(said, "streams")));
	for (i = 0; i < 3; i++) {
		json_t *stream = json_array_get(json_at(index, "streams"), i);
		struct stat st;
		char path[64];

		ck_assert_str_eq(json_text(stream, "file"), name[i]);
		snprintf(path, sizeof(path), "out/%s", name[i]);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(json_u64(stream, "bytes"), (u64)st.st_size);
		doc = run_json(vmpt("vms --json %s", path));
		ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 1);
		ck_assert_uint_eq(json_u64(doc, "owners/0/streams/0/cpu"), 5);
		json_decref(doc);
	}
	json_decref(said);
	json_decref(index);
	ck_assert_int_eq(vmpt("split -o out x.pt@5")->code, 1);
	ck_has(vmpt("split -o out x.pt@5")->err, "--force");
	ck_assert_int_eq(vmpt("split -f -o out x.pt@5")->code, 0);
	doc = run_packets(vmpt("dump --json --kinds=vmcs out/vmcs-a000.cpu5.pt --head=1"));
	json_decref(doc);
}
END_TEST

/* Concealed, a VM's stream has neither VMCS nor NR. */
START_TEST(split_conceals)
{
	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split --conceal -o out x.pt")->code, 0);
	ck_assert_uint_eq(lines_of(vmpt("dump --kinds=vmcs out/vmcs-a000.pt")->out), 1);
	ck_assert_uint_ge(lines_of(vmpt("dump --kinds=pip out/vmcs-a000.pt")->out), 2);
	ck_assert_ptr_null(strstr(vmpt("dump --kinds=pip out/vmcs-a000.pt")->out, " nr\n"));
	/* The host's stream too: VMCS a000 of its PSB+ and VMCS b000 are left out. */
	ck_assert_uint_eq(lines_of(vmpt("dump --kinds=vmcs out/host.pt")->out), 1);
	ck_assert_int_eq(vmpt("split -f -o out x.pt")->code, 0);
	ck_assert_uint_eq(lines_of(vmpt("dump --kinds=vmcs out/vmcs-a000.pt")->out), 2);
	ck_assert_uint_eq(lines_of(vmpt("dump --kinds=vmcs out/host.pt")->out), 3);
}
END_TEST

/* More VMs than files are kept open. */
START_TEST(split_has_room_for_many_vms)
{
	u8 all[200 * MIXED_SIZE], *one;
	unsigned int i;
	json_t *index;
	size_t n;

	write_mixed("one.pt");
	one = test_read_file("one.pt", &n);
	for (i = 0; i < 200; i++) {
		memcpy(all + i * n, one, n);
		all[i * n + 26] = (u8)(1 + i % 100); /* the VMCS in the PSB+ */
		all[i * n + 77] = 0xff;
	}
	free(one);
	write_file("many.pt", all, sizeof(all));
	ck_assert_int_eq(vmpt("split -o out many.pt")->code, 0);
	index = json_load_file("out/index.json", 0, NULL);
	ck_assert_ptr_nonnull(index);
	ck_assert_uint_eq(json_array_size(json_at(index, "streams")), 102);
	for (i = 0; i < 102; i++) {
		json_t *stream = json_array_get(json_at(index, "streams"), i);
		struct stat st;
		char path[64];

		snprintf(path, sizeof(path), "out/%s", json_text(stream, "file"));
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(json_u64(stream, "bytes"), (u64)st.st_size);
	}
	json_decref(index);
	/* Each perf.data has its end, of whatever file was open last: those at both ends, and
	 * others. */
	ck_assert_int_eq(vmpt("split --perf -f -o out many.pt")->code, 0);
	for (i = 0; i < 100; i += i % 33 ? 32 : 1) {
		const struct run *r = vmpt("stat out/vmcs-%x000.perf.data", 1 + i);

		ck_assert_msg(r->code == 0, "%s", r->err);
	}
}
END_TEST

static void same_with_threads(const char *args)
{
	static const char *const file[] = { "out/index.json", "out/slices.gz" };
	char *one, *index[2] = { NULL };
	size_t n, k;
	bool split = strstr(args, "split") != NULL;
	int code;
	unsigned int j;

	/* The first run removes what another split left, and says so. */
	code = vmpt("%s -j 1", args)->code;
	one = strdup(vmpt("%s -j 1", args)->out);
	for (k = 0; split && k < 2; k++)
		index[k] = (char *)test_read_file(file[k], &n);
	for (j = 2; j <= 4; j += 2) {
		const struct run *r = vmpt("%s -j %u", args, j);

		ck_assert_int_eq(r->code, code);
		ck_assert_msg(!strcmp(r->out, one), "%s differs with -j %u", args, j);
		for (k = 0; split && k < 2; k++) {
			char *other = (char *)test_read_file(file[k], &n);

			ck_assert_int_eq(memcmp(index[k], other, n), 0);
			free(other);
		}
	}
	free(one);
	free(index[0]);
	free(index[1]);
}

START_TEST(threads_change_nothing)
{
	static const char *const file[] = { "guest-two-vmcs.pt", "guest-mruby.pt",
					    "host-loopy.perf.data" };
	static const char *const command[] = { "stat", "vms --json", "dump", "split -f -o out" };
	char args[4200];
	size_t i, k;

	/* Three pieces for the threads */
	write_mixed_times("x.pt", 4000, 500);
	/* One that is made up, then real ones. */
	for (i = 0; i <= (size_t)test_rounds(VMPT_ARRAY_SIZE(file), 0); i++) {
		const char *path = i ? test_data(file[i - 1]) : "x.pt";

		for (k = 0; path && k < VMPT_ARRAY_SIZE(command); k++) {
			snprintf(args, sizeof(args), "%s %s", command[k], path);
			same_with_threads(args);
		}
	}
}
END_TEST

/* The counts are those of libipt's packet decoder. */
START_TEST(real_two_vmcs)
{
	static const struct {
		const char *path;
		u64 count;
	} want[] = {
		{ "total/bytes", 2097648 },
		{ "total/packets", 1206987 },
		{ "total/loss_count", 0 },
		{ "total/kinds/PAD/packets", 665461 },
		{ "total/kinds/PSB/packets", 12955 },
		{ "total/kinds/PSBEND/packets", 12955 },
		{ "total/kinds/VMCS/packets", 12955 },
		{ "total/kinds/PIP/packets", 16896 },
		{ "total/kinds/TNT-8/packets", 343290 },
		{ "total/kinds/TIP/packets", 80456 },
		{ "total/kinds/TIP.PGE/packets", 16964 },
		{ "total/kinds/TIP.PGD/packets", 16963 },
		{ "total/kinds/FUP/packets", 531 },
		{ "total/kinds/MODE.Exec/packets", 1646 },
		{ "total/kinds/MODE.TSX/packets", 12955 },
		{ "total/kinds/CBR/packets", 12959 },
		{ "total/kinds/OVF/packets", 1 },
	};
	const char *path = test_data("guest-two-vmcs.pt");
	json_t *doc;
	size_t i;

	if (!path)
		return;
	doc = run_json(vmpt("stat --json %s", path));
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++)
		ck_assert_uint_eq(json_u64(doc, want[i].path), want[i].count);
	json_decref(doc);
	doc = run_json(vmpt("vms --json %s", path));
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 2);
	ck_assert_str_eq(json_text(doc, "owners/0/vmcs"), "0x2ac5b9000");
	ck_assert_str_eq(json_text(doc, "owners/1/vmcs"), "0x3b56ee000");
	/* 1,650 owner changes, and NR never changes */
	ck_assert_uint_eq(json_u64(doc, "owners/0/leaves") + json_u64(doc, "owners/1/leaves"),
			  1650);
	ck_assert_uint_eq(json_u64(doc, "owners/0/bytes") + json_u64(doc, "owners/1/bytes"),
			  2097648);
	ck_assert(json_is_null(json_at(doc, "owners/0/entries")));
	json_decref(doc);
	ck_has(vmpt("vms %s", path)->out, "–");
}
END_TEST

START_TEST(real_mruby_and_perf)
{
	const char *path = test_data("guest-mruby.pt");
	int end = test_rounds(713168, 1 << 16);
	json_t *doc;

	if (!path)
		return;
	doc = run_json(vmpt("stat --json %s", path));
	ck_assert_uint_eq(json_u64(doc, "total/packets"), 404969);
	ck_assert_uint_eq(json_u64(doc, "total/kinds/TIP/packets"), 44414);
	json_decref(doc);
	doc = run_json(vmpt("vms --json %s", path));
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 1);
	ck_assert_str_eq(json_text(doc, "owners/0/vmcs"), "0x48d020000");
	ck_assert_str_eq(json_text(doc, "owners/0/cr3s/0"), "0x1628b000");
	json_decref(doc);
	/* All of it in a soak; the process reads its JSON under the sanitizers, too. */
	check_tiling(vmpt("dump --json --end=%d %s", end, path), (u64)end);
	path = test_data("host-loopy.perf.data");
	doc = run_json(vmpt("stat --json %s", path));
	check_members("stat", doc,
		      "file_format='perf'|total/kinds/TSC/packets=10|total/kinds/TMA/packets=10|"
		      "total/kinds/MTC/packets=454");
	json_decref(doc);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli commands");
	TCase *tc = tcase_create("commands");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, stat_counts);
	tcase_add_test(tc, vms_counts);
	tcase_add_test(tc, vms_adds_cpus);
	tcase_add_test(tc, losses_are_given);
	tcase_add_test(tc, a2_a_trig_is_no_loss);
	tcase_add_test(tc, dump_lines);
	tcase_add_test(tc, dump_times);
	tcase_add_test(tc, dump_chooses);
	tcase_add_test(tc, dump_pads);
	tcase_add_test(tc, dump_json_tiles_the_file);
	tcase_add_test(tc, split_writes_files_and_index);
	tcase_add_test(tc, split_conceals);
	tcase_add_test(tc, split_has_room_for_many_vms);
	tcase_add_test(tc, real_two_vmcs);
	suite_add_tcase(suite, tc);
	tc = test_long_case(suite);
	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, real_mruby_and_perf);
	tcase_add_test(tc, threads_change_nothing);
	return suite;
}
