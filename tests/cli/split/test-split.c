// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt split and what is in its directory already: inputs, the streams of an earlier split. */
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

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
	ck_assert_uint_eq(json_u64(doc, "owners/0/loss_count"), 1);
	ck_assert_uint_eq(json_u64(doc, "owners/1/loss_count"), 2);
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
START_TEST(too_many_vmcss_are_given)
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

static const struct {
	const char *options;
	int code;
	const char *says;
} bad_code[] = {
	{ "--kernel=a.elf", 2, "--kernel and --image are for --perf" },
	{ "--image=a.elf", 2, "--kernel and --image are for --perf" },
	{ "--perf --kernel=a.elf --kernel=a.elf", 2, "--kernel: a guest has only one" },
	{ "--perf --image=a.elf@z", 2, "--image: 'z' is not a number" },
	{ "--perf --kernel=a.elf@-1", 2, "--kernel: '-1' is not a number" },
	{ "--perf --image=no", 1, "cannot open no: No such file" },
	{ "--perf --kernel=no@0x1000", 1, "cannot open no: No such file" },
	{ "--perf --image=x.pt", 1, "x.pt: not a readable ELF file" },
	{ "--perf --image=/", 1, "/: not a readable ELF file" },
	{ "--perf --kernel=x.pt", 1, "x.pt: not a readable ELF file" },
	{ "--perf --image=cut.elf", 1, "cut.elf: not a readable ELF file" },
	{ "--perf --image=arm.elf", 1, "arm.elf: is not for x86" },
	{ "--perf --image=object.elf", 1, "object.elf: neither a program nor a library" },
	{ "--perf --image=data.elf", 1, "data.elf: has no code" },
	{ "--perf --image=a.elf@4096", 1, "a.elf: has fixed addresses" },
	{ "--perf --image=pie.elf", 1, "pie.elf: is position independent" },
	{ "--perf --image=pie.elf@0x1001", 1, "pie.elf: 0x1001 is not the start of a page" },
	{ "--perf --image=a.elf --image=a.elf", 1, "/a.elf are both at 0x400000" },
	{ "--perf --image=a.elf --image=pie.elf@0x400000", 1, "/pie.elf are both at 0x400000" },
	{ "--perf --image=pie.elf@0x3ff000 --image=a.elf --image=pie.elf@0x400000", 1,
	  "/a.elf and " },
	{ "--perf --kernel=a.elf", 1, "a.elf: no symbol _text" },
};

/* An ELF file of two headers: a segment of one page. */
static void write_elf(const char *name, u16 type, u16 machine, u32 flags, size_t size)
{
	Elf64_Phdr segment = { .p_type = PT_LOAD,
			       .p_flags = flags,
			       .p_vaddr = 0x400000,
			       .p_filesz = 0x1000,
			       .p_memsz = 0x1000,
			       .p_align = 0x1000 };
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = type,
			      .e_machine = machine,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(segment),
			      .e_phnum = 1 };
	u8 bytes[0x1000] = { 0 };

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
	write_file(name, bytes, size);
}

/* Refused before anything is written. */
START_TEST(bad_code_is_refused)
{
	const struct run *r;
	struct stat st;

	write_mixed("x.pt");
	write_elf("a.elf", ET_EXEC, EM_X86_64, PF_R | PF_X, 0x1000);
	write_elf("cut.elf", ET_EXEC, EM_X86_64, PF_R | PF_X, 0x30);
	write_elf("arm.elf", ET_EXEC, EM_ARM, PF_R | PF_X, 0x1000);
	write_elf("object.elf", ET_REL, EM_X86_64, PF_R | PF_X, 0x1000);
	write_elf("data.elf", ET_EXEC, EM_X86_64, PF_R | PF_W, 0x1000);
	write_elf("pie.elf", ET_DYN, EM_X86_64, PF_R | PF_X, 0x1000);
	r = vmpt("split -o out %s x.pt", bad_code[_i].options);
	ck_assert_msg(r->code == bad_code[_i].code, "%s: exit code %d", bad_code[_i].options,
		      r->code);
	ck_has(r->err, bad_code[_i].says);
	ck_assert(stat("out", &st));
}
END_TEST

START_TEST(images_may_be_neighbours)
{
	write_mixed("x.pt");
	write_elf("a.elf", ET_EXEC, EM_X86_64, PF_R | PF_X, 0x1000);
	write_elf("pie.elf", ET_DYN, EM_X86_64, PF_R | PF_X, 0x1000);
	ck_assert_int_eq(vmpt("split --perf --image=pie.elf@0x3ff000 --image=a.elf"
			      " --image=pie.elf@0x401000 -o out x.pt")
				 ->code,
			 0);
}
END_TEST

/* The concealed stream alone, except for 8 bytes after its first PSB. */
START_TEST(a_perf_data_holds_the_stream)
{
	static const u8 pads[8];
	u8 *raw, *file, *at;
	size_t n, size;
	json_t *index;

	write_mixed("x.pt");
	write_elf("a@b.elf", ET_EXEC, EM_X86_64, PF_R | PF_X, 0x1000);
	ck_assert_int_eq(vmpt("split --conceal -o raw x.pt@3")->code, 0);
	ck_assert_int_eq(vmpt("split --perf --image=a@b.elf -o out x.pt@3")->code, 0);
	raw = test_read_file("raw/host.cpu3.pt", &n);
	file = test_read_file("out/host.cpu3.perf.data", &size);
	at = memmem(file, size, raw, 16); /* a PSB */
	ck_assert_ptr_nonnull(at);
	ck_assert_int_eq(memcmp(at + 16, pads, 8), 0);
	ck_assert_int_eq(memcmp(at + 24, raw + 16, n - 16), 0);
	/* AUXTRACE is the last record; its size and CPU */
	ck_assert_uint_eq(vmpt_load64(at - 40), (n + 8 + 7) / 8 * 8);
	ck_assert_uint_eq(vmpt_load32(at - 8), 3);
	free(raw);
	free(file);
	index = split_index("out");
	ck_assert(json_is_true(json_at(index, "perf")));
	ck_assert_str_eq(json_text(index, "index/0/file"), "host.cpu3.perf.data");
	ck_assert_uint_eq(json_u64(index, "index/0/out_offset"), 0);
	ck_assert_uint_eq(json_u64(index, "index/2/out_offset"),
			  json_u64(index, "index/0/out_size") + 8);
	json_decref(index);
	/* And vmpt reads it. */
	ck_assert_int_eq(vmpt("stat out/vmcs-b000.cpu3.perf.data")->code, 0);
	ck_has(vmpt("dump out/vmcs-b000.cpu3.perf.data")->out, "0x402000");
}
END_TEST

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
		{ "split -f -o . host.cpu4.pt", "./host.cpu4.pt" },
		{ "split -f -o out y.pt@0 out/host.cpu1.pt", "out/host.cpu1.pt" },
		{ "split -f -o out -", "out/host.pt" },
		/* From here on out/index.json is a trace. */
		{ "split -f -o out y.pt index.pt", "out/index.json" },
	};
	static const char *const files[] = { "x.pt",
					     "y.pt",
					     "host.cpu4.pt",
					     "out/host.pt",
					     "out/host.cpu1.pt",
					     "out/vmcs-a000.pt",
					     "out/vmcs-b000.pt" };
	size_t i, k, n[VMPT_ARRAY_SIZE(files)];
	u8 *bytes[VMPT_ARRAY_SIZE(files)];

	write_mixed("y.pt");
	write_mixed("x.pt");
	write_mixed("host.cpu4.pt");
	ck_assert_int_eq(vmpt("split -o out y.pt")->code, 0);
	write_mixed("out/host.cpu1.pt");
	ck_assert_int_eq(unlink("out/vmcs-b000.pt"), 0);
	ck_assert_int_eq(symlink("../x.pt", "out/vmcs-b000.pt"), 0);
	ck_assert_int_eq(link("out/host.pt", "hard.pt"), 0);
	ck_assert_int_eq(symlink("out/host.pt", "soft.pt"), 0);
	for (k = 0; k < VMPT_ARRAY_SIZE(files); k++)
		bytes[k] = test_read_file(files[k], &n[k]);
	vmpt_stdin = "out/host.pt";
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		const struct run *r;

		if (!strcmp(want[i].file, "out/index.json")) {
			write_mixed("out/index.json");
			ck_assert_int_eq(link("out/index.json", "index.pt"), 0);
		}
		r = vmpt("%s", want[i].line);
		ck_assert_msg(r->code == 1, "%s: exit code %d", want[i].line, r->code);
		ck_has(r->err, want[i].file);
		ck_has(r->err, "is an input");
		for (k = 0; k < VMPT_ARRAY_SIZE(files); k++)
			ck_file(files[k], bytes[k], n[k]);
	}
	vmpt_stdin = "/dev/null";
	for (k = 0; k < VMPT_ARRAY_SIZE(files); k++)
		free(bytes[k]);
}
END_TEST

START_TEST(old_streams_are_removed)
{
	static const char *const old[] = { "out/host.cpu1.pt", "out/vmcs-a000.cpu1.pt",
					   "out/vmcs-b000.cpu1.pt" };
	static const char *const kept[] = { "out/notes.pt",	 "out/host.pt.old",
					    "out/hostile.pt",	 "out/vmcs-xyz.pt",
					    "out/vmcs-.cpu1.pt", "out/host.cpu.pt",
					    "out/host.cpu9.pt",	 "out/vm-unknown.tid7.pt" };
	const struct run *r;
	size_t i;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o out x.pt x.pt")->code, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++)
		write_mixed(kept[i]);
	/* One of those kept is the input. */
	r = vmpt("split -f -o out out/host.cpu9.pt@0");
	ck_assert_msg(r->code == 0, "%s", r->err);
	ck_has(r->out, "out: removed 3 streams of an earlier split\n");
	for (i = 0; i < VMPT_ARRAY_SIZE(old); i++)
		ck_assert_msg(!exists(old[i]), "%s is still there", old[i]);
	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++)
		ck_assert_msg(exists(kept[i]), "%s is gone", kept[i]);
}
END_TEST

/* The file keeps its bytes, and nothing else is left in its folder but @others. */
static void ck_only(const char *dir, unsigned int others)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;
	const struct dirent *e;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	ck_assert_uint_eq(n, others);
}

/* G1: a file of an output's name that no split wrote: neither advised to be deleted, nor deleted.
 */
START_TEST(g1_force_deletes_only_what_the_index_lists)
{
	static const u8 own[] = "the user's own";
	const struct run *r;

	write_mixed("in.pt");
	ck_assert_int_eq(mkdir("own", 0755), 0);
	write_file("own/host.cpu3.pt", own, sizeof(own));
	write_file("own/host.cpu4.pt", own, sizeof(own));
	r = vmpt("split -o own in.pt@3");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "own/host.cpu3.pt: exists, and no earlier split wrote it");
	ck_assert_msg(!strstr(r->err, "--force"), "%s", r->err);
	ck_only("own", 2);
	ck_assert_int_eq(vmpt("split -f -o own in.pt@3")->code, 1);
	ck_file("own/host.cpu3.pt", own, sizeof(own));
	/* Listed once, but changed since. */
	ck_assert_int_eq(vmpt("split -o own in.pt@5")->code, 0);
	write_file("own/vmcs-a000.cpu5.pt", own, sizeof(own));
	ck_assert_int_eq(vmpt("split -f -o own in.pt@5")->code, 1);
	ck_assert_int_eq(vmpt("split -f -o own in.pt@6")->code, 0);
	ck_file("own/vmcs-a000.cpu5.pt", own, sizeof(own));
	ck_file("own/host.cpu3.pt", own, sizeof(own));
	ck_file("own/host.cpu4.pt", own, sizeof(own));
	ck_assert(!exists("own/host.cpu5.pt"));
	ck_only("own", 8);
}
END_TEST

/* An index that lists what is elsewhere, or is no stream. */
START_TEST(g1_an_index_cannot_name_any_file)
{
	static const char index[] = "{\n\"slices\": [],\n\"left_out_bytes\": 0,\n"
				    "\"outputs\": [{\"file\":\"../x.pt\",\"size\":99},"
				    "{\"file\":\"notes.txt\",\"size\":2},{\"file\":\".pt\"},"
				    "{\"file\":\"sub.pt\"}, 3],\n\"streams\": []\n}\n";

	write_mixed("x.pt");
	ck_assert_int_eq(mkdir("out", 0755), 0);
	ck_assert_int_eq(mkdir("out/sub.pt", 0755), 0);
	write_file("out/notes.txt", "a", 2);
	write_file("out/.pt", "a", 2);
	write_file("out/index.json", index, sizeof(index) - 1);
	ck_assert_int_eq(vmpt("split -f -o out x.pt")->code, 0);
	ck_assert(exists("x.pt") && exists("out/notes.txt") && exists("out/.pt") &&
		  exists("out/sub.pt"));
	/* Any other index.json is somebody's. */
	write_file("out/index.json", "{}\n", 3);
	ck_assert_int_eq(vmpt("split -f -o out x.pt")->code, 1);
	ck_file("out/index.json", (const u8 *)"{}\n", 3);
}
END_TEST

/* G2: inputs that options name. */
START_TEST(g2_inputs_of_options_are_not_overwritten)
{
	static const char record[] = "{\"vmcs\":\"0xa000\",\"vm\":\"a\",\"vcpu\":0}\n";
	static const char *const line[] = {
		"split --perf -f -o out --image=out/host.perf.data x.pt",
		"split --perf -f -o out --kernel=out/host.perf.data@4096 x.pt",
		"split -f -o out --side-record=out/host.pt x.pt",
	};
	size_t i;

	write_mixed("x.pt");
	ck_assert_int_eq(mkdir("out", 0755), 0);
	write_elf("out/host.perf.data", ET_EXEC, EM_X86_64, PF_R | PF_X, 0x1000);
	write_file("out/host.pt", record, sizeof(record) - 1);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s", line[i]);

		ck_assert_int_eq(r->code, 1);
		ck_file("out/host.pt", (const u8 *)record, sizeof(record) - 1);
		ck_only("out", 2);
	}
}
END_TEST

/* G7: what a link shows is not touched, and a FIFO does not stop the command. */
START_TEST(g7_neither_links_nor_fifos)
{
	static const u8 own[] = "elsewhere";
	const struct run *r;

	write_mixed("x.pt");
	write_file("target", own, sizeof(own));
	ck_assert_int_eq(vmpt("split -o out x.pt")->code, 0);
	ck_assert_int_eq(unlink("out/host.pt"), 0);
	ck_assert_int_eq(symlink("../target", "out/host.pt"), 0);
	r = vmpt("split -f -o out x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "out/host.pt: exists, and no earlier split wrote it");
	ck_file("target", own, sizeof(own));
	ck_assert_int_eq(unlink("out/host.pt"), 0);
	ck_assert_int_eq(mkfifo("out/host.pt", 0600), 0);
	ck_assert_int_eq(vmpt("split -f -o out x.pt")->code, 1);
	ck_assert_int_eq(unlink("out/host.pt"), 0);
	ck_assert_int_eq(unlink("out/index.json"), 0);
	ck_assert_int_eq(symlink("../target", "out/index.json"), 0);
	ck_assert_int_eq(vmpt("split -f -o out x.pt")->code, 1);
	ck_file("target", own, sizeof(own));
}
END_TEST

static unsigned int mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(name, &st), 0);
	return st.st_mode & 0777;
}

/* G6: guests' traces are readable by their owner only, unless --mode says otherwise. */
START_TEST(g6_outputs_are_the_owners)
{
	const mode_t mask = umask(022);
	json_t *index;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o out x.pt")->code, 0);
	/* Each member once. */
	index = json_load_file("out/index.json", JSON_REJECT_DUPLICATES, NULL);
	ck_assert_uint_eq(json_array_size(json_at(index, "outputs")), 4);
	json_decref(index);
	ck_assert_uint_eq(mode_of("out"), 0700);
	ck_assert_uint_eq(mode_of("out/host.pt"), 0600);
	ck_assert_uint_eq(mode_of("out/index.json"), 0600);
	ck_assert_int_eq(vmpt("split --mode=640 -o all x.pt")->code, 0);
	ck_assert_uint_eq(mode_of("all"), 0750);
	ck_assert_uint_eq(mode_of("all/host.pt"), 0640);
	ck_assert_uint_eq(mode_of("all/index.json"), 0640);
	ck_assert_uint_eq(mode_of("all/slices.gz"), 0640);
	umask(mask);
	ck_assert_int_eq(vmpt("split --mode=8 -o no x.pt")->code, 2);
	ck_assert_int_eq(vmpt("split --mode=044 -o no x.pt")->code, 2);
	ck_assert_int_eq(vmpt("split --mode=4755 -o no x.pt")->code, 2);
}
END_TEST

/* G10: what an interrupted split left is discarded, or completed if all of it was there. */
START_TEST(g10_an_interrupted_split_is_recognised)
{
	const struct run *r;
	size_t n;
	u8 *bytes;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o want x.pt")->code, 0);
	bytes = test_read_file("want/host.pt", &n);
	/* Before the index was written. */
	ck_assert_int_eq(mkdir("out", 0700), 0);
	ck_assert_int_eq(mkdir("out/.vmpt-split", 0700), 0);
	write_file("out/.vmpt-split/host.pt", "cut", 3);
	write_file("out/.vmpt-split/index.json.part", "cut", 3);
	ck_assert_int_eq(vmpt("split -o out x.pt")->code, 0);
	ck_file("out/host.pt", bytes, n);
	ck_only("out", 5);
	/* What it left may be wanted still. */
	ck_assert_int_eq(mkdir("out/.vmpt-split", 0700), 0);
	write_file("out/.vmpt-split/host.pt", bytes, n);
	r = vmpt("split -f -o out out/.vmpt-split/host.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "out/.vmpt-split is an input");
	ck_file("out/.vmpt-split/host.pt", bytes, n);
	/* While its files were moved: the index, then one stream had been. */
	ck_assert_int_eq(vmpt("split -o again x.pt@0")->code, 0);
	ck_assert_int_eq(vmpt("split -o new x.pt")->code, 0);
	ck_assert_int_eq(mkdir("again/.vmpt-split", 0700), 0);
	ck_assert_int_eq(rename("again/index.json", "again/.vmpt-split/old-index.json"), 0);
	ck_assert_int_eq(unlink("again/host.cpu0.pt"), 0);
	ck_assert_int_eq(rename("new/host.pt", "again/host.pt"), 0);
	ck_assert_int_eq(rename("new/vmcs-a000.pt", "again/.vmpt-split/vmcs-a000.pt"), 0);
	ck_assert_int_eq(rename("new/vmcs-b000.pt", "again/.vmpt-split/vmcs-b000.pt"), 0);
	ck_assert_int_eq(rename("new/slices.gz", "again/.vmpt-split/slices.gz"), 0);
	ck_assert_int_eq(rename("new/index.json", "again/.vmpt-split/index.json"), 0);
	r = vmpt("split -o again x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "again: completed an earlier split, which was interrupted");
	ck_has(r->err, "index.json: File exists");
	ck_file("again/host.pt", bytes, n);
	ck_only("again", 5);
	free(bytes);
}
END_TEST

/* B7: once, and only where perf makes stacks of a guest. */
START_TEST(b7_stacks_are_warned_of)
{
	static const u8 host[] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2,   0x82, /* PSB */
				   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x23, 0x06 };
	static const char warning[] = "perf's call stacks of a guest's kernel mix its tasks";
	const char *at;
	json_t *doc;

	write_mixed("x.pt");
	at = strstr(vmpt("split --perf -o out x.pt@0")->err, warning);
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_null(strstr(at + 1, warning));
	doc = split_index("out");
	ck_assert(strstr(json_text(doc, "warnings/0"), warning) != NULL);
	json_decref(doc);
	ck_has(vmpt("split -f --per-vm -o out x.pt@0")->err, warning);
	at = vmpt("split -f -o out x.pt@0")->err;
	ck_assert_msg(!strstr(at, warning), "%s", at);
	/* The host's alone. */
	write_file("host.pt", host, sizeof(host));
	at = vmpt("split -f --perf -o out host.pt@0")->err;
	ck_assert_msg(!strstr(at, warning), "%s", at);
}
END_TEST

/* B9: without the slices; what is there is still known, and makes way. */
START_TEST(b9_no_index)
{
	json_t *doc;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o out x.pt@0")->code, 0);
	ck_assert(exists("out/slices.gz"));
	doc = run_json(vmpt("split --json --no-index -f -o out x.pt@1"));
	ck_assert(json_is_null(json_at(doc, "slices_file")));
	ck_assert_uint_eq(json_u64(doc, "slices"), 4);
	ck_assert_uint_eq(json_u64(doc, "removed_streams"), 3);
	json_decref(doc);
	ck_only("out", 4);
	ck_assert_int_eq(vmpt("index out")->code, 1);
	ck_has(vmpt("index out")->err, "--no-index: there are no slices");
	ck_assert_int_eq(vmpt("split -f -o out x.pt@1")->code, 0);
	ck_only("out", 5);
	ck_assert_int_eq(vmpt("index out")->code, 0);
}
END_TEST

/* An index that is damaged in any byte, or cut, is reported; nothing else happens. */
START_TEST(b9_a_damaged_index)
{
	u8 *bytes, *bad;
	size_t n, i;

	write_mixed_times("x.pt", 50, 0);
	ck_assert_int_eq(vmpt("split -o out x.pt")->code, 0);
	bytes = test_read_file("out/slices.gz", &n);
	bad = malloc(n);
	for (i = 0; i < n; i += 7) {
		memcpy(bad, bytes, n);
		write_file("out/slices.gz", bad, i);
		ck_assert_int_eq(vmpt("index out")->code, 1);
		ck_has(vmpt("index out")->err, "slices.gz: ");
		bad[i] ^= 0x15;
		write_file("out/slices.gz", bad, n);
		/* gzip has fields that mean nothing here, as a time. */
		ck_assert_int_eq(vmpt("index out")->code, i > 3 && i < 10 ? 0 : 1);
	}
	ck_assert_int_eq(unlink("out/slices.gz"), 0);
	ck_has(vmpt("index out")->err, "slices.gz: No such file");
	write_file("out/slices.gz", bytes, n);
	write_file("out/index.json", "{\n\"format\": 2\n}\n", 17);
	ck_has(vmpt("index out")->err, "not the index of a vmpt split of this version");
	ck_assert_int_eq(vmpt("index nothing")->code, 1);
	ck_assert_int_eq(vmpt("index")->code, 2);
	ck_assert_int_eq(vmpt("index out out")->code, 2);
	free(bytes);
	free(bad);
}
END_TEST

/* Streams of either format make way for the other's. */
START_TEST(formats_replace_each_other)
{
	const char *said;

	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("split -o out x.pt@0")->code, 0);
	said = vmpt("split --perf -f -o out x.pt@0")->out;
	ck_has(said, "out: removed 3 streams of an earlier split\n");
	ck_assert(!exists("out/host.cpu0.pt") && exists("out/host.cpu0.perf.data"));
	/* What would be written to is an input. */
	ck_assert_int_eq(vmpt("split --perf -f -o out out/host.cpu0.perf.data")->code, 1);
	said = vmpt("split -f -o out x.pt@0")->out;
	ck_has(said, "out: removed 3 streams of an earlier split\n");
	ck_assert(exists("out/host.cpu0.pt") && !exists("out/host.cpu0.perf.data"));
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli split");
	TCase *tc = tcase_create("split");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, an_input_is_not_overwritten);
	tcase_add_test(tc, old_streams_are_removed);
	tcase_add_test(tc, g1_force_deletes_only_what_the_index_lists);
	tcase_add_test(tc, g1_an_index_cannot_name_any_file);
	tcase_add_test(tc, g2_inputs_of_options_are_not_overwritten);
	tcase_add_test(tc, g6_outputs_are_the_owners);
	tcase_add_test(tc, g7_neither_links_nor_fifos);
	tcase_add_test(tc, g10_an_interrupted_split_is_recognised);
	tcase_add_test(tc, unproven_bytes_are_a_loss);
	tcase_add_test(tc, too_many_vmcss_are_given);
	tcase_add_loop_test(tc, bad_code_is_refused, 0, VMPT_ARRAY_SIZE(bad_code));
	tcase_add_test(tc, images_may_be_neighbours);
	tcase_add_test(tc, a_perf_data_holds_the_stream);
	tcase_add_test(tc, b7_stacks_are_warned_of);
	tcase_add_test(tc, b9_no_index);
	tcase_add_test(tc, b9_a_damaged_index);
	tcase_add_test(tc, formats_replace_each_other);
	suite_add_tcase(suite, tc);
	return suite;
}
