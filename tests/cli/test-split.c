// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt split and what is in its directory already: inputs, the streams of an earlier split. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define ck_has(text, word) ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)

static void ck_file(const char *name, const u8 *bytes, size_t n)
{
	size_t size;
	u8 *now = test_read_file(name, &size);

	ck_assert_msg(size == n && !memcmp(now, bytes, n), "%s changed", name);
	free(now);
}

static bool exists(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

/* Under its own name, another's, that of the index, through a link, as stdin. */
START_TEST(an_input_is_not_overwritten)
{
	static const struct {
		const char *line, *file;
	} want[] = {
		{ "split -f -o out out/host.pt", "out/host.pt" },
		{ "split -f -o out out/vmcs-a000.pt", "out/vmcs-a000.pt" },
		{ "split -f -o out x.pt", "out/vmcs-b000.pt" },
		{ "split -f -o out hard.pt", "out/host.pt" },
		{ "split -f -o out soft.pt", "out/host.pt" },
		{ "split -f -o out y.pt index.pt", "out/index.json" },
		{ "split -f -o . host.cpu4.pt", "./host.cpu4.pt" },
		{ "split -f -o out y.pt@0 out/host.cpu1.pt", "out/host.cpu1.pt" },
		{ "split -f -o out -", "out/host.pt" },
	};
	size_t i, n;
	u8 *bytes;

	write_mixed("y.pt");
	write_mixed("x.pt");
	write_mixed("host.cpu4.pt");
	ck_assert_int_eq(vmpt("split -o out y.pt")->code, 0);
	bytes = test_read_file("y.pt", &n);
	/* A whole trace each: what is an input would be written to as well. */
	write_mixed("out/host.pt");
	write_mixed("out/vmcs-a000.pt");
	write_mixed("out/host.cpu1.pt");
	write_mixed("out/index.json");
	ck_assert_int_eq(unlink("out/vmcs-b000.pt"), 0);
	ck_assert_int_eq(symlink("../x.pt", "out/vmcs-b000.pt"), 0);
	ck_assert_int_eq(link("out/host.pt", "hard.pt"), 0);
	ck_assert_int_eq(symlink("out/host.pt", "soft.pt"), 0);
	ck_assert_int_eq(link("out/index.json", "index.pt"), 0);
	vmpt_stdin = "out/host.pt";
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		const struct run *r = vmpt("%s", want[i].line);

		ck_assert_msg(r->code == 1, "%s: exit code %d", want[i].line, r->code);
		ck_has(r->err, want[i].file);
		ck_has(r->err, "is an input");
		ck_file("x.pt", bytes, n);
		ck_file("y.pt", bytes, n);
		ck_file("host.cpu4.pt", bytes, n);
		ck_file("out/host.pt", bytes, n);
		ck_file("out/vmcs-a000.pt", bytes, n);
		ck_file("out/vmcs-b000.pt", bytes, n);
		ck_file("out/host.cpu1.pt", bytes, n);
		ck_file("out/index.json", bytes, n);
	}
	vmpt_stdin = "/dev/null";
	free(bytes);
}
END_TEST

START_TEST(old_streams_are_removed)
{
	static const char *const old[] = { "out/host.cpu1.pt", "out/vmcs-a000.cpu1.pt",
					   "out/vmcs-b000.cpu1.pt", "out/vm-unknown.tid7.pt" };
	static const char *const kept[] = { "out/notes.pt",	     "out/host.pt.old",
					    "out/hostile.pt",	     "out/vmcs-xyz.pt",
					    "out/vmcs-.cpu1.pt",     "out/host.cpu.pt",
					    "out/vmcs-a000.cpu0.pt", "out/host.cpu9.pt" };
	const struct run *r;
	size_t i;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o out x.pt x.pt")->code, 0);
	write_mixed(old[3]);
	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++)
		write_mixed(kept[i]);
	/* The last of those kept is the input. */
	r = vmpt("split -f -o out out/host.cpu9.pt@0");
	ck_assert_msg(r->code == 0, "%s", r->err);
	ck_has(r->out, "out: removed 4 streams of an earlier split\n");
	for (i = 0; i < VMPT_ARRAY_SIZE(old); i++)
		ck_assert_msg(!exists(old[i]), "%s is still there", old[i]);
	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++)
		ck_assert_msg(exists(kept[i]), "%s is gone", kept[i]);
	/* A directory without an index holds no earlier split. */
	ck_assert_int_eq(unlink("out/index.json"), 0);
	write_mixed("out/host.cpu5.pt");
	ck_assert_int_eq(vmpt("split -f -o out x.pt@0")->code, 0);
	ck_assert(exists("out/host.cpu5.pt"));
}
END_TEST

static const u8 psb_plus[] = {
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, /* PSB */
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
	0x02, 0x43, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, /* PIP 2000 NR */
	0x02, 0xc8, 0x0a, 0x00, 0x00, 0x00, 0x00,	/* VMCS a000 */
	0x02, 0x23,					/* PSBEND */
};

/* An OVF and a TIP.PGD() that nothing of the same owner follows. */
START_TEST(unproven_bytes_are_a_loss)
{
	static const u8 doubts[] = {
		0x06, 0x02, 0xf3,				/* TNT-8, OVF at 22h */
		0x7d, 0x10, 0x10, 0x40, 0x00, 0x00, 0x00,	/* FUP 401010 at 24h: whose? */
		0x06,						/* TNT-8 */
		0x02, 0x43, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, /* PIP 1000 at 2ch: the host */
		0x6d, 0x00, 0x20, 0x40, 0x00, 0x00, 0x00,	/* TIP 402000 */
		0x01,						/* TIP.PGD() at 3bh */
		0x59, 0x07,					/* MTC: whose? */
	};
	u8 bytes[sizeof(psb_plus) + sizeof(doubts)];
	const struct run *r;
	json_t *doc;

	memcpy(bytes, psb_plus, sizeof(psb_plus));
	memcpy(bytes + sizeof(psb_plus), doubts, sizeof(doubts));
	write_file("x.pt", bytes, sizeof(bytes));
	r = vmpt("vms --json x.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "x.pt: 10 bytes in 2 places have no proven owner\n"
		       "  first at 0x24, 8 bytes: ");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), 3);
	ck_assert_uint_eq(json_u64(doc, "owners/0/losses"), 1);
	ck_assert_uint_eq(json_u64(doc, "owners/1/losses"), 2);
	ck_assert_str_eq(json_text(doc, "owners/2/owner"), "lost");
	ck_assert_uint_eq(json_u64(doc, "owners/2/bytes"), 10);
	ck_assert_uint_eq(json_u64(doc, "owners/2/unproven_bytes"), 10);
	json_decref(doc);
	ck_has(vmpt("vms x.pt")->out, "lost: 10 bytes have no proven owner\n");
	r = vmpt("split -o out x.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "x.pt: 10 bytes in 2 places have no proven owner\n");
	/* The packets are whole. */
	ck_assert_int_eq(vmpt("stat x.pt")->code, 0);
	ck_assert_int_eq(vmpt("dump x.pt")->code, 0);
}
END_TEST

/* 4,100 VMCSs, 8 bytes each but the first: only 4,096 become files. */
START_TEST(too_many_vmcss_are_told)
{
	static const u8 vmcs[] = { 0x02, 0xc8, 0x00, 0x00, 0x10, 0x00, 0x00, 0x06 };
	u8 bytes[sizeof(psb_plus) + 4099 * sizeof(vmcs)], *at = bytes + sizeof(psb_plus);
	const struct run *r;
	json_t *doc;
	unsigned int i;

	memcpy(bytes, psb_plus, sizeof(psb_plus));
	for (i = 0; i < 4099; i++, at += sizeof(vmcs)) {
		memcpy(at, vmcs, sizeof(vmcs));
		at[2] = (u8)i;
		at[3] = (u8)(i >> 8);
	}
	write_file("x.pt", bytes, sizeof(bytes));
	r = vmpt("split --json -o out x.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "x.pt: too many VMCSs: 32 bytes in 4 places are in no file\n"
		       "  first at 0x8019, 8 bytes: ");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "streams")), 4096);
	ck_assert_uint_eq(json_u64(doc, "left_out_bytes"), 32);
	json_decref(doc);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cli split");
	TCase *tc = tcase_create("split");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, an_input_is_not_overwritten);
	tcase_add_test(tc, old_streams_are_removed);
	tcase_add_test(tc, unproven_bytes_are_a_loss);
	tcase_add_test(tc, too_many_vmcss_are_told);
	suite_add_tcase(suite, tc);
	return test_main(suite);
}
