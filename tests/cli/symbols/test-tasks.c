// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * cli/symbols/tasks.c: whose page tables were there at what time, by lists that are written here;
 * and lists that are damaged. tests/domains/test-linux.sh has lists of a guest that ran.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/tasks.h"
#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define MS 1000000ULL

static char path[] = ".", head[] = "recording.json";
static struct cli_folder folder = { .path = path, .head = head };
static struct cli cli = { .folder = &folder, .quiet = true };
static struct code_tasks *tasks;

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static void open_lists(void)
{
	ck_assert_int_eq(code_tasks_open(&cli, &tasks), 0);
}

static void setup(void)
{
	cli_setup();
	folder.doc = json_loads("{\"tasks\": [{\"file\": \"vm0.tasks\", \"symbols\": "
				"\"vm0.symbols\", \"vm\": \"web\"}]}",
				0, NULL);
}

static void teardown(void)
{
	code_tasks_close(tasks);
	tasks = NULL;
	json_decref(folder.doc);
	cli_clean();
}

static const struct vmpt_guest_task *at(u64 cr3, u64 ms)
{
	static struct code_tasks_found found;

	ck_assert(code_tasks_find(tasks, "web", cr3, ms == ~0ULL ? ms : ms * MS, &found));
	ck_assert_uint_le(found.from, ms == ~0ULL ? ms : ms * MS);
	ck_assert(ms == ~0ULL || found.to > ms * MS);
	return found.task;
}

#define TASK(tsc, cr3, tgid, pid, comm, start)                                          \
	"{\"tsc\":\"0x" tsc "\",\"kind\":\"task\",\"cr3\":\"0x" cr3 "\",\"tgid\":" tgid \
	",\"pid\":" pid ",\"parent\":1,\"comm\":\"" comm "\",\"start_ns\":\"0x" start "\"}\n"
#define KERNEL(tsc)                                                                         \
	"{\"tsc\":\"0x" tsc "\",\"kind\":\"kernel\",\"release\":\"6.1\",\"start\":\"0x1\"," \
	"\"end\":\"0x2\",\"offset\":\"0x0\",\"cr3\":\"0x2a10000\"}\n"
#define MAPS(tsc, cr3, tgid, list)                                                      \
	"{\"tsc\":\"0x" tsc "\",\"kind\":\"maps\",\"cr3\":\"0x" cr3 "\",\"tgid\":" tgid \
	",\"maps\":[" list "]}\n"
#define MAP(start, end, file)                                                                     \
	"{\"start\":\"0x" start "\",\"end\":\"0x" end "\",\"offset\":\"0x1000\",\"file\":\"" file \
	"\",\"build_id\":\"00ff10\"}"

/* fork, exec, end; another process gets the page tables. Times: 100, 200, 300 and 500 ms. */
static const char life[] = "{\"tsc\":\"0x1\",\"kind\":\"machine\",\"vm\":\"web\"}\n" KERNEL(
	"5f5e000") TASK("5f5e100", "5384000", "85", "85", "sh",
			"10") TASK("bebc200", "5384000", "85", "85", "sleep", "10")
	MAPS("bebc300", "5384000", "85", MAP("401000", "402000", "/bin/sleep")) MAPS(
		"bebc400", "5384000", "85",
		MAP("401000", "402000", "/other") "," MAP("7f0000", "7f1000",
							  "/lib/x")) TASK("11e1a300", "5384000",
									  "90", "90", "ls", "20")
		TASK("1dcd6500", "5384000", "90", "91", "thread", "21") TASK(
			"1dcd6500", "5384000", "90",
			"90", "ls",
			"20") "{\"tsc\":\"0x1dcd6500\",\"kind\":\"task\",\"tgid\":2,\"pid\":2,\"parent\":0,"
			      "\"comm\":\"kthreadd\",\"start_ns\":\"0x1\"}\n";

START_TEST(times)
{
	struct code_tasks_found found;

	write_text("vm0.tasks", life);
	open_lists();
	ck_assert(!code_tasks_find(tasks, "db", 0x5384000, ~0ULL, &found));
	ck_assert(!code_tasks_find(tasks, NULL, 0x5384000, ~0ULL, &found));
	ck_assert_ptr_null(at(0x5384000, 80));
	/* It may have run a little before it was looked at. */
	ck_assert_str_eq(at(0x5384000, 95)->comm, "sh");
	ck_assert_str_eq(at(0x5384000, 101)->comm, "sh");
	ck_assert_str_eq(at(0x5384000, 201)->comm, "sleep");
	ck_assert_str_eq(at(0x5384000, 299)->comm, "sleep");
	ck_assert_uint_eq(at(0x5384000, 299)->tgid, 85);
	ck_assert_str_eq(at(0x5384000, 301)->comm, "ls");
	ck_assert_uint_eq(at(0x5384000, ~0ULL)->tgid, 90);
	ck_assert_str_eq(at(0x5384000, ~0ULL)->comm, "ls");
	/* A PCID; page table isolation. */
	ck_assert_str_eq(at(0x5385887, 250)->comm, "sleep");
	ck_assert_ptr_null(at(0x5386000, 250));
	ck_assert_ptr_null(at(0, 250));
}
END_TEST

/* All that was read in a process's life counts for all of it. */
START_TEST(maps)
{
	struct code_tasks_found found;

	write_text("vm0.tasks", life);
	open_lists();
	ck_assert(code_tasks_find(tasks, "web", 0x5384000, 150 * MS, &found));
	ck_assert_uint_eq(found.maps, 2);
	ck_assert_str_eq(found.map[0].file, "/bin/sleep");
	ck_assert_uint_eq(found.map[0].offset, 0x1000);
	ck_assert_uint_eq(found.map[0].build_id_size, 3);
	ck_assert_int_eq(memcmp(found.map[0].build_id, "\0\xff\x10", 3), 0);
	ck_assert_str_eq(found.map[1].file, "/lib/x");
	ck_assert(code_tasks_find(tasks, "web", 0x5384000, 350 * MS, &found));
	ck_assert_uint_eq(found.maps, 0);
}
END_TEST

/* The guest boots again; QEMU was started again. */
START_TEST(resets)
{
	char *text;

	ck_assert_int_gt(asprintf(&text,
				  "%s" KERNEL("23c34600")
					  TASK("2faf0800", "5384000", "85", "85", "sh", "10"),
				  life),
			 0);
	write_text("vm0.tasks", text);
	open_lists();
	ck_assert_str_eq(at(0x5384000, 599)->comm, "ls");
	ck_assert_ptr_null(at(0x5384000, 601));
	ck_assert_str_eq(at(0x5384000, 801)->comm, "sh");
	code_tasks_close(tasks);
	free(text);

	ck_assert_int_gt(asprintf(&text, "%s%s", life,
				  "{\"tsc\":\"0x1\",\"kind\":\"machine\",\"vm\":\"web\"}\n"),
			 0);
	write_text("vm0.tasks", text);
	open_lists();
	ck_assert_ptr_null(at(0x5384000, 250));
	free(text);
}
END_TEST

/* ---- symbols ---- */

static const char list[] = "766d707473796d73 A vmpt\n"
			   "ffffffff81000000 T _text\nffffffff81000000 T alias\n"
			   "ffffffff81000100 t second\nffffffff81000200 A end\n"
			   "ffffffffc0000000 t vp_notify\t[virtio_pci]\nffffffffc0000010 A end\n";

START_TEST(symbols)
{
	struct vmpt_guest_symbol s;

	write_text("vm0.tasks", life);
	write_text("vm0.symbols", list);
	open_lists();
	ck_assert(code_tasks_symbol(tasks, "web", 0xffffffff810000ff, &s));
	ck_assert_str_eq(s.name, "_text");
	ck_assert_ptr_null(s.module);
	ck_assert(code_tasks_symbol(tasks, "web", 0xffffffff810001ff, &s));
	ck_assert_str_eq(s.name, "second");
	ck_assert(!code_tasks_symbol(tasks, "web", 0xffffffff81000200, &s));
	ck_assert(!code_tasks_symbol(tasks, "web", 0xffffffff80ffffff, &s));
	ck_assert(code_tasks_symbol(tasks, "web", 0xffffffffc0000008, &s));
	ck_assert_str_eq(s.name, "vp_notify");
	ck_assert_str_eq(s.module, "virtio_pci");
	ck_assert(!code_tasks_symbol(tasks, "web", 0xffffffffc0000010, &s));
	ck_assert(!code_tasks_symbol(tasks, "db", 0xffffffff81000000, &s));
}
END_TEST

/* ---- damage ---- */

START_TEST(missing)
{
	struct code_tasks_found found;

	open_lists();
	ck_assert(code_tasks_find(tasks, "web", 0x5384000, ~0ULL, &found));
	ck_assert_ptr_null(found.task);
	code_tasks_close(tasks);
	/* A name that leaves the folder. */
	json_object_set_new(json_array_get(json_object_get(folder.doc, "tasks"), 0), "file",
			    json_string("../vm0.tasks"));
	open_lists();
	code_tasks_close(tasks);
	json_object_clear(folder.doc);
	open_lists();
	ck_assert_ptr_null(tasks);
}
END_TEST

/* Each byte changed, each length. */
START_TEST(damaged)
{
	struct vmpt_guest_symbol s;
	char text[sizeof(life)], more[sizeof(list)];
	size_t i;

	for (i = (size_t)_i; i < sizeof(life); i += 17) {
		memcpy(text, life, sizeof(life));
		text[i] ^= (char)(1 + i % 255);
		write_file("vm0.tasks", text, i % 3 ? sizeof(life) - 1 : i);
		memcpy(more, list, sizeof(list));
		more[i % sizeof(list)] ^= (char)(1 + i % 255);
		write_file("vm0.symbols", more, i % 2 ? sizeof(list) - 1 : i % sizeof(list));
		open_lists();
		at(0x5384000, 250);
		at(0x5384000, ~0ULL);
		code_tasks_symbol(tasks, "web", 0xffffffff810000ff, &s);
		code_tasks_close(tasks);
		tasks = NULL;
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tasks");
	TCase *tc = tcase_create("tasks");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, times);
	tcase_add_test(tc, maps);
	tcase_add_test(tc, resets);
	tcase_add_test(tc, symbols);
	tcase_add_test(tc, missing);
	tcase_add_loop_test(tc, damaged, 0, 17);
	suite_add_tcase(suite, tc);
	return suite;
}
