// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt guest, and the names that vmpt insn has of a guest's memory: of a small Linux that is made.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/names/small-linux.h"
#include "tests/support/support.h"

static struct small_linux s;

static void setup(void)
{
	cli_setup();
	small_make(&s, &(struct small_options){ 0 });
	write_file("ram", s.m.ram, GUEST_RAM);
	write_mixed("x.pt");
}

static void teardown(void)
{
	small_free(&s);
	cli_clean();
}

/* ---- vmpt guest ---- */

START_TEST(text)
{
	const struct run *r = vmpt("guest --modules --maps ram");

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "kernel    Linux version 6.1-small\n"
		       "build id  00112233445566778899aabbccddeeff01234567\n"
		       "memory    ffffffff81000000-ffffffff81120000\n"
		       "KASLR     1200000\n");
	ck_has(r->out, "12 symbols, 1 modules, 5 threads\n");
	ck_has(r->out, "\n  2       0       –   2.000000        1  kthreadd");
	ck_has(r->out, "10.000000        3  app       /bin/app\n");
	ck_has(r->out, "\nmod     ffffffff81");
	ck_has(r->out, "\nprocess 10 app\n00400000-00402000 r-xp 00000000 /bin/app\n"
		       "00403000-00405000 rw-p 00000000 \n");
	ck_lacks(r->out, "app1");
	ck_has(vmpt("guest --threads ram")->out, "app1");
	ck_lacks(vmpt("guest --pid=1 ram")->out, "app ");
	ck_has(vmpt("guest --pid=7 ram")->err, "it has no process 7");
}
END_TEST

START_TEST(symbols)
{
	char want[128];

	ck_has(vmpt("guest --symbols ram")->out,
	       "\nffffffff81000100 t first\nffffffff810001c0 T second\n");
	snprintf(want, sizeof(want), "t mod_function\t[mod]\n");
	ck_has(vmpt("guest --symbols ram")->out, want);
}
END_TEST

/* Its schema is checked by test-json.py. */
START_TEST(json)
{
	json_t *doc = run_json(vmpt("guest --json --maps --symbols web:ram"));

	check_members("guest", doc,
		      "command='guest'|guests/0/vm='web'|guests/0/release='6.1-small'|"
		      "guests/0/kaslr_offset='0x1200000'|guests/0/symbol_count=12|"
		      "guests/0/symbols/2/name='first'|guests/0/modules/0/name='mod'|"
		      "guests/0/tasks/2/comm='app'|guests/0/tasks/2/tgid=10|"
		      "guests/0/tasks/2/maps/1/rights='rw-p'|"
		      "guests/0/tasks/1/kernel=true");
	ck_assert_uint_eq(json_array_size(json_at(doc, "guests/0/tasks/2/maps")), SMALL_MAPS);
	ck_assert_uint_eq(json_array_size(json_at(doc, "guests/0/missing")), 0);
	json_decref(doc);
	ck_has(vmpt("guest --csv ram")->out, "\nram,,11,10,1,app1,false,0x");
}
END_TEST

/* A recording's images, which are of its VMs. */
START_TEST(recording)
{
	ck_assert_int_eq(mkdir("rec", 0700) | mkdir("rec/images", 0700), 0);
	ck_assert_int_eq(link("x.pt", "rec/cpu0.pt"), 0);
	ck_has(vmpt("guest rec")->err, "no image of a guest's memory");
	ck_assert_int_eq(link("ram", "rec/images/web:ram"), 0);
	ck_has(vmpt("guest rec")->out, "Linux version 6.1-small");
}
END_TEST

START_TEST(missing)
{
	const struct run *r;
	json_t *doc;

	write_file("half", s.m.ram, GUEST_RAM / 2);
	r = vmpt("guest half");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "no Linux kernel is found");
	ck_assert_int_eq(vmpt("guest")->code, 2);
	ck_assert_int_eq(vmpt("guest none")->code, 1);
	small_free(&s);
	small_make(&s, &(struct small_options){ .no_types = true });
	write_file("ram", s.m.ram, GUEST_RAM);
	r = vmpt("guest ram");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "no BTF");
	ck_has(r->out, "11 symbols");
	doc = run_json(vmpt("guest --json ram"));
	check_members("missing", doc, "guests/0/missing/0='types'");
	json_decref(doc);
}
END_TEST

/* ---- a kernel's file ---- */

struct kernel_file {
	Elf64_Ehdr h;
	Elf64_Shdr section[5];
	Elf64_Sym symbol[3];
	char strings[32];
	struct {
		Elf64_Nhdr head;
		char name[4];
		u8 id[20];
	} note;
};

/* A function where the kernel of the image has _text, before KASLR moved it. */
static void write_kernel(const char *name, const char *id)
{
	struct kernel_file f = {
		.h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT },
		       .e_type = ET_EXEC,
		       .e_machine = EM_X86_64,
		       .e_version = EV_CURRENT,
		       .e_shoff = offsetof(struct kernel_file, section),
		       .e_ehsize = sizeof(Elf64_Ehdr),
		       .e_phentsize = sizeof(Elf64_Phdr),
		       .e_shentsize = sizeof(Elf64_Shdr),
		       .e_shnum = 5 },
		.section = { { 0 },
			     { .sh_type = SHT_NOBITS,
			       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			       .sh_size = 0x1000 },
			     { .sh_type = SHT_SYMTAB,
			       .sh_offset = offsetof(struct kernel_file, symbol),
			       .sh_size = sizeof(f.symbol),
			       .sh_link = 3,
			       .sh_entsize = sizeof(Elf64_Sym) },
			     { .sh_type = SHT_STRTAB,
			       .sh_offset = offsetof(struct kernel_file, strings),
			       .sh_size = sizeof(f.strings) },
			     { .sh_type = SHT_NOTE,
			       .sh_offset = offsetof(struct kernel_file, note),
			       .sh_size = sizeof(f.note),
			       .sh_addralign = 4 } },
		.symbol = { { 0 },
			    { .st_name = 1,
			      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			      .st_shndx = 1,
			      .st_value = SMALL_KERNEL - 0x1200000 + 0x800,
			      .st_size = 0x100 },
			    { .st_name = 7,
			      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			      .st_shndx = 1,
			      .st_value = SMALL_KERNEL - 0x1200000,
			      .st_size = 0x100 } },
		.strings = "\0_text\0linked_text",
		.note = { .head = { 4, 20, NT_GNU_BUILD_ID }, .name = "GNU" },
	};
	size_t i;

	for (i = 0; i < sizeof(f.note.id); i++)
		sscanf(id + 2 * i, "%2hhx", &f.note.id[i]);
	write_file(name, &f, sizeof(f));
}

#define ID    "00112233445566778899aabbccddeeff01234567"
#define OTHER "ff112233445566778899aabbccddeeff01234567"

START_TEST(other_kernel)
{
	const struct run *r;

	write_kernel("vmlinux", OTHER);
	r = vmpt("insn --code=ram --symbols=vmlinux x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "vmlinux: is of another kernel than the one in ram: its build id is " OTHER
		       ", not " ID);
	/* Of another VM. */
	ck_assert_int_eq(vmpt("insn --code=web:ram --symbols=db:vmlinux x.pt")->code, 0);
	write_kernel("vmlinux", ID);
	ck_assert_int_eq(vmpt("insn --code=ram --symbols=vmlinux x.pt")->code, 0);
}
END_TEST

/* The host runs at ffffffff81000000 after the VM entry. */
START_TEST(functions)
{
	const struct run *r;

	/* The flow has to find the page tables: CR3 1000 is the kernel's. */
	ck_assert_uint_lt(s.cr3, 0x100000);
	r = vmpt("insn --code=ram x.pt");
	ck_has(r->out, "PROCESS");
	ck_has(r->out, "FUNCTION");
	ck_has(r->out, "  _text+0x0  ");
	r = vmpt("insn --json --code=ram x.pt");
	ck_has(r->out, "\"function\":\"_text\",\"function_offset\":\"0x0\"");
	/* Its file, which KASLR has moved, has another name for it. */
	write_kernel("vmlinux", ID);
	r = vmpt("insn --code=ram --symbols=vmlinux x.pt");
	ck_has(r->out, "  linked_text+0x0  ");
	/* Without an image nothing says that there are names. */
	ck_lacks(vmpt("insn x.pt")->out, "FUNCTION");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("guest");
	TCase *tc = tcase_create("guest");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, text);
	tcase_add_test(tc, symbols);
	tcase_add_test(tc, json);
	tcase_add_test(tc, recording);
	tcase_add_test(tc, missing);
	tcase_add_test(tc, other_kernel);
	tcase_add_test(tc, functions);
	suite_add_tcase(suite, tc);
	return suite;
}
