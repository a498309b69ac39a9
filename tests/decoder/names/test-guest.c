// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/names/: a kernel that was made is read as it was made, in each form that kernels have; a
 * damaged one does no harm. tests/guests/test-image.sh compares with guests that run.
 */
#include <stdlib.h>

#include "decoder/image/image.h"
#include "tests/decoder/names/small-linux.h"
#include "tests/support/support.h"

static struct small_linux s;
static struct vmpt_image *image;
static struct vmpt_guest *guest;
static struct vmpt_guest_kernel kernel;
static struct vmpt_diag diag;

/* Nobody says how memory is translated. */
static int open_guest(void)
{
	const struct vmpt_image_options o = { .kind = VMPT_IMAGE_RAM };
	const struct vmpt_file file = { s.m.ram, GUEST_RAM };
	int ret;

	ck_assert_int_eq(vmpt_image_open_memory(&image, &file, 1, &o, NULL), 0);
	ret = vmpt_guest_open(&guest, image, &diag);
	if (ret)
		guest = NULL;
	else
		vmpt_guest_kernel(guest, &kernel);
	return ret;
}

static void close_guest(void)
{
	vmpt_guest_close(guest);
	vmpt_image_close(image);
	guest = NULL;
	image = NULL;
}

static void make(const struct small_options *o)
{
	small_make(&s, o);
	ck_assert_int_eq(open_guest(), 0);
}

static void teardown(void)
{
	close_guest();
	small_free(&s);
}

/* ---- what was made ---- */

static void check_symbols(void)
{
	struct vmpt_guest_symbol symbol;
	const char *name;
	u64 address;
	size_t i;

	for (i = 0; (name = small_symbol(&s, i, &address)) != NULL; i++) {
		ck_assert(vmpt_guest_symbol(guest, (u32)i, &symbol));
		ck_assert_str_eq(symbol.name, name + 1);
		ck_assert_int_eq(symbol.type, *name);
		ck_assert_uint_eq(symbol.address, address);
		ck_assert_ptr_null(symbol.module);
	}
	/* And that of the module. */
	ck_assert_uint_eq(kernel.symbols, i + 1);
	ck_assert(vmpt_guest_symbol(guest, (u32)i, &symbol));
	ck_assert_str_eq(symbol.name, "mod_function");
	ck_assert_str_eq(symbol.module, "mod");
	ck_assert_int_eq(symbol.type, 't');
	ck_assert(!vmpt_guest_symbol(guest, (u32)i + 1, &symbol));
}

static void check_lookups(void)
{
	struct vmpt_guest_symbol symbol;
	const struct vmpt_guest_module *m = vmpt_guest_module(guest, 0);

	ck_assert(vmpt_guest_symbol_at(guest, SMALL_KERNEL, &symbol));
	ck_assert_str_eq(symbol.name, "_text");
	ck_assert(vmpt_guest_symbol_at(guest, SMALL_KERNEL + 0x1bf, &symbol));
	ck_assert_str_eq(symbol.name, "first");
	ck_assert_uint_eq(symbol.size, 0xc0);
	ck_assert(!vmpt_guest_symbol_at(guest, SMALL_KERNEL - 1, &symbol));
	ck_assert(!vmpt_guest_symbol_at(guest, 0x1234, &symbol));
	ck_assert(!vmpt_guest_symbol_at(guest, SMALL_KERNEL + 0x120000, &symbol));
	ck_assert_ptr_nonnull(m);
	ck_assert_str_eq(m->name, "mod");
	ck_assert_uint_eq(m->size, 0x100);
	ck_assert_uint_eq(m->text_size, s.o.parts ? 0x100 : 0x80);
	ck_assert(vmpt_guest_symbol_at(guest, m->text + 0xff, &symbol));
	ck_assert_str_eq(symbol.name, "mod_function");
	ck_assert_uint_eq(symbol.size, 0xf0);
	ck_assert(!vmpt_guest_symbol_at(guest, m->text + 0xf, &symbol));
	ck_assert(!vmpt_guest_symbol_at(guest, m->text + 0x100, &symbol));
}

static void check_tasks(void)
{
	static const struct {
		u32 pid, tgid, parent;
		const char *comm;
		int mm;
	} want[] = { { 1, 1, 0, "init", 0 },
		     { 2, 2, 0, "kthreadd", -1 },
		     { 10, 10, 1, "app", 1 },
		     { 11, 10, 1, "app1", 1 },
		     { 12, 10, 1, "app2", 1 } };
	u32 i;

	ck_assert_uint_eq(kernel.tasks, VMPT_ARRAY_SIZE(want));
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		const struct vmpt_guest_task *t = vmpt_guest_task(guest, i);
		u64 cr3 = want[i].mm < 0 ? 0 : s.pgd[want[i].mm] - SMALL_KERNEL + SMALL_PHYSICAL;

		ck_assert_uint_eq(t->pid, want[i].pid);
		ck_assert_uint_eq(t->tgid, want[i].tgid);
		ck_assert_uint_eq(t->parent, want[i].parent);
		ck_assert_str_eq(t->comm, want[i].comm);
		ck_assert_uint_eq(t->cr3, cr3);
		ck_assert_uint_eq(t->start, 1000000000ULL * want[i].pid);
		ck_assert_int_eq(t->kernel, want[i].mm < 0);
		if (want[i].mm >= 0)
			ck_assert_str_eq(t->program, "/bin/app");
	}
	ck_assert_ptr_null(vmpt_guest_task(guest, i));
}

static void check_spaces(void)
{
	const struct vmpt_guest_task *app = vmpt_guest_task(guest, 2);

	ck_assert_ptr_eq(vmpt_guest_task_at(guest, app->cr3), app);
	/* PCID, and the user's half with page table isolation */
	ck_assert_ptr_eq(vmpt_guest_task_at(guest, app->cr3 | 0xabc), app);
	ck_assert_ptr_eq(vmpt_guest_task_at(guest, app->cr3 | 0x1000), app);
	ck_assert_ptr_null(vmpt_guest_task_at(guest, app->cr3 | 0x2000));
	ck_assert_ptr_null(vmpt_guest_task_at(guest, s.cr3));
	ck_assert_ptr_null(vmpt_guest_task_at(guest, 0));
}

static void check_maps(void)
{
	const struct vmpt_guest_map *map, *again;
	size_t n, i;
	bool cut;

	ck_assert_int_eq(vmpt_guest_maps(guest, vmpt_guest_task(guest, 3), &map, &n, &cut), 0);
	ck_assert(!cut);
	ck_assert_uint_eq(n, SMALL_MAPS);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(map[i].start, SMALL_USER + i * 0x3000);
		ck_assert_uint_eq(map[i].end, map[i].start + 0x2000);
		ck_assert(map[i].read && !map[i].shared);
		ck_assert_int_eq(map[i].write, i % 2);
		ck_assert_int_eq(map[i].exec, !(i % 2));
		ck_assert_uint_eq(map[i].offset, i % 2 ? 0 : i * VMPT_PAGE);
		if (i % 2)
			ck_assert_ptr_null(map[i].file);
		else
			ck_assert_str_eq(map[i].file, "/bin/app");
	}
	ck_assert_int_eq(vmpt_guest_maps(guest, vmpt_guest_task(guest, 2), &again, &n, &cut), 0);
	ck_assert_ptr_eq(again, map);
	ck_assert_int_eq(vmpt_guest_maps(guest, vmpt_guest_task(guest, 1), &map, &n, &cut), 0);
	ck_assert_uint_eq(n, 0);
}

START_TEST(forms)
{
	const struct small_options o = { .form = (enum small_form)(_i / 2),
					 .note = _i % 2,
					 .five = _i % 2,
					 .list = _i == 1,
					 .parts = _i > 3 };

	make(&o);
	ck_assert_uint_eq(kernel.lacks, 0);
	ck_assert_str_eq(kernel.release, "6.1-small");
	ck_assert_str_eq(kernel.banner, "Linux version 6.1-small");
	ck_assert_uint_eq(kernel.build_id_size, 20);
	ck_assert_uint_eq(kernel.build_id[1], 0x11);
	ck_assert_uint_eq(kernel.offset, 0x1200000);
	ck_assert_uint_eq(kernel.cr3, s.cr3);
	ck_assert_uint_eq(kernel.start, SMALL_KERNEL);
	ck_assert_uint_eq(kernel.end, SMALL_KERNEL + 0x120000);
	check_symbols();
	check_lookups();
	check_tasks();
	check_spaces();
	check_maps();
}
END_TEST

/* ---- what is missing ---- */

START_TEST(no_types)
{
	make(&(struct small_options){ .no_types = true });
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_TYPES_MISSING | VMPT_GUEST_TASKS_MISSING);
	ck_assert_uint_gt(kernel.symbols, 0);
	ck_assert_uint_eq(kernel.tasks, 0);
}
END_TEST

START_TEST(no_symbols)
{
	make(&(struct small_options){ .no_symbols = true });
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_SYMBOLS_MISSING);
	ck_assert_str_eq(kernel.release, "6.1-small");
	ck_assert_uint_eq(kernel.symbols, 0);
}
END_TEST

/* It ends where it is damaged. */
START_TEST(cut_symbols)
{
	u8 *name;

	small_make(&s, &(struct small_options){ .form = SMALL_RELATIVE });
	name = memmem(s.m.ram + SMALL_PHYSICAL, SMALL_SIZE,
		      "\x08"
		      "Dmodules",
		      9);
	ck_assert_ptr_nonnull(name);
	*name = 0;
	ck_assert_int_eq(open_guest(), 0);
	/* What the rest leads to is missing as well. */
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_SYMBOLS_CUT | VMPT_GUEST_TYPES_MISSING |
						VMPT_GUEST_TASKS_MISSING);
	ck_assert_uint_eq(kernel.symbols, 6);
	ck_assert_str_eq(kernel.banner, "Linux version 6.1-small");
}
END_TEST

/* kallsyms of another kernel: _stext would be elsewhere. */
START_TEST(other_symbols)
{
	char *at;

	small_make(&s, &(struct small_options){ 0 });
	at = strstr((char *)s.m.ram + s.text, "SYMBOL(_stext)=ffffffff81000000");
	ck_assert_ptr_nonnull(at);
	at[strlen("SYMBOL(_stext)=ffffffff81000")] = '1';
	ck_assert_int_eq(open_guest(), 0);
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_SYMBOLS_MISSING);
}
END_TEST

START_TEST(no_kernel)
{
	small_make(&s, &(struct small_options){ 0 });
	s.m.ram[s.text]++;
	ck_assert_int_eq(open_guest(), -VMPT_E_FORMAT);
	ck_has(diag.text, "no Linux kernel is found");
}
END_TEST

START_TEST(no_tables)
{
	small_make(&s, &(struct small_options){ 0 });
	memset(s.m.ram + s.cr3, 0, VMPT_PAGE);
	ck_assert_int_eq(open_guest(), -VMPT_E_FORMAT);
	ck_has(diag.text, "not its page tables");
}
END_TEST

START_TEST(other_version)
{
	small_make(&s, &(struct small_options){ 0 });
	ck_assert_int_eq(vmpt_guest_open_abi(&guest, NULL, NULL, VMPT_GUEST_ABI + 1),
			 -VMPT_E_VERSION);
}
END_TEST

/* ---- lists that lead astray ---- */

/* To nowhere: the rest comes from the other end. */
START_TEST(broken_list)
{
	small_make(&s, &(struct small_options){ 0 });
	small_put64(&s, s.task[0] + small_member("task_struct", "tasks"), 0xdead000000000100);
	ck_assert_int_eq(open_guest(), 0);
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_TASKS_CUT);
	check_tasks();
}
END_TEST

/* Into itself. */
START_TEST(circle)
{
	small_make(&s, &(struct small_options){ 0 });
	small_put64(&s, s.task[1] + small_member("task_struct", "tasks"),
		    s.task[0] + small_member("task_struct", "tasks"));
	ck_assert_int_eq(open_guest(), 0);
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_TASKS_CUT);
	check_tasks();
}
END_TEST

/* A leaf that is the root again. */
START_TEST(circle_of_areas)
{
	const struct vmpt_guest_map *map;
	u64 root, slot;
	size_t n;
	bool cut;

	small_make(&s, &(struct small_options){ 0 });
	memcpy(&root, small_at(&s, s.mm[1] + small_member("mm_struct", "mm_mt") + 8), 8);
	slot = (root & ~0xffULL) + 80 + 8;
	small_put64(&s, slot, root);
	ck_assert_int_eq(open_guest(), 0);
	ck_assert_int_eq(vmpt_guest_maps(guest, vmpt_guest_task(guest, 2), &map, &n, &cut), 0);
	ck_assert(cut);
	ck_assert_uint_eq(n, SMALL_MAPS - 7);
}
END_TEST

/* ---- a guest that runs ---- */

static const u8 *ram_page(void *opaque, u64 physical)
{
	(void)opaque;
	return physical < GUEST_RAM ? s.m.ram + physical : NULL;
}

static void open_running(void)
{
	const struct vmpt_image_source source = { .memory = ram_page };

	small_make(&s, &(struct small_options){ 0 });
	ck_assert_int_eq(vmpt_image_make(&image, &source, NULL), 0);
	ck_assert_int_eq(vmpt_guest_open(&guest, image, &diag), 0);
	vmpt_guest_kernel(guest, &kernel);
}

static void rename_task(u64 task, const char *name)
{
	memcpy(small_at(&s, task + small_member("task_struct", "comm")), name, strlen(name) + 1);
}

/* What is written after it was read is read again when it is asked for, not before. */
START_TEST(changes)
{
	struct vmpt_guest_task was, t;
	u32 i;

	open_running();
	ck_assert_uint_eq(kernel.lacks, 0);
	check_symbols();
	check_tasks();
	for (i = 0; !vmpt_guest_task(guest, i)->mm; i++)
		;
	was = *vmpt_guest_task(guest, i);
	ck_assert(vmpt_guest_find_task(guest, was.cr3, &t));
	ck_assert_uint_eq(t.address, was.address);
	ck_assert_str_eq(t.program, was.program);
	/* With page table isolation, in its own code. */
	ck_assert(vmpt_guest_find_task(guest, was.cr3 | 0x1234, &t) ||
		  vmpt_guest_task_at(guest, was.cr3 | 0x1000) == NULL);
	ck_assert(!vmpt_guest_find_task(guest, 0x7000, &t));
	ck_assert(!vmpt_guest_find_task(guest, 0, &t));

	rename_task(was.address, "renamed");
	ck_assert_str_eq(vmpt_guest_task(guest, i)->comm, was.comm);
	ck_assert(vmpt_guest_task_now(guest, was.address, &t));
	ck_assert_str_eq(t.comm, "renamed");
	ck_assert_uint_eq(t.cr3, was.cr3);
	ck_assert_uint_eq(t.start, was.start);
	ck_assert_int_eq(vmpt_guest_update(guest), 0);
	ck_assert_str_eq(vmpt_guest_task(guest, i)->comm, "renamed");

	/* It exits. */
	small_put64(&s, was.address + small_member("task_struct", "mm"), 0);
	ck_assert(!vmpt_guest_find_task(guest, was.cr3, &t));
	ck_assert(vmpt_guest_task_now(guest, was.address, &t));
	ck_assert_uint_eq(t.cr3, 0);
	ck_assert(!vmpt_guest_task_now(guest, 0xdead000000000000, &t));
}
END_TEST

/* A list that leads into itself, or to nowhere, while it is changed. */
START_TEST(torn)
{
	struct vmpt_guest_task t;
	u32 tasks;
	u64 head;

	open_running();
	tasks = kernel.tasks;
	head = s.init_task + small_member("task_struct", "tasks");
	small_put64(&s, head + 8, head + 64);
	small_put64(&s, head + 64 + 8, head + 64);
	ck_assert(!vmpt_guest_find_task(guest, 0x7000, &t));
	small_put64(&s, head + 8, 0xdead000000000100);
	ck_assert(!vmpt_guest_find_task(guest, 0x7000, &t));
	small_put64(&s, head, 0xdead000000000100);
	ck_assert_int_eq(vmpt_guest_update(guest), 0);
	vmpt_guest_kernel(guest, &kernel);
	ck_assert_uint_eq(kernel.tasks, 0);
	ck_assert_uint_eq(kernel.lacks, VMPT_GUEST_TASKS_CUT);
	ck_assert_uint_gt(tasks, 0);
}
END_TEST

/* ---- damage ---- */

static u64 seed;

static u64 random64(void)
{
	return vmpt_mix64(seed += 0x9e3779b97f4a7c15ULL);
}

/* A word becomes any number, one near to what it was, or one of its neighbours. */
static void damage(void)
{
	u64 from = SMALL_PHYSICAL + 0x100000,
	    at = from + random64() % (s.free - SMALL_KERNEL - 0x100000);
	u64 value = random64();

	if (random64() % 8 == 0)
		at = SMALL_PHYSICAL + 0x2000 + random64() % 0x1200;
	at &= ~7ULL;
	if (value % 4 == 1)
		value = vmpt_load64(s.m.ram + at) + (value >> 8) % 64 - 32;
	else if (value % 4 == 2)
		value = vmpt_load64(s.m.ram + from +
				    (value >> 8) % (s.free - SMALL_KERNEL - 0x100008));
	else if (value % 4 == 3)
		value = s.task[(value >> 8) % SMALL_TASKS] + (value >> 16) % 0x100;
	memcpy(s.m.ram + at, &value, sizeof(value));
}

static void use_all(void)
{
	const struct vmpt_guest_task *t;
	const struct vmpt_guest_map *map;
	struct vmpt_guest_symbol symbol;
	size_t n, k, bytes = 0;
	bool cut;
	u32 i;

	for (i = 0; vmpt_guest_symbol(guest, i, &symbol); i++) {
		bytes += strlen(symbol.name);
		vmpt_guest_symbol_at(guest, symbol.address, &symbol);
	}
	for (i = 0; (t = vmpt_guest_task(guest, i)) != NULL; i++) {
		bytes += strlen(t->comm) + (t->program ? strlen(t->program) : 0);
		vmpt_guest_task_at(guest, t->cr3);
		ck_assert_int_eq(vmpt_guest_maps(guest, t, &map, &n, &cut), 0);
		for (k = 0; k < n; k++)
			bytes += map[k].file ? strlen(map[k].file) : 0;
	}
	for (i = 0; vmpt_guest_module(guest, i); i++)
		bytes += strlen(vmpt_guest_module(guest, i)->name);
	ck_assert_uint_lt(bytes, 1u << 24);
}

START_TEST(damaged)
{
	int rounds = test_rounds(20000, 150), i;

	seed = (u64)_i;
	for (i = 0; i < rounds; i++) {
		const struct small_options o = { .form = (enum small_form)(random64() %
									   SMALL_FORMS),
						 .list = random64() % 4 == 0,
						 .parts = random64() % 2 };
		unsigned int n = 1 + random64() % 40;

		if (i % 50 == 0) {
			if (i)
				small_free(&s);
			small_make(&s, &o);
		}
		while (n--)
			damage();
		if (!open_guest())
			use_all();
		close_guest();
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("guest");
	TCase *tc = tcase_create("guest");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, forms, 0, 2 * SMALL_FORMS);
	tcase_add_test(tc, no_types);
	tcase_add_test(tc, no_symbols);
	tcase_add_test(tc, cut_symbols);
	tcase_add_test(tc, other_symbols);
	tcase_add_test(tc, no_kernel);
	tcase_add_test(tc, no_tables);
	tcase_add_test(tc, other_version);
	tcase_add_test(tc, broken_list);
	tcase_add_test(tc, circle);
	tcase_add_test(tc, circle_of_areas);
	tcase_add_test(tc, changes);
	tcase_add_test(tc, torn);
	suite_add_tcase(suite, tc);
	tc = test_long_case(suite);
	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, damaged, 0, 4);
	return suite;
}
