// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt insn: counts and hashes of real traces, by page sets, dumps and raw memory of the same
 * pages; lists against the truth of the trace generator; code that is missing or of something else.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/vmpt-image.h"
#include "tests/cli/cli-run.h"
#include "tests/decoder/image/dump-writer.h"
#include "tests/support/support.h"
#include "util/hash.h"

/* By libipt 2.0.5's instruction decoder, when it was tried first: with another program than that of
 * test-libipt.c. */
static const struct real {
	const char *name, *hash;
	u64 instructions, vmcs, cr3;
} reals[] = {
	{ "guest-two-vmcs", "bfd6c01afdb7358b", 9635736, 0x3b56ee000, 0x48c91000 },
	{ "guest-mruby", "f8b2dded398c0812", 6334131, 0x48d020000, 0x1628b000 },
	{ "guest-unzip", "ec6cd6452ff6ef34", 149576, 0x20ce5b000, 0x1ee4a000 },
};

/* The files of a real trace under plain names in the test's folder; false: they are missing. */
static bool link_real(const struct real *r)
{
	static const char *const ends[] = { "pt", "addr", "dump" };
	size_t i;

	for (i = 0; i < 3; i++) {
		char name[64], to[16];
		const char *path;

		snprintf(name, sizeof(name), "%s.%s", r->name, ends[i]);
		path = test_data(name);
		if (!path)
			return false;
		snprintf(to, sizeof(to), "x.%s", ends[i]);
		unlink(to);
		ck_assert_int_eq(symlink(path, to), 0);
	}
	return true;
}

static void check_total(const struct real *r, const char *code)
{
	json_t *doc = run_json(vmpt("insn --hash --json -q %s x.pt", code));

	ck_assert_uint_eq(json_u64(doc, "total/instructions"), r->instructions);
	ck_assert_str_eq(json_text(doc, "total/hash"), r->hash);
	ck_assert_str_eq(json_text(doc, "streams/0/hash"), r->hash);
	ck_assert_uint_eq(json_u64(doc, "spaces/0/instructions"), r->instructions);
	ck_assert_uint_eq(strtoull(json_text(doc, "spaces/0/vmcs"), NULL, 16), r->vmcs);
	ck_assert_uint_eq(strtoull(json_text(doc, "spaces/0/cr3"), NULL, 16), r->cr3);
	ck_assert_uint_eq(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_uint_eq(json_u64(doc, "total/gaps/impossible"), 0);
	json_decref(doc);
}

START_TEST(real_traces)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(reals); i++) {
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

	for (i = 1; i < VMPT_ARRAY_SIZE(reals); i++) {
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

/* Options for the code of all owners, each page for its owner. */
static void read_index(char *code, size_t room)
{
	char line[256], base[32], vmcs[32], file[64];
	FILE *f = fopen("code/index", "r");
	size_t n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		ck_assert_int_eq(sscanf(line, "%31s %*s %*s %31s %63s", base, vmcs, file), 3);
		n += (size_t)snprintf(code + n, room - n, "--code=%s:code/%s@%s ",
				      strcmp(vmcs, "-") ? vmcs : "host", file, base);
		ck_assert_uint_lt(n, room);
	}
	fclose(f);
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

/* ---- images that do not fit ---- */

START_TEST(without_images)
{
	const struct run *r;
	json_t *doc;

	write_mixed("m.pt");
	r = vmpt("insn --count --json m.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "no code is known"));
	doc = run_json(r);
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_gt(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_ptr_null(json_object_get(json_at(doc, "total"), "hash"));
	json_decref(doc);
}
END_TEST

/* Another program's pages: it is said, with the first place. */
START_TEST(the_wrong_image)
{
	const struct run *r;
	const char *path;
	char dump[64];

	if (!link_real(&reals[2]))
		return;
	path = test_data("guest-mruby.addr");
	ck_assert_ptr_nonnull(path);
	ck_assert_int_eq(symlink(path, "y.addr"), 0);
	snprintf(dump, sizeof(dump), "%s", "guest-mruby.dump");
	ck_assert_int_eq(symlink(test_data(dump), "y.dump"), 0);
	r = vmpt("insn --count --code=y.addr x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "the code does not fit the trace (gaps: "));
	ck_assert_ptr_nonnull(strstr(r->err, "another VM or another time"));
	ck_assert_ptr_nonnull(strstr(r->out, "code differs"));
}
END_TEST

/* Zeros decode to ADDs without end: many instructions, no branch, and nothing but endless gaps. */
START_TEST(code_without_branches)
{
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	write_file("z.bin", "", 0);
	ck_assert_int_eq(truncate("z.bin", 1 << 20), 0);
	r = vmpt("insn --count --code=z.bin@0x400000 x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "endless code");
	ck_lacks(r->out, "code differs");
	ck_has(r->err, "the code does not fit the trace (gaps: ");
}
END_TEST

/* The first half of the pages: the flow goes on after what is missing. */
START_TEST(half_an_image)
{
	u8 *addr, *dump;
	json_t *doc;
	size_t n, size;

	if (!link_real(&reals[2]))
		return;
	addr = test_read_file("x.addr", &n);
	dump = test_read_file("x.dump", &size);
	write_file("h.addr", addr, n / 16 * 8);
	write_file("h.dump", dump, n / 16 * VMPT_PAGE);
	doc = run_json(vmpt("insn --count --json --code=h.addr x.pt"));
	ck_assert_uint_gt(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_uint_gt(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_lt(json_u64(doc, "total/instructions"), reals[2].instructions);
	ck_assert_ptr_nonnull(strstr(json_text(doc, "warnings/0"), "the code is missing"));
	json_decref(doc);
	/* The other half as a second image: complete. */
	write_file("k.addr", addr + n / 16 * 8, n - n / 16 * 8);
	write_file("k.dump", dump + n / 16 * VMPT_PAGE, size - n / 16 * VMPT_PAGE);
	check_total(&reals[2], "--code=h.addr --code=k.addr");
	free(addr);
	free(dump);
}
END_TEST

/* A dump of another guest: no table at the trace's CR3. */
START_TEST(a_dump_without_the_tables)
{
	static u8 memory[16 * VMPT_PAGE];
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	write_file("o.ram", memory, sizeof(memory));
	r = vmpt("insn --count --code=o.ram x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "o.ram: no page tables at any CR3 of the trace"));
}
END_TEST

START_TEST(names_with_colons_and_ats)
{
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	ck_assert_int_eq(symlink("x.addr", "a:b@c.addr"), 0);
	ck_assert_int_eq(symlink("x.dump", "a:b@c.dump"), 0);
	check_total(&reals[2], "--code=a:b@c.addr");
	check_total(&reals[2], "--code=./a:b@c.addr");
	check_total(&reals[2], "--code=20ce5b000:x.addr");
	r = vmpt("insn --count --code=web:x.addr x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "x.addr: no VM of the trace has the name web"));
	r = vmpt("insn --count --code=host:x.addr x.pt");
	ck_has(r->err, "x.addr: the trace has no host: it is not used");
	r = vmpt("insn --count --code=12345000:x.addr x.pt");
	ck_has(r->err, "x.addr: the trace has no VM 12345000: it is not used");
	r = vmpt("insn --count --code=x.addr --code=20ce5b000:x.addr --cr3=0x2000 x.pt");
	ck_has(r->err, "x.addr: it was not needed");
	ck_lacks(r->err, "the trace has no");
	r = vmpt("insn --count --code=none.addr x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_assert_ptr_nonnull(strstr(r->err, "none.addr: cannot open"));
	/* One page of it. */
	ck_assert_int_eq(system("head -c 5000 x.dump >b.bin"), 0);
	r = vmpt("insn --count --code=b.bin@0x40zz x.pt");
	ck_assert_int_eq(r->code, 2);
}
END_TEST

/* Lines of a list after its title, and how many have @word. */
static size_t lines_with(const char *text, const char *word, size_t *lines)
{
	const char *at = strchr(text, '\n'), *end;
	size_t with = 0;

	for (*lines = 0; at && at[1]; at = end, ++*lines) {
		end = strchr(at + 1, '\n');
		with += !!memmem(at, (size_t)((end ? end : at + strlen(at)) - at), word,
				 strlen(word));
	}
	return with;
}

/* What is no image, or could not be where its ADDR says. */
START_TEST(wrong_images)
{
	static const struct {
		const char *code, *err;
	} wrong[] = {
		{ "/", "/: is a directory, not a memory image" },
		{ "/dev/null", "/dev/null: is empty" },
		{ "none.bin@0x1000", "none.bin: is empty" },
		{ "x.addr@0x1000", "x.addr: it has its own addresses: only raw bytes and ELF "
				   "programs take an address" },
		{ "x.core@0x1000", "x.core: it has its own addresses" },
		{ "x.ranges@0x1000", "x.ranges: it has its own addresses" },
	};
	static const u8 page[VMPT_PAGE];
	const struct dump_segment s = { 0, 0, page, sizeof(page) };
	struct dump core;
	size_t i;

	if (!link_real(&reals[2]))
		return;
	dump_elf(&core, ET_CORE, EM_X86_64, false, &s, 1, NULL);
	write_file("x.core", core.data, core.size);
	free(core.data);
	write_file("x.ram", page, sizeof(page));
	write_file("x.ranges", "0 4096 0\n", 9);
	write_file("none.bin", "", 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(wrong); i++) {
		const struct run *r = vmpt("insn --count --code=%s x.pt", wrong[i].code);

		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, wrong[i].err);
	}
	ck_assert_int_eq(vmpt("insn --count --code=x.ranges x.pt")->code, 0);
	/* The first page of this one is that of an ELF program. */
	ck_has(vmpt("insn --count --code=x.dump x.pt")->err,
	       "x.dump: is it a set of pages? There is a list of their addresses: give x.addr");
	ck_lacks(vmpt("insn --count --code=x.addr x.pt")->err, "set of pages");
}
END_TEST

START_TEST(lists_are_what_is_counted)
{
	const struct run *r;
	size_t lines = 0;
	char *at;

	if (!link_real(&reals[2]))
		return;
	r = vmpt("insn -q --code=x.addr x.pt");
	for (at = r->out; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_uint_eq(lines, reals[2].instructions + 1);
	r = vmpt("insn -q --code=x.addr --head=3 x.pt");
	ck_assert_str_eq(r->out,
			 "VM                          IP  BYTES             INSTRUCTION\n"
			 "20ce5b000               41ac60  4157              push %r15\n"
			 "20ce5b000               41ac62  4156              push %r14\n"
			 "20ce5b000               41ac64  4189ff            mov %edi, %r15d\n");
}
END_TEST

/* Without code there are gaps alone: of these, too, --head lists N. */
START_TEST(gaps_are_rows)
{
	const struct run *r;
	json_t *lines;
	size_t n;

	if (!link_real(&reals[2]))
		return;
	r = vmpt("insn --head=3 x.pt");
	lines_with(r->out, "", &n);
	ck_has(r->err, "no code is known");
	ck_assert_uint_eq(n, 3);
	lines = run_packets(vmpt("insn --json -q --head=3 x.pt"));
	ck_assert_uint_eq(json_array_size(lines), 3);
	ck_assert_str_eq(json_text(json_array_get(lines, 0), "gap"), "no_code");
	json_decref(lines);
}
END_TEST

/* The list as JSON lines: the same instructions; gaps are among them. */
START_TEST(lists_as_json)
{
	const struct run *r;
	json_t *lines, *o;
	const char *line;
	u64 gaps = 0;
	size_t i;

	if (!link_real(&reals[2]))
		return;
	lines = run_packets(vmpt("insn --json -q --head=2000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_array_size(lines), 2000);
	r = vmpt("insn -q --head=2000 --code=x.addr x.pt");
	line = strchr(r->out, '\n') + 1;
	json_array_foreach(lines, i, o)
	{
		unsigned long long ip;

		ck_assert_int_eq(sscanf(line, "%*s %llx", &ip), 1);
		ck_assert_uint_eq(strtoull(json_text(o, "ip"), NULL, 16), ip);
		line = strchr(line, '\n') + 1;
	}
	o = json_array_get(lines, 2);
	ck_assert_str_eq(json_text(o, "ip"), "0x41ac64");
	ck_assert_str_eq(json_text(o, "bytes"), "4189ff");
	ck_assert_str_eq(json_text(o, "text"), "mov %edi, %r15d");
	ck_assert_str_eq(json_text(o, "vmcs"), "0x20ce5b000");
	ck_assert_str_eq(json_text(o, "cr3"), "0x1ee4a000");
	json_decref(lines);
	lines = run_packets(vmpt("insn --json -q x.pt"));
	json_array_foreach(lines, i, o) gaps += !strcmp(json_text(o, "gap"), "no_code");
	ck_assert_uint_gt(gaps, 0);
	json_decref(lines);
}
END_TEST

/* On a terminal a line shows how far it is, as that of other long commands does; -q: none. */
START_TEST(progress)
{
	if (!link_real(&reals[0]))
		return;
	setenv("VMPT_PROGRESS_AFTER", "0", 1);
	ck_has(vmpt_terminal_err("insn --count --code=x.addr x.pt")->out, " of 2.1 MB  ");
	ck_lacks(vmpt_terminal_err("insn -q --count --code=x.addr x.pt")->out, " MB");
	ck_lacks(vmpt_terminal("insn --head=90000 --code=x.addr x.pt")->out, " MB");
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

#define NOTHING "nothing in the trace fits the filters"

/* What fits the filters is found by the flow, in lists and counts. */
START_TEST(filters_that_match)
{
	if (!link_real(&reals[2]))
		return;
	ck_lacks(vmpt("insn --count --vm=20ce5b000 --code=x.addr x.pt")->err, NOTHING);
	ck_lacks(vmpt("insn --head=3 --cr3=0x1ee4a000 --code=x.addr x.pt")->err, NOTHING);
	ck_has(vmpt("insn --count --vm=20ce5c000 --code=x.addr x.pt")->err, NOTHING);
	ck_has(vmpt("insn --head=3 --cr3=0x2000 --code=x.addr x.pt")->err, NOTHING);
}
END_TEST

START_TEST(filters)
{
	const struct run *r;
	json_t *doc;

	if (!link_real(&reals[2]))
		return;
	doc = run_json(vmpt("insn --count --json -q --cr3=0x1ee4a000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), reals[2].instructions);
	json_decref(doc);
	doc = run_json(vmpt("insn --count --json -q --cr3=0x2000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_eq(json_array_size(json_at(doc, "spaces")), 0);
	json_decref(doc);
	r = vmpt("insn --hash --cr3=0x2000 --code=x.addr x.pt");
	ck_assert_int_eq(r->code, 2);
	r = vmpt("insn --count --head=3 --code=x.addr x.pt");
	ck_assert_int_eq(r->code, 2);
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
	ck_assert_uint_eq(commands, 4);
	free(doc);
}
END_TEST

#define RATES "--tsc-ratio=84 --mtc-freq=3"

/* What is listed by VM, CPU and time are the instructions of that VM, CPU and time, each once. */
START_TEST(lists_are_filtered)
{
	static const char record[] = "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0x12345000\"}\n";
	char code[4096], when[32];
	const struct run *r;
	size_t all, some, n, m;

	ck_assert_int_eq(system("\"$TRACEGEN\" -o s.pt --no-packets --code code "
				"\"$SCRIPTS/timing.trace\""),
			 0);
	read_index(code, sizeof(code));
	write_file("v.jsonl", record, strlen(record));
	r = vmpt("insn -q " RATES " --side-record=v.jsonl %s s.pt@3", code);
	n = lines_with(r->out, " web vcpu 0 ", &all);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, all);
	ck_assert_int_eq(sscanf(strchr(r->out + r->out_size / 2, '\n') + 1, "%31s", when), 1);
	r = vmpt("insn -q " RATES " --side-record=v.jsonl --vm=web %s s.pt@3", code);
	ck_assert_uint_eq(lines_with(r->out, " web vcpu 0 ", &some), n);
	ck_assert_uint_eq(some, n);
	r = vmpt("insn -q " RATES " --cpu=3 %s s.pt@3", code);
	lines_with(r->out, "", &some);
	ck_assert_uint_eq(some, all);
	r = vmpt("insn -q " RATES " --cpu=2 %s s.pt@3", code);
	ck_assert_int_ne(r->code, 0);
	r = vmpt("insn -q " RATES " --to=%s %s s.pt@3", when, code);
	lines_with(r->out, "", &some);
	r = vmpt("insn -q " RATES " --from=%s %s s.pt@3", when, code);
	lines_with(r->out, "", &m);
	ck_assert_uint_gt(some, 0);
	ck_assert_uint_gt(m, 0);
	ck_assert_uint_eq(some + m, all);
}
END_TEST

/* With times: halves of a trace add up to all of it. */
START_TEST(halves_by_time)
{
	char code[4096], when[32];
	const struct run *r;
	u64 all, sum = 0;
	json_t *doc;
	int i;

	ck_assert_int_eq(system("\"$TRACEGEN\" -o s.pt --no-packets --code code "
				"\"$SCRIPTS/timing.trace\""),
			 0);
	read_index(code, sizeof(code));
	doc = run_json(vmpt("insn --count --json -q %s s.pt", code));
	all = json_u64(doc, "total/instructions");
	json_decref(doc);
	/* The time in the list's middle. */
	r = vmpt("insn -q " RATES " %s s.pt", code);
	ck_assert_int_eq(sscanf(strchr(r->out + r->out_size / 2, '\n') + 1, "%31s", when), 1);
	for (i = 0; i < 2; i++) {
		doc = run_json(vmpt("insn --count --json -q " RATES " --%s=%s %s s.pt",
				    i ? "from" : "to", when, code));
		ck_assert_uint_lt(json_u64(doc, "total/instructions"), all);
		sum += json_u64(doc, "total/instructions");
		json_decref(doc);
	}
	ck_assert_uint_eq(sum, all);
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
	tcase_add_test(c, without_images);
	tcase_add_test(c, the_wrong_image);
	tcase_add_test(c, code_without_branches);
	tcase_add_test(c, half_an_image);
	tcase_add_test(c, a_dump_without_the_tables);
	tcase_add_test(c, names_with_colons_and_ats);
	tcase_add_test(c, wrong_images);
	tcase_add_test(c, lists_are_what_is_counted);
	tcase_add_test(c, gaps_are_rows);
	tcase_add_test(c, lists_as_json);
	tcase_add_test(c, progress);
	tcase_add_test(c, filters_that_match);
	tcase_add_test(c, filters);
	tcase_add_test(c, documented_output);
	tcase_add_test(c, lists_are_filtered);
	tcase_add_test(c, halves_by_time);
	tcase_add_test(c, recorded_code_comes_first);
	suite_add_tcase(suite, c);
	return suite;
}
