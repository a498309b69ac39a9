// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow of generated traces against the truth: every instruction that was executed while
 * PacketEn was 1, in order, with its owner.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/flow-run.h"
#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"

enum exactness {
	EXACT,
	ASSUMED, /* VMCSs are assumed, and one is another (docs/vm-tracking.md) */
	SOME,	 /* what an overflow or a loss hides is missing, nothing else is there */
	/*
	 * Bytes are dropped, or are no packets. What is found after the packet before them, up to
	 * the next branch, need not have been executed, and the truth does not say which bytes the
	 * decoder loses: so what is found is compared in order, but for that code at each gap.
	 */
	ABOUT,
};

static const struct script {
	const char *name;
	enum exactness exact;
} scripts[] = {
	{ "branch-en0", EXACT },
	{ "cfe-only", EXACT },
	{ "clocks", EXACT },
	{ "concealed", EXACT },
	{ "context", EXACT },
	{ "cpus", EXACT },
	{ "cr3-filter", EXACT },
	{ "damage", ABOUT },
	{ "demo", EXACT },
	{ "event-en-only", EXACT },
	{ "events", EXACT },
	{ "example", EXACT },
	{ "failed-entry", EXACT },
	{ "failed-entry-events", EXACT },
	{ "group-orders", EXACT },
	{ "guest-only", ASSUMED },
	{ "guest-only-no-pip", EXACT },
	{ "host-only", EXACT },
	{ "host-unbalanced", EXACT },
	{ "ip-filter", EXACT },
	{ "kinds", EXACT },
	{ "mode-while-out", EXACT },
	{ "nested-calls", EXACT },
	{ "one-owner", EXACT },
	{ "os0", EXACT },
	{ "ovf-disabled", EXACT },
	{ "ovf-other", SOME },
	{ "ovf-same", SOME },
	{ "pgd-then-psb", EXACT },
	{ "psb-fup", EXACT },
	{ "psb-moves-owner", ABOUT },
	{ "ret-compressed", EXACT },
	{ "ret-other-owner", EXACT },
	{ "start", SOME },
	{ "timing", EXACT },
	{ "vmptrld-alone", EXACT },
	{ "vmptrld-enter", EXACT },
};

/* A concealed guest looks like the host, and an owner may be unknown. */
static bool owner_fits(const struct tracegen *gen, const struct vmpt_owner *found, int owner)
{
	if (found->kind == VMPT_OWNER_VM)
		return owner >= 0 && tracegen_vm(gen, (size_t)owner)->vmcs == found->vmcs;
	return true;
}

static void compare(const struct script *script, const struct tracegen *gen,
		    const struct tracegen_stream *s, const struct flow_run *run)
{
	size_t i, k = 0;

	for (i = 0; i < run->count; i++, k++) {
		while (script->exact == SOME && k < s->insn_count && run->ips[i] != s->insns[k].ip)
			k++;
		if (k == s->insn_count || run->ips[i] != s->insns[k].ip)
			ck_abort_msg("%s: instruction %zu is at %#llx, executed was %#llx",
				     script->name, i, (unsigned long long)run->ips[i],
				     k < s->insn_count ? (unsigned long long)s->insns[k].ip : 0ULL);
		if (script->exact != ASSUMED &&
		    !owner_fits(gen, &run->space[run->spaces[i]].owner, s->insns[k].owner))
			ck_abort_msg("%s: owner of instruction %zu", script->name, i);
	}
	if (script->exact != SOME)
		ck_assert_msg(k == s->insn_count, "%s: ends after %zu of %zu instructions",
			      script->name, k, s->insn_count);
	else
		ck_assert_uint_gt(run->gap_count, 0);
}

/* The longest row of instructions that both have, in order. */
static size_t common(const struct flow_run *run, const struct tracegen_stream *s)
{
	size_t *best = calloc(s->insn_count + 1, sizeof(*best)), i, k, before, above;

	ck_assert_ptr_nonnull(best);
	for (i = 0; i < run->count; i++)
		for (k = 1, before = 0; k <= s->insn_count; k++, before = above) {
			above = best[k];
			if (run->ips[i] == s->insns[k - 1].ip)
				best[k] = before + 1;
			else if (best[k - 1] > best[k])
				best[k] = best[k - 1];
		}
	k = best[s->insn_count];
	free(best);
	return k;
}

static void compare_about(const struct script *script, const struct tracegen_stream *s,
			  const struct flow_run *run)
{
	size_t same = common(run, s);

	ck_assert_msg(run->count - same <= 2 * run->gap_count,
		      "%s: %zu instructions, %zu of them executed, %zu gaps", script->name,
		      run->count, same, run->gap_count);
	ck_assert_msg(2 * same > s->insn_count, "%s: %zu of %zu instructions", script->name, same,
		      s->insn_count);
}

static void check_stream(const struct script *script, const struct tracegen *gen,
			 const struct tracegen_stream *s, struct vmpt_code *code,
			 const struct vmpt_flow_options *options)
{
	struct vmpt_stream stream = { .data = s->data, .size = s->size, .cpu = -1, .tid = -1 };
	struct flow_run run;

	flow_run(&run, &stream, code, options);
	if (script->exact == ABOUT)
		compare_about(script, s, &run);
	else
		compare(script, gen, s, &run);
	flow_run_free(&run);
}

static void check_script(const struct script *script, const struct vmpt_flow_options *options)
{
	const struct tracegen_options want = { .insns = true };
	struct flow_generated code;
	struct tracegen *gen;
	char path[4096];
	size_t i;

	snprintf(path, sizeof(path), "%s/%s.trace", test_source("tests/tracegen/scripts"),
		 script->name);
	gen = tracegen_run_file(path, &want);
	ck_assert_ptr_nonnull(gen);
	ck_assert_msg(!tracegen_error(gen), "%s", tracegen_error(gen));
	flow_generated_open(&code, gen);
	for (i = 0; i < tracegen_streams(gen); i++)
		check_stream(script, gen, tracegen_stream(gen, i), code.code, options);
	flow_generated_close(&code);
	tracegen_free(gen);
}

START_TEST(truth)
{
	check_script(&scripts[_i], &(struct vmpt_flow_options){ .hash = true, .blocks = true });
}
END_TEST

START_TEST(truth_without_memos)
{
	check_script(&scripts[_i], &(struct vmpt_flow_options){
					   .hash = true,
					   .blocks = true,
					   .returns = VMPT_FLOW_RETURNS_FOLLOW,
					   .off = VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO |
						  VMPT_FLOW_NO_PSB_MEMO,
				   });
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/truth");
	TCase *tcase = tcase_create("scripts");

	tcase_add_loop_test(tcase, truth, 0, (int)VMPT_ARRAY_SIZE(scripts));
	tcase_add_loop_test(tcase, truth_without_memos, 0, (int)VMPT_ARRAY_SIZE(scripts));
	suite_add_tcase(suite, tcase);
	return suite;
}
