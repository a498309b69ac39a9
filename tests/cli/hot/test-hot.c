// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt hot: sums, comparisons and folded stacks of a tree that is made by hand, and the command's
 * own rules. What other programs read of it is in test-readers.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/hot/hot.h"
#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

/* ---- a tree ---- */

#define NAME(name_, module_, text_)                                                        \
	{                                                                                  \
		.name = (char[]){ name_ }, .module = (char[]){ module_ }, .text = (char[]) \
		{                                                                          \
			text_                                                              \
		}                                                                          \
	}

enum { UNKNOWN, MAIN, FIB, READ, ODD, FUNCTIONS };

static const struct calls_function functions[] = {
	[UNKNOWN] = NAME("[unknown]", "", "[unknown]"),
	[MAIN] = NAME("main", "", "main"),
	[FIB] = NAME("fib", "", "fib"),
	[READ] = NAME("read", "libc.so.6", "libc.so.6:read"),
	[ODD] = NAME("a;b c", "", "a;b c"),
};

static struct hot_process processes[] = {
	{ .vm = "web", .name = "89 pipes", .comm = "pipes", .vm_number = 7 },
	{ .vm = "web", .name = "kernel", .comm = "kernel", .vm_number = 7 },
	{ .vm = "host", .name = "90 pipes", .comm = "pipes", .vm_number = 3 },
};

static struct hot_node nodes[] = {
	{ 0 },
	{ .parent = 0, .what = 0 },
	{ .parent = 1, .what = MAIN, .calls = 1, .self = { 10, 100 } },
	{ .parent = 2, .what = FIB, .calls = 1, .self = { 100, 1000 } },
	{ .parent = 3, .what = FIB, .calls = 2, .self = { 50, 500 } },
	{ .parent = 4, .what = READ, .calls = 3, .self = { 5, 50 } },
	{ .parent = 2, .what = READ, .calls = 4, .self = { 7, 70 } },
	{ .parent = 0, .what = 1, .self = { 3, 30 } }, /* in no frame */
	{ .parent = 7, .what = UNKNOWN, .self = { 20, 200 } },
	{ .parent = 8, .what = FIB, .calls = 1, .self = { 30, 300 } },
	{ .parent = 0, .what = 2 },
	{ .parent = 10, .what = FIB, .calls = 9, .self = { 90, 10 } },
	{ .parent = 11, .what = ODD, .calls = 1, .self = { 0, 1 } },
};

static struct hot_tree tree;

static void make(void)
{
	tree = (struct hot_tree){
		.node = nodes,
		.nodes = VMPT_ARRAY_SIZE(nodes),
		.function = functions,
		.functions = FUNCTIONS,
		.process = processes,
		.processes = VMPT_ARRAY_SIZE(processes),
		.timed = true,
		.hertz = 2e9,
	};
	ck_assert_int_eq(hot_tree_link(&tree), 0);
}

static void unmake(void)
{
	free(tree.first);
	free(tree.next);
}

static const struct hot_row *find(const struct hot_rows *rows, u32 group, u32 function)
{
	size_t i;

	for (i = 0; i < rows->count; i++)
		if (rows->row[i].group == group && rows->row[i].function == function)
			return &rows->row[i];
	ck_abort_msg("no row of %u %u", group, function);
	return NULL;
}

static void check_row(const struct hot_rows *rows, u32 group, u32 function, u64 self, u64 total,
		      u64 calls)
{
	const struct hot_row *row = find(rows, group, function);

	ck_assert_uint_eq(row->self[HOT_INSTRUCTIONS], self);
	ck_assert_uint_eq(row->total[HOT_INSTRUCTIONS], total);
	ck_assert_uint_eq(row->calls, calls);
}

START_TEST(rows_by_process)
{
	struct hot_rows rows;

	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_PROCESS, &rows), 0);
	ck_assert_uint_eq(rows.count, 7);
	ck_assert_uint_eq(rows.sum.self[HOT_INSTRUCTIONS], 315);
	ck_assert_uint_eq(rows.sum.self[HOT_TIME], 2261);
	check_row(&rows, 0, MAIN, 10, 172, 1);
	/* It calls itself: 100 + 50 + 5, not 55 more. */
	check_row(&rows, 0, FIB, 150, 155, 3);
	check_row(&rows, 0, READ, 12, 12, 7);
	check_row(&rows, 1, UNKNOWN, 23, 53, 0);
	check_row(&rows, 1, FIB, 30, 30, 1);
	check_row(&rows, 2, FIB, 90, 90, 9);
	ck_assert_uint_eq(find(&rows, 2, FIB)->total[HOT_TIME], 11);
	hot_rows_sort(&tree, &rows, HOT_SORT_SELF, HOT_INSTRUCTIONS);
	ck_assert_uint_eq(rows.row[0].self[HOT_INSTRUCTIONS], 150);
	ck_assert_uint_eq(rows.row[1].self[HOT_INSTRUCTIONS], 90);
	hot_rows_sort(&tree, &rows, HOT_SORT_TOTAL, HOT_INSTRUCTIONS);
	ck_assert_uint_eq(rows.row[0].function, MAIN);
	hot_rows_sort(&tree, &rows, HOT_SORT_CALLS, HOT_INSTRUCTIONS);
	ck_assert_uint_eq(rows.row[0].calls, 9);
	hot_rows_sort(&tree, &rows, HOT_SORT_NAME, HOT_INSTRUCTIONS);
	ck_assert_uint_eq(rows.row[0].function, UNKNOWN);
	ck_assert_uint_eq(rows.row[1].function, ODD);
	hot_rows_free(&rows);
}
END_TEST

START_TEST(rows_by_vm_and_trace)
{
	struct hot_rows rows;

	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_VM, &rows), 0);
	check_row(&rows, 0, FIB, 180, 185, 4);
	check_row(&rows, 2, FIB, 90, 90, 9);
	hot_rows_keep_vm(&tree, &rows, "host");
	ck_assert_uint_eq(rows.count, 2);
	ck_assert_uint_eq(rows.sum.self[HOT_INSTRUCTIONS], 90);
	hot_rows_free(&rows);
	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_TRACE, &rows), 0);
	ck_assert_uint_eq(rows.count, 5);
	check_row(&rows, 0, FIB, 270, 275, 13);
	hot_rows_free(&rows);
}
END_TEST

START_TEST(no_rows)
{
	struct hot_tree none = { .node = nodes, .nodes = 1 };
	struct hot_rows rows;

	ck_assert_int_eq(hot_tree_link(&none), 0);
	ck_assert_int_eq(hot_rows_make(&none, HOT_PER_TRACE, &rows), 0);
	ck_assert_uint_eq(rows.count, 0);
	hot_rows_free(&rows);
	free(none.first);
	free(none.next);
}
END_TEST

/* ---- comparison ---- */

static const struct hot_change *change_of(const struct hot_diff *d, u32 function)
{
	size_t i;

	for (i = 0; i < d->count; i++) {
		const struct hot_change *c = &d->change[i];

		if ((c->row[0] ? c->row[0] : c->row[1])->function == function)
			return c;
	}
	ck_abort_msg("no change of %u", function);
	return NULL;
}

START_TEST(two_vms)
{
	const struct hot_tree *const both[] = { &tree, &tree };
	struct hot_rows rows[2];
	const struct hot_rows *const list[] = { &rows[0], &rows[1] };
	const struct hot_change *c;
	struct hot_diff d;

	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_VM, &rows[0]), 0);
	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_VM, &rows[1]), 0);
	hot_rows_keep_vm(&tree, &rows[0], "web");
	hot_rows_keep_vm(&tree, &rows[1], "host");
	ck_assert_int_eq(hot_diff_make(both, list, HOT_PER_VM, true, &d), 0);
	ck_assert_uint_eq(d.count, 5);
	ck_assert_uint_eq(d.sum[0][HOT_INSTRUCTIONS], 225);
	ck_assert_uint_eq(d.sum[1][HOT_INSTRUCTIONS], 90);
	c = change_of(&d, FIB);
	ck_assert_uint_eq(hot_change_value(c, 0, HOT_SORT_SELF, HOT_INSTRUCTIONS), 180);
	ck_assert_uint_eq(hot_change_value(c, 1, HOT_SORT_SELF, HOT_INSTRUCTIONS), 90);
	ck_assert_uint_eq(hot_change_value(c, 0, HOT_SORT_CALLS, 0), 4);
	/* 1800 ticks of 2 GHz. */
	ck_assert_uint_eq(hot_change_value(c, 0, HOT_SORT_SELF, HOT_TIME), 900);
	ck_assert_ptr_null(change_of(&d, MAIN)->row[1]);
	ck_assert_uint_eq(hot_change_value(change_of(&d, MAIN), 1, HOT_SORT_SELF, 0), 0);
	hot_diff_sort(&d, HOT_PER_VM, HOT_SORT_SELF, HOT_INSTRUCTIONS);
	ck_assert_ptr_eq(&d.change[0], change_of(&d, FIB));
	hot_diff_free(&d);
	hot_rows_free(&rows[0]);
	hot_rows_free(&rows[1]);
}
END_TEST

/* Processes of one name are one, whatever their numbers are. */
START_TEST(processes_of_one_name)
{
	const struct hot_tree *const both[] = { &tree, &tree };
	struct hot_rows rows;
	const struct hot_rows *const list[] = { &rows, &rows };
	struct hot_diff d;
	size_t i;

	ck_assert_int_eq(hot_rows_make(&tree, HOT_PER_PROCESS, &rows), 0);
	ck_assert_int_eq(hot_diff_make(both, list, HOT_PER_PROCESS, true, &d), 0);
	/* pipes: main, fib, read, "a;b c"; kernel: [unknown], fib */
	ck_assert_uint_eq(d.count, 6);
	for (i = 0; i < d.count; i++)
		ck_assert_uint_eq(hot_change_value(&d.change[i], 0, HOT_SORT_SELF, 0),
				  hot_change_value(&d.change[i], 1, HOT_SORT_SELF, 0));
	hot_diff_free(&d);
	hot_rows_free(&rows);
}
END_TEST

/* ---- folded stacks ---- */

static char *folded(unsigned int by)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_int_eq(hot_folded(&tree, by, f), 0);
	fclose(f);
	return text;
}

START_TEST(stacks)
{
	char *text = folded(HOT_INSTRUCTIONS);

	ck_assert_str_eq(text, "web;89 pipes;main 10\n"
			       "web;89 pipes;main;fib 100\n"
			       "web;89 pipes;main;fib;fib 50\n"
			       "web;89 pipes;main;fib;fib;read 5\n"
			       "web;89 pipes;main;read 7\n"
			       "web;kernel 3\n"
			       "web;kernel;[unknown] 20\n"
			       "web;kernel;[unknown];fib 30\n"
			       "host;90 pipes;fib 90\n");
	free(text);
	/* In ns of a TSC of 2 GHz. */
	text = folded(HOT_TIME);
	ck_has(text, "web;89 pipes;main;fib 500\n");
	ck_has(text, "host;90 pipes;fib;a:b c 1\n");
	free(text);
}
END_TEST

START_TEST(own_files)
{
	static const char *const no[] = { "",	    "a;b 12",	"main(); 3x\n", "a b 12\n",
					  "a;b \n", "int x;\n", "; \n" };
	size_t i;

	ck_assert(hot_is_folded("web;x;main 12\nrest", 18));
	for (i = 0; i < VMPT_ARRAY_SIZE(no); i++)
		ck_assert_msg(!hot_is_folded(no[i], strlen(no[i])), "%s", no[i]);
}
END_TEST

/* ---- names ---- */

START_TEST(roles)
{
	static const struct {
		const char *name;
		unsigned int role;
	} all[] = {
		{ "__switch_to_asm", VMPT_ROLE_SWITCH },
		{ "__switch_to", VMPT_ROLE_PLAIN },
		{ "__x86_indirect_thunk_rax", VMPT_ROLE_THUNK },
		{ "__x86_return_thunk", VMPT_ROLE_THUNK },
		{ "srso_alias_return_thunk", VMPT_ROLE_THUNK },
		{ "__SCT__might_resched", VMPT_ROLE_THUNK },
		{ "ftrace_regs_caller", VMPT_ROLE_THUNK },
		{ "ftrace_set_filter", VMPT_ROLE_PLAIN },
		{ "schedule", VMPT_ROLE_PLAIN },
		{ "", VMPT_ROLE_PLAIN },
	};
	static const struct {
		const char *name;
		size_t whole;
	} parts[] = {
		{ "f.cold", 1 },	  { "foo.cold.12", 3 },
		{ "f.part.0", 0 },	  { ".cold", 0 },
		{ "foo.cold.x", 0 },	  { "foo12", 0 },
		{ "e_after_hwframe", 1 }, { "", 0 },
		{ "f.part.0.cold", 8 },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(all); i++)
		ck_assert_msg(calls_role(all[i].name) == all[i].role, "%s", all[i].name);
	for (i = 0; i < VMPT_ARRAY_SIZE(parts); i++)
		ck_assert_msg(calls_part(parts[i].name) == parts[i].whole, "%s", parts[i].name);
}
END_TEST

/* ---- the command ---- */

static char code[4096]; /* options for the code of s.pt */

/* A trace of the generator, s.pt, with its code. */
static void generate(const char *script)
{
	char line[512], text[256], base[32], vmcs[32], file[64];
	size_t n = 0;
	FILE *f;

	snprintf(line, sizeof(line),
		 "rm -rf code && \"$TRACEGEN\" -o s.pt --no-packets --code code "
		 "\"$SCRIPTS/%s.trace\"",
		 script);
	ck_assert_int_eq(system(line), 0);
	f = fopen("code/index", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(text, sizeof(text), f)) {
		ck_assert_int_eq(sscanf(text, "%31s %*s %*s %31s %63s", base, vmcs, file), 3);
		n += (size_t)snprintf(code + n, sizeof(code) - n, "--code=%s:code/%s@%s ",
				      strcmp(vmcs, "-") ? vmcs : "host", file, base);
		ck_assert_uint_lt(n, sizeof(code));
	}
	fclose(f);
}

static u64 executed(const char *script)
{
	json_t *doc;
	u64 n;

	generate(script);
	doc = run_json(vmpt("insn --count --json -q %s s.pt", code));
	n = json_u64(doc, "total/instructions");
	json_decref(doc);
	return n;
}

/* All that was executed is in one function or another. */
START_TEST(nothing_is_lost)
{
	static const char *const scripts[] = { "nested-calls",	 "events",	   "clocks",
					       "ret-compressed", "mode-while-out", "group-orders" };
	size_t i, k;

	for (i = 0; i < VMPT_ARRAY_SIZE(scripts); i++) {
		u64 want = executed(scripts[i]), sum = 0;
		json_t *doc = run_json(vmpt("hot --json -q %s s.pt", code)), *o;

		ck_assert_uint_gt(want, 0);
		ck_assert_msg(json_u64(doc, "total/self_instructions") == want, "%s", scripts[i]);
		json_array_foreach(json_at(doc, "functions"), k, o)
		{
			sum += json_u64(o, "self_instructions");
			ck_assert_uint_le(json_u64(o, "self_instructions"),
					  json_u64(o, "total_instructions"));
			ck_assert_uint_le(json_u64(o, "total_instructions"), want);
		}
		ck_assert_uint_eq(sum, want);
		json_decref(doc);
	}
}
END_TEST

/* 70 calls of each other. */
START_TEST(the_depth_of_calls)
{
	const char *line;
	unsigned int depth, deepest = 0;

	generate("nested-calls");
	for (line = vmpt("hot --folded -q %s s.pt", code)->out; *line;
	     line = strchr(line, '\n') + 1) {
		const char *at;

		for (depth = 0, at = line; *at != '\n'; at++)
			depth += *at == ';';
		if (depth > deepest)
			deepest = depth;
	}
	/* VM;process;[unknown]; then a function and 70 calls: with a ";" between each two. */
	ck_assert_uint_eq(deepest, 3 + 70);
}
END_TEST

START_TEST(with_symbols)
{
	const struct run *r;
	char name[64] = "";
	const char *at;

	generate("ret-compressed");
	r = vmpt("hot -q --top=1 %s s.pt", code);
	ck_assert_int_eq(r->code, 0);
	at = strstr(r->out, "0x");
	ck_assert_ptr_nonnull(at);
	ck_has(r->out, "\nand ");
	snprintf(name, sizeof(name), "%016llx T the_hottest\n",
		 strtoull(at, NULL, 16) ? strtoull(at, NULL, 16) : 0);
	write_file("System.map", name, strlen(name));
	r = vmpt("hot --symbols=System.map %s s.pt", code);
	ck_has(r->out, "the_hottest");
	ck_lacks(r->err, "no names of functions are known");
	ck_has(vmpt("hot %s s.pt", code)->err, "no names of functions are known");
	ck_has(vmpt("hot --csv --symbols=System.map %s s.pt", code)->out, ",the_hottest,");
	ck_has(vmpt("hot -q --folded --symbols=System.map %s s.pt", code)->out, ";the_hottest");
}
END_TEST

START_TEST(comparisons)
{
	const struct run *r;
	json_t *doc, *o;
	char all[4096];
	size_t i;

	generate("nested-calls");
	memcpy(all, code, sizeof(all));
	ck_assert_int_eq(rename("s.pt", "before.pt"), 0);
	r = vmpt("hot -q --diff=before.pt %s before.pt", all);
	ck_assert_msg(r->code == 0, "%s", r->err);
	ck_has(r->out, "SELF BEFORE");
	doc = run_json(vmpt("hot -q --json --diff=before.pt %s before.pt", all));
	ck_assert_uint_gt(json_array_size(json_at(doc, "changes")), 0);
	json_array_foreach(json_at(doc, "changes"), i, o)
		ck_assert(json_equal(json_at(o, "before"), json_at(o, "after")));
	ck_assert(json_equal(json_at(doc, "total_before"), json_at(doc, "total_after")));
	json_decref(doc);
	r = vmpt("hot -q --diff=none.pt %s before.pt", all);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "none.pt");
	r = vmpt("hot -q --diff-vm=a:b %s before.pt", all);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "not two VMs of the trace");
	generate("group-orders");
	doc = run_json(vmpt("hot -q --json --per=vm %s s.pt", code));
	json_decref(doc);
}
END_TEST

static void check_usage(const char *args, const char *why)
{
	const struct run *r = vmpt("hot %s x.pt", args);

	ck_assert_msg(r->code == 2, "%s: %d", args, r->code);
	ck_has(r->err, why);
}

START_TEST(wrong_usage)
{
	write_mixed("x.pt");
	check_usage("--diff=x.pt --diff-vm=a:b", "exclude each other");
	check_usage("--diff=x.pt --folded", "not with --folded");
	check_usage("--json --folded", "both are for the standard output");
	check_usage("--per=thread", "process, vm, trace");
	check_usage("--diff-vm=a:b --per=trace", "compares VMs");
	check_usage("--speedscope=x.pt", "x.pt is an input");
}
END_TEST

START_TEST(files)
{
	struct stat st;
	const struct run *r;

	generate("nested-calls");
	write_file("mine", "int main;\n", 10);
	r = vmpt("hot -q --folded=mine %s s.pt", code);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "vmpt did not write it");
	r = vmpt("hot -q --folded=f --speedscope=s --pprof=p %s s.pt", code);
	ck_assert_msg(r->code == 0, "%s", r->err);
	ck_assert_str_eq(r->out, "");
	ck_assert_int_eq(stat("p", &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	/* Again, over its own files; and beside a table. */
	r = vmpt("hot -q --folded=f --speedscope=s --pprof=p --mode=644 %s s.pt", code);
	ck_assert_msg(r->code == 0, "%s", r->err);
	ck_assert_int_eq(stat("s", &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0644);
	ck_assert_int_ne(access(".f.vmpt-new", F_OK), 0);
	/* A file that cannot be finished is not begun. */
	ck_assert_int_eq(vmpt("hot -q --folded=g --by=time --code=none.addr s.pt")->code, 1);
	ck_assert_int_ne(access("g", F_OK), 0);
}
END_TEST

START_TEST(nothing_known)
{
	const struct run *r;

	write_mixed("x.pt");
	r = vmpt("hot x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "no code is known");
	ck_has(r->out, "code missing");
	ck_assert_int_eq(vmpt("hot --by=time x.pt")->code, 1);
	ck_has(vmpt("hot --by=time x.pt")->err, "has no times");
	ck_has(vmpt("hot --vm=none x.pt")->err, "none");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/hot");
	TCase *made = tcase_create("made"), *command = tcase_create("command");

	tcase_add_checked_fixture(made, make, unmake);
	tcase_add_test(made, rows_by_process);
	tcase_add_test(made, rows_by_vm_and_trace);
	tcase_add_test(made, no_rows);
	tcase_add_test(made, two_vms);
	tcase_add_test(made, processes_of_one_name);
	tcase_add_test(made, stacks);
	tcase_add_test(made, own_files);
	tcase_add_test(made, roles);
	suite_add_tcase(suite, made);
	tcase_add_checked_fixture(command, cli_setup, cli_clean);
	tcase_add_test(command, nothing_is_lost);
	tcase_add_test(command, the_depth_of_calls);
	tcase_add_test(command, with_symbols);
	tcase_add_test(command, comparisons);
	tcase_add_test(command, wrong_usage);
	tcase_add_test(command, files);
	tcase_add_test(command, nothing_known);
	suite_add_tcase(suite, command);
	return suite;
}
