// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt insn: counts and hashes of real traces, by page sets, dumps and raw memory of the same
 * pages; lists against the truth of the trace generator; what the manual shows.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/vmpt-image.h"
#include "tests/cli/cli-run.h"
#include "tests/cli/insn/insn-run.h"
#include "tests/decoder/image/dump-writer.h"
#include "tests/support/support.h"
#include "util/hash.h"

START_TEST(real_traces)
{
	size_t i;

	for (i = 0; i < REALS; i++) {
		if (!link_real(&reals[i]))
			return;
		check_total(&reals[i], "--code=x.addr");
	}
}
END_TEST

/* ---- the same pages in other forms ---- */

/* Memory from CR3's page on: tables from the level whose entries are by bits @top on, then the
 * pages. */
static u8 *make_memory(const struct real *r, unsigned int top, const u8 *addr, const u8 *dump,
		       size_t pages, size_t *size)
{
	const size_t room = 2 * pages + 10;
	u8 *memory = calloc(room, VMPT_PAGE);
	u64 next = 1;
	size_t i;

	ck_assert_ptr_nonnull(memory);
	for (i = 0; i < pages; i++) {
		u64 linear = vmpt_load64(addr + 8 * i), table = 0, entry;
		unsigned int shift;

		for (shift = top; shift >= 12; shift -= 9) {
			u8 *at = memory + table * VMPT_PAGE + 8 * (linear >> shift & 511);

			memcpy(&entry, at, 8);
			if (!entry) {
				entry = (r->cr3 + next++ * VMPT_PAGE) | 0x27;
				memcpy(at, &entry, 8);
			}
			table = ((entry & ~0xfffULL) - r->cr3) / VMPT_PAGE;
			ck_assert_uint_lt(table, room);
		}
		memcpy(memory + table * VMPT_PAGE, dump + i * VMPT_PAGE, VMPT_PAGE);
	}
	*size = next * VMPT_PAGE;
	return memory;
}

/* Raw memory, with nothing below the tables. */
static void write_ram(const struct real *r, const u8 *memory, size_t size)
{
	int fd;

	write_file("x.ram", "", 0);
	ck_assert_int_eq(truncate("x.ram", (off_t)r->cr3), 0);
	fd = open("x.ram", O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, memory, size), (ssize_t)size);
	close(fd);
}

static void check_forms(const struct real *r)
{
	struct dump notes = { 0 }, core;
	u8 *addr, *dump, *memory;
	struct dump_segment s;
	size_t n, size;
	char code[64];

	addr = test_read_file("x.addr", &n);
	dump = test_read_file("x.dump", &size);
	memory = make_memory(r, 39, addr, dump, n / 8, &size);
	/* A dump as QEMU writes it. */
	dump_qemu_note(&notes, 1ULL << 31, r->cr3, 1u << 5);
	s = (struct dump_segment){ 0, r->cr3, memory, size };
	dump_elf(&core, ET_CORE, EM_X86_64, false, &s, 1, &notes);
	write_file("x.core", core.data, core.size);
	check_total(r, "--code=x.core");
	snprintf(code, sizeof(code), "--code=%llx:x.core", (unsigned long long)r->vmcs);
	check_total(r, code);
	write_ram(r, memory, size);
	check_total(r, "--code=x.ram");
	check_total(r, "--code=x.ram --paging=4");
	free(memory);
	memory = make_memory(r, 48, addr, dump, n / 8, &size);
	write_ram(r, memory, size);
	check_total(r, "--code=x.ram --paging=5");
	free(core.data);
	free(notes.data);
	free(memory);
	free(addr);
	free(dump);
}

START_TEST(dumps_and_raw_memory)
{
	size_t i;

	for (i = 1; i < REALS; i++) {
		if (!link_real(&reals[i]))
			return;
		check_forms(&reals[i]);
	}
}
END_TEST

/* ---- the trace generator's truth ---- */

struct ran {
	u64 instructions, hash;
};

/* What is listed of an owner: its instructions, and FNV-1a over their IPs. */
static struct ran read_list(const char *code, const char *owner)
{
	const struct run *r = vmpt("insn -q %s --owner=%s s.pt", code, owner);
	struct ran ran = { 0, VMPT_FNV1A };
	const char *line = r->out;
	int words, i;

	ck_assert_msg(r->code == 0 || r->code == 3, "%d: %s", r->code, r->err);
	/* The IP is after the time, if there is one, and the owner. */
	words = strncmp(line, "TIME", 4) ? 1 : 2;
	for (line = strchr(line, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		const char *word = line;
		u64 ip;

		for (i = 0; i < words; i++) {
			word += strcspn(word, " ");
			word += strspn(word, " ");
		}
		ip = strtoull(word, NULL, 16);
		ran.instructions++;
		ran.hash = vmpt_fnv1a(ran.hash, &ip, 8);
	}
	return ran;
}

static u64 counted(json_t *doc, const char *owner)
{
	json_t *o;
	size_t i;
	u64 n = 0;

	json_array_foreach(json_at(doc, "spaces"), i,
			   o) if (!strcmp(owner, json_object_get(o, "vmcs")
							 ? json_text(o, "vmcs")
							 : json_text(o, "owner"))) n +=
		json_u64(o, "instructions");
	return n;
}

static void check_owner(const char *script, json_t *doc, const char *code, const char *owner,
			json_t *truth)
{
	struct ran ran = read_list(code, owner);

	ck_assert_msg(ran.instructions == json_u64(truth, "instructions"), "%s: %s: %llu", script,
		      owner, (unsigned long long)ran.instructions);
	ck_assert_msg(ran.hash == strtoull(json_text(truth, "hash"), NULL, 16), "%s: %s", script,
		      owner);
	ck_assert_uint_eq(counted(doc, owner), ran.instructions);
}

static void check_script(const char *script)
{
	char line[512], code[4096], vmcs[16][32] = { "" };
	json_t *doc;
	FILE *f;

	snprintf(line, sizeof(line),
		 "rm -rf code && \"$TRACEGEN\" -o s.pt --truth s.json --no-packets --code code "
		 "\"$SCRIPTS/%s.trace\"",
		 script);
	ck_assert_int_eq(system(line), 0);
	read_index(code, sizeof(code));
	doc = run_json(vmpt("insn --count --json -q %s s.pt", code));
	f = fopen("s.json", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		json_t *o = json_loads(line, 0, NULL);
		const char *owner;

		ck_assert_ptr_nonnull(o);
		/* Names of VMs are A to P. */
		if (!strcmp(json_text(o, "type"), "vm"))
			strcpy(vmcs[(json_text(o, "name")[0] - 'A') & 15], json_text(o, "vmcs"));
		if (!strcmp(json_text(o, "type"), "count")) {
			owner = json_text(o, "owner");
			if (strcmp(owner, "host") != 0)
				owner = vmcs[(owner[0] - 'A') & 15];
			if (json_u64(o, "instructions"))
				check_owner(script, doc, code, owner, o);
		}
		json_decref(o);
	}
	fclose(f);
	json_decref(doc);
}

/* Those whose owners all have their names in the trace, and that lose nothing. */
START_TEST(generated_traces)
{
	static const char *const scripts[] = {
		"clocks",	"events",	 "failed-entry",    "failed-entry-events",
		"group-orders", "host-only",	 "host-unbalanced", "mode-while-out",
		"pgd-then-psb", "psb-fup",	 "ret-compressed",  "ret-other-owner",
		"timing",	"vmptrld-alone", "vmptrld-enter",
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(scripts); i++)
		check_script(scripts[i]);
}
END_TEST

/* Text as a document shows it, with four spaces before each line that is not empty. */
static void indent(char *to, size_t room, const char *text)
{
	size_t n = strlen(to);

	while (*text) {
		int size = (int)strcspn(text, "\n");

		ck_assert_uint_lt(n + (size_t)size + 6, room);
		n += (size_t)sprintf(to + n, "%s%.*s\n", size ? "    " : "", size, text);
		text += size + (text[size] == '\n');
	}
}

/* docs/insn.md shows what is printed. */
START_TEST(documented_output)
{
	static const char *const files[] = { "guest-unzip.pt", "guest-unzip.addr",
					     "guest-unzip.dump", "guest-mruby.addr",
					     "guest-mruby.dump" };
	static const char prompt[] = "\n    $ vmpt ";
	char path[4096], command[256], shown[8192];
	const char *at;
	size_t i, size, commands = 0;
	char *doc;

	for (i = 0; i < VMPT_ARRAY_SIZE(files); i++) {
		const char *file = test_data(files[i]);

		if (!file)
			return;
		ck_assert_int_eq(symlink(file, files[i]), 0);
	}
	snprintf(path, sizeof(path), "%s/../../../docs/insn.md", getenv("SCRIPTS"));
	doc = (char *)test_read_file(path, &size);
	doc[size] = '\0'; /* there is room for it */
	for (at = doc; (at = strstr(at, prompt)); commands++) {
		const struct run *r;

		at += sizeof(prompt) - 1;
		snprintf(command, sizeof(command), "%.*s", (int)strcspn(at, "\n|"), at);
		if (at[strlen(command)] == '|')
			continue;
		at += strlen(command) + 1;
		r = vmpt("%s", command);
		*shown = '\0';
		indent(shown, sizeof(shown), r->err);
		indent(shown, sizeof(shown), r->out);
		ck_assert_msg(!strncmp(at, shown, strlen(shown)) && at[strlen(shown)] == '\n',
			      "%s prints:\n%s", command, shown);
		at--;
	}
	ck_assert_uint_eq(commands, 6);
	free(doc);
}
END_TEST

/*
 * A host at 0x1000, and a jump there: "psb exec:64 pip:1000 fup:1000 psbend", TIP (SDM 3 33.4.2).
 * The code that the recording lists comes before what images/ has: two instructions, and one more
 * up to the branch whose packet is missing.
 */
START_TEST(recorded_code_comes_first)
{
	static const u8 trace[] =
		"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
		"\x99\x01\x02\x43\x80\x00\x00\x00\x00\x00\x7d\x00\x10\x00\x00\x00\x00"
		"\x02\x23\x6d\x00\x10\x00\x00\x00\x00";
	static const u8 ran[] = { 0x90, 0xff, 0xe0 }, now[] = { 0xc3 };
	static const char head[] =
		"{\"format\":1,\"traces\":[{\"file\":\"x.pt\",\"cpu\":0}],"
		"\"code\":[{\"file\":\"ran.bin\",\"vm\":null,\"address\":\"0x1000\"}]}";
	json_t *doc;

	ck_assert_int_eq(mkdir("rec", 0700) | mkdir("rec/images", 0700), 0);
	write_file("rec/x.pt", trace, sizeof(trace) - 1);
	write_file("rec/ran.bin", ran, sizeof(ran));
	write_file("rec/images/now@0x1000", now, sizeof(now));
	write_file("rec/recording.json", head, sizeof(head) - 1);
	doc = run_json(vmpt("insn --count --json -q rec"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 3);
	ck_assert_uint_eq(json_u64(doc, "total/branches"), 1);
	json_decref(doc);
	write_file("rec/ran.bin", "", 0);
	ck_has(vmpt("insn --count rec")->err, "rec/ran.bin: is empty: it is not used");
	ck_assert_int_eq(unlink("rec/ran.bin"), 0);
	doc = run_json(vmpt("insn --count --json -q rec"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 1);
	json_decref(doc);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/insn");
	TCase *c = tcase_create("insn");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, real_traces);
	tcase_add_test(c, dumps_and_raw_memory);
	tcase_add_test(c, generated_traces);
	tcase_add_test(c, documented_output);
	tcase_add_test(c, recorded_code_comes_first);
	suite_add_tcase(suite, c);
	return suite;
}
