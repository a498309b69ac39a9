// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt insn --branches, --calls and --around against the list of all instructions, whose order the
 * other tests compare with libipt and the truth: a branch went to the instruction that comes next,
 * and where its text says so if it is direct; a window is a part of the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/insn/insn-run.h"
#include "tests/support/support.h"
#include "util/array.h"

#define AROUND 32

struct row {
	u64 ip;
	unsigned int size; /* 0: a gap */
	char text[64];
};

struct rows {
	struct row *row;
	size_t count;
};

/* Words are separated by blanks; @at is moved to the next one. */
static const char *word_of(const char **at, size_t *size)
{
	const char *word = *at + strspn(*at, " ");

	*size = strcspn(word, " \n");
	*at = word + *size;
	return word;
}

static bool is_hex(const char *word, size_t size)
{
	return strspn(word, "0123456789abcdef") >= size;
}

/* A line of the list, without a name of a VM: @words before the IP. */
static void read_row(struct row *r, const char *line, int words)
{
	const char *word;
	size_t size;

	*r = (struct row){ 0 };
	for (; words; words--)
		word_of(&line, &size);
	r->ip = strtoull(word_of(&line, &size), NULL, 16);
	word = word_of(&line, &size);
	/* A gap has words there. */
	r->size = is_hex(word, size) && size % 2 == 0 ? (unsigned int)size / 2 : 0;
	line += strspn(line, " ");
	snprintf(r->text, sizeof(r->text), "%.*s", (int)strcspn(line, "\n"), line);
}

static void read_rows(struct rows *rows, const char *list)
{
	int words = strncmp(list, "TIME", 4) ? 1 : 2;
	const char *line = list;

	*rows = (struct rows){ 0 };
	while ((line = strchr(line, '\n')) && line[1]) {
		if (vmpt_grow(&rows->row, rows->count))
			ck_abort_msg("out of memory");
		read_row(&rows->row[rows->count++], ++line, words);
	}
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_call_or_return(const char *text)
{
	return begins(text, "call") || (begins(text, "ret") && !begins(text, "retf"));
}

static bool is_branch(const char *text)
{
	static const char *const others[] = { "j",	 "loop",     "iret",	 "retf",
					      "int",	 "syscall",  "sysret",	 "sysenter",
					      "sysexit", "vmlaunch", "vmresume", "vmcall",
					      "ljmp",	 "lcall" };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(others); i++)
		if (begins(text, others[i]))
			return true;
	return is_call_or_return(text);
}

/* The target in the text of a direct branch; 0: it is none. */
static u64 target_of(const char *text)
{
	const char *at = strstr(text, " 0x");

	return at && is_branch(text) && strcspn(text, " ") == (size_t)(at - text) &&
			       !strchr(at, '(')
		       ? strtoull(at + 1, NULL, 16)
		       : 0;
}

static const char *member(json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static u64 offset_of(json_t *o)
{
	return (u64)json_integer_value(json_object_get(o, "offset"));
}

/* Not by ck_assert(), which takes its time: there are many. */
static bool is_right(const struct row *r, json_t *o)
{
	u64 to = strtoull(member(o, "to"), NULL, 16), target = target_of(r->text);
	json_t *taken = json_object_get(o, "taken");

	if (strtoull(member(o, "ip"), NULL, 16) != r->ip || strcmp(member(o, "text"), r->text) != 0)
		return false;
	if (target && (begins(r->text, "jmp") || begins(r->text, "call")))
		return to == target && !taken;
	if (taken)
		return target && to == (json_is_true(taken) ? target : r->ip + r->size);
	return true;
}

/*
 * All branches of a trace: where they went, but for @others at most, after which
 * tracing was off or an event came. Returns how many there are.
 */
static size_t check_all(const char *args, size_t others)
{
	struct rows all;
	json_t *rows, *o;
	size_t i, k = 0, off = 0;

	read_rows(&all, vmpt("insn -q %s", args)->out);
	rows = run_packets(vmpt("insn --json -q --branches %s", args));
	for (i = 0; i < all.count; i++) {
		if (!is_branch(all.row[i].text))
			continue;
		do
			o = json_array_get(rows, k++);
		while (o && json_object_get(o, "gap"));
		if (o && !json_object_get(o, "to")) {
			off++;
			continue;
		}
		if (!o || !is_right(&all.row[i], o))
			ck_abort_msg("%s: branch %zu at %#llx, %s", args, k,
				     (unsigned long long)all.row[i].ip, all.row[i].text);
		off += i + 1 == all.count ||
		       strtoull(member(o, "to"), NULL, 16) != all.row[i + 1].ip;
	}
	while (json_object_get(json_array_get(rows, k), "gap"))
		k++;
	ck_assert_uint_eq(k, json_array_size(rows));
	ck_assert_msg(off <= others, "%s: %zu others", args, off);
	json_decref(rows);
	free(all.row);
	return k;
}

START_TEST(where_branches_went)
{
	json_t *doc;

	if (!link_real(&reals[2]))
		return;
	doc = run_json(vmpt("insn --count --json -q --code=x.addr x.pt"));
	/* It has 128 TIP.PGD and 25 FUPs. */
	ck_assert_uint_eq(check_all("--code=x.addr x.pt", 153), json_u64(doc, "total/branches"));
	json_decref(doc);
}
END_TEST

/* With events, several owners, far branches and compressed RETs. */
START_TEST(of_generated_traces)
{
	static const struct {
		const char *script;
		size_t others;
	} rows[] = {
		{ "events", 10 },
		{ "ip-filter", 12 },
		{ "ret-compressed", 10 },
		{ "kinds", 8 },
	};
	char line[512], code[4096];
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		snprintf(line, sizeof(line),
			 "rm -rf code && \"$TRACEGEN\" -o s.pt --no-packets --code code "
			 "\"$SCRIPTS/%s.trace\"",
			 rows[i].script);
		ck_assert_int_eq(system(line), 0);
		read_index(code, sizeof(code));
		strcat(code, "s.pt");
		check_all(code, rows[i].others);
	}
}
END_TEST

/* Near calls and returns are those of all branches. */
START_TEST(calls)
{
	json_t *all, *some, *o;
	size_t i, k = 0, near = 0;

	if (!link_real(&reals[2]))
		return;
	all = run_packets(vmpt("insn --json -q --branches --head=20000 --code=x.addr x.pt"));
	some = run_packets(vmpt("insn --json -q --calls --code=x.addr x.pt"));
	json_array_foreach(all, i, o)
	{
		if (!is_call_or_return(member(o, "text")))
			continue;
		if (!json_equal(o, json_array_get(some, k++)))
			ck_abort_msg("call %zu", k);
	}
	ck_assert_uint_gt(k, 20);
	json_array_foreach(some, i, o) near += begins(member(o, "text"), "call");
	json_decref(all);
	all = run_json(vmpt("insn --count --json -q --code=x.addr x.pt"));
	ck_assert_uint_eq(near, json_u64(all, "total/calls"));
	json_decref(all);
	json_decref(some);
}
END_TEST

/* Rows of a list are gaps, too; where a branch went before one is where the code is missing. */
START_TEST(before_gaps)
{
	json_t *rows, *o, *before = NULL;
	size_t i, missing = 0;

	if (!link_real(&reals[2]))
		return;
	ck_assert_int_eq(system("head -c 64 x.addr >h.addr; head -c 32768 x.dump >h.dump"), 0);
	rows = run_packets(vmpt("insn --json -q --branches --code=h.addr x.pt"));
	json_array_foreach(rows, i, o)
	{
		if (before && !strcmp(member(o, "gap"), "no_code") &&
		    json_object_get(before, "to") && offset_of(o) == offset_of(before)) {
			ck_assert_str_eq(json_text(before, "to"), json_text(o, "ip"));
			missing++;
		}
		before = json_object_get(o, "text") ? o : NULL;
	}
	ck_assert_uint_gt(missing, 0);
	json_decref(rows);
}
END_TEST

/* ---- windows ---- */

/* Rows of @window are those of @all around the first whose offset is at least @offset. */
static void check_window(json_t *all, json_t *window, u64 offset)
{
	size_t at = 0, from, to, i;

	while (at < json_array_size(all) && offset_of(json_array_get(all, at)) < offset)
		at++;
	from = at > AROUND ? at - AROUND : 0;
	to = at + AROUND < json_array_size(all) ? at + AROUND : json_array_size(all);
	ck_assert_uint_eq(json_array_size(window), to - from);
	for (i = from; i < to; i++)
		if (!json_equal(json_array_get(all, i), json_array_get(window, i - from)))
			ck_abort_msg("row %zu", i - from);
}

START_TEST(around_offsets)
{
	static const char *const modes[] = { "", "--branches", "--calls" };
	static const u64 offsets[] = { 0, 0x107, 0x120, 0x1f00, 0x100000 };
	json_t *all, *window;
	size_t i, k;

	if (!link_real(&reals[2]))
		return;
	/* The first part of the trace: up to a byte that is no packet. */
	ck_assert_int_eq(system("head -c 9000 x.pt >p.pt"), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(modes); i++) {
		all = run_packets(vmpt("insn --json -q %s --code=x.addr p.pt", modes[i]));
		ck_assert_uint_gt(json_array_size(all), 2 * AROUND);
		for (k = 0; k < VMPT_ARRAY_SIZE(offsets); k++) {
			window = run_packets(
				vmpt("insn --json -q %s --around=0x%llx --code=x.addr p.pt",
				     modes[i], (unsigned long long)offsets[k]));
			check_window(all, window, offsets[k]);
			json_decref(window);
		}
		json_decref(all);
	}
	window = run_packets(vmpt("insn --json -q --around=0x1f00 --head=5 --code=x.addr p.pt"));
	ck_assert_uint_eq(json_array_size(window), 5);
	json_decref(window);
}
END_TEST

/* The text of a window by time is a part of that of the list. */
START_TEST(around_times)
{
	char code[4096], when[32], *all, *middle, *from, *to;
	const struct run *r;
	int i;

	ck_assert_int_eq(system("\"$TRACEGEN\" -o s.pt --no-packets --code code "
				"\"$SCRIPTS/timing.trace\""),
			 0);
	read_index(code, sizeof(code));
	all = strdup(vmpt("insn -q --tsc-ratio=84 --mtc-freq=3 %s s.pt", code)->out);
	middle = strchr(all + strlen(all) / 2, '\n') + 1;
	snprintf(when, sizeof(when), "%.*s", (int)strcspn(middle, " "), middle);
	from = to = strstr(all, when);
	for (i = 0; i < AROUND; i++) {
		for (from--; from > all && from[-1] != '\n'; from--)
			;
		to = strchr(to, '\n') + 1;
	}
	*to = '\0';
	r = vmpt("insn -q --tsc-ratio=84 --mtc-freq=3 --around=%s %s s.pt", when, code);
	ck_assert_str_eq(strchr(r->out, '\n') + 1, from);
	free(all);
}
END_TEST

START_TEST(usage)
{
	static const char *const wrong[] = {
		"--branches --calls", "--branches --count",
		"--calls --hash",     "--around=0x10 --count",
		"--around=0x10k",     "--around=1s",
		"--around=",
	};
	size_t i;

	if (!link_real(&reals[2]))
		return;
	for (i = 0; i < VMPT_ARRAY_SIZE(wrong); i++)
		ck_assert_msg(vmpt("insn %s --code=x.addr x.pt", wrong[i])->code == 2, "%s",
			      wrong[i]);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/insn-branches");
	TCase *c = tcase_create("branches");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, where_branches_went);
	tcase_add_test(c, of_generated_traces);
	tcase_add_test(c, calls);
	tcase_add_test(c, before_gaps);
	tcase_add_test(c, around_offsets);
	tcase_add_test(c, around_times);
	tcase_add_test(c, usage);
	suite_add_tcase(suite, c);
	return suite;
}
