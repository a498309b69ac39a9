// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow decoder alone: code and packets by hand, after the manual's rules and examples, and the
 * flow that they describe.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/flow.h"
#include "tests/rtit/write.h"
#include "tests/support/support.h"

struct code {
	u64 ip;
	u8 kind, len;
	u64 target;
};

#define CODE_MAX 12

struct flow_case {
	const char *name;
	struct code code[CODE_MAX];
	/* as for rtit_write() */
	const char *packets;
	/*
	 * IPs executed; +IP enabled, -IP disabled, >IP where it then went, IP>IP far transfer,
	 * !IP overflow, stop, ~IP disabled without a packet, cr3=N, lost, E2 …
	 */
	const char *flow;
	/* RANGE0 is the filter, RANGE1 stops; 0: not known */
	u64 base, limit, stop_base, stop_limit;
	u8 tnt_buff; /* read at the end */
	bool middle;
	const char *error; /* a part of it */
};

#define NOP(at, n)                        \
	{                                 \
		at, RTIT_INSN_OTHER, n, 0 \
	}
#define JCC(at, n, to)                   \
	{                                \
		at, RTIT_INSN_JCC, n, to \
	}
#define JMP(at, n, to)                   \
	{                                \
		at, RTIT_INSN_JMP, n, to \
	}
#define CALL(at, n, to)                   \
	{                                 \
		at, RTIT_INSN_CALL, n, to \
	}
#define IJMP(at, n)                              \
	{                                        \
		at, RTIT_INSN_JMP_INDIRECT, n, 0 \
	}
#define RET(at)                         \
	{                               \
		at, RTIT_INSN_RET, 1, 0 \
	}
#define FAR(at, n)                      \
	{                               \
		at, RTIT_INSN_FAR, n, 0 \
	}
#define MOV_CR3(at)                        \
	{                                  \
		at, RTIT_INSN_PAGING, 3, 0 \
	}
#define WRMSR(at)                         \
	{                                 \
		at, RTIT_INSN_WRMSR, 2, 0 \
	}

static const struct flow_case cases[] = {
	{ .name = "Table 3",
	  .code = { NOP(0x100, 2), FAR(0x102, 3), NOP(0x10e, 5) },
	  .packets = "PGE:102 PGD:105 TIP:983 PGE:10e PGD:10e TIP:345",
	  .flow = "+102 102 -105 >983 +10e -10e >345" },
	{ .name = "return compression without nested calls (Figure 6)",
	  .code = { NOP(0x0, 5), CALL(0x5, 5, 0x400), NOP(0xa, 1), NOP(0x400, 1), RET(0x401) },
	  .packets = "PGE:0 TNT:T FAR:b TIP:900",
	  .flow = "+0 0 5 400 401 a b>900" },
	{ .name = "return compression with nested calls (Figure 7)",
	  .code = { CALL(0x5, 5, 0x400), NOP(0xa, 1), NOP(0x400, 5), CALL(0x405, 4, 0x500),
		    NOP(0x409, 3), RET(0x40c), NOP(0x500, 2), RET(0x502), NOP(0xb, 1) },
	  .packets = "PGE:5 TNT:T TIP:a PGD:b",
	  .flow = "+5 5 400 405 500 502 409 40c a -b" },
	{ .name = "a RET without CALL, compressed",
	  .code = { RET(0x10) },
	  .packets = "PGE:10 TNT:T",
	  .flow = "+10",
	  .error = "no CALL" },
	{ .name = "the last CALL is forgotten in an overflow",
	  .code = { CALL(0x10, 5, 0x20), JCC(0x20, 2, 0x30), RET(0x30) },
	  .packets = "PGE:10 TNT:T OVF:30 TNT:T",
	  .flow = "+10 10 20 !30",
	  .error = "no CALL" },
	{ .name = "walking out: PGD with NLIP (row 3)",
	  .code = { NOP(0x100, 1), NOP(0x101, 2), NOP(0x103, 1) },
	  .packets = "PGE:100 PGD:103",
	  .flow = "+100 100 101 -103" },
	{ .name = "direct JMP out: PGD with NLIP (row 8)",
	  .code = { NOP(0x100, 1), JMP(0x101, 2, 0x900), NOP(0x900, 1) },
	  .packets = "PGE:100 PGD:103",
	  .flow = "+100 100 101 -103" },
	{ .name = "taken Jcc out: TNT, PGD with NLIP (row 15)",
	  .code = { JCC(0x100, 2, 0x900), NOP(0x102, 1), NOP(0x900, 1) },
	  .packets = "PGE:100 TNT:T PGD:102",
	  .flow = "+100 100 -102" },
	{ .name = "indirect JMP out: TIP, then PGD with NLIP (row 24)",
	  .code = { NOP(0x100, 1), IJMP(0x101, 2), NOP(0x900, 1), NOP(0x901, 2) },
	  .packets = "PGE:100 TIP:900 PGD:103",
	  .flow = "+100 100 101 -103" },
	{ .name = "JMP stays inside, and the code at its NLIP leaves: the ranges decide",
	  .code = { JMP(0x100, 2, 0x110), NOP(0x102, 2), JMP(0x110, 2, 0x102) },
	  .packets = "PGE:100 PGD:102",
	  .flow = "+100 100 110 -102",
	  .base = 0x100,
	  .limit = 0x200 },
	{ .name = "the same, and the JMP leaves",
	  .code = { JMP(0x100, 2, 0x110), NOP(0x102, 2), JMP(0x110, 2, 0x102) },
	  .packets = "PGE:100 PGD:102",
	  .flow = "+100 100 -102",
	  .base = 0x100,
	  .limit = 0x110 },
	{ .name = "the same, with unknown ranges: the JMP leaves",
	  .code = { JMP(0x100, 2, 0x110), NOP(0x102, 2), JMP(0x110, 2, 0x102) },
	  .packets = "PGE:100 PGD:102",
	  .flow = "+100 100 -102" },
	{ .name = "far transfer that leaves, ContextEn 1: PGD, TIP (row 30)",
	  .code = { NOP(0x100, 1), FAR(0x101, 2) },
	  .packets = "PGE:100 PGD:103 PSB TIP:900 PGE:100",
	  .flow = "+100 100 101 -103 >900 +100" },
	{ .name = "a far transfer's fault: CLIP (row 27, footnote 2)",
	  .code = { NOP(0x100, 1), FAR(0x101, 2) },
	  .packets = "PGE:100 FAR:101 TIP:900 PGD:900",
	  .flow = "+100 100 101>900 -900" },
	{ .name = "PSB between FUP.FAR and TIP (3.3.9)",
	  .code = { FAR(0x100, 2), NOP(0x900, 1) },
	  .packets = "PGE:100 FAR:102 PSB TIP:900 PGD:901",
	  .flow = "+100 100 102>900 900 -901" },
	{ .name = "E1: FUP.FAR in the far transfer",
	  .code = { FAR(0x100, 7), NOP(0x900, 1) },
	  .packets = "PGE:100 FAR:104 TIP:900 PGD:901",
	  .flow = "+100 E1 100 104>900 900 -901" },
	{ .name = "E2: another PGD",
	  .code = { NOP(0x100, 1) },
	  .packets = "PGE:100 PGD:101 PGD:500 PGE:100 PGD:100",
	  .flow = "+100 100 -101 E2 +100 -100" },
	{ .name = "E5: the TIP after FUP.BuffOvf",
	  .code = { NOP(0x100, 1), JCC(0x200, 2, 0x300) },
	  .packets = "PGE:100 OVF:200 TIP:200 TNT:N PGD:202",
	  .flow = "+100 !200 E5 200 -202" },
	{ .name = "E4: TraceStop in an overflow, and tracing goes on",
	  .code = { NOP(0x100, 1), JCC(0x200, 2, 0x300) },
	  .packets = "PGE:100 STOP OVF:200 TNT:N PGD:202",
	  .flow = "+100 stop !200 200 -202" },
	{ .name = "an overflow takes the TIP of a FUP.FAR, E4",
	  .code = { FAR(0x100, 2), JCC(0x200, 2, 0x300) },
	  .packets = "PGE:100 FAR:102 STOP OVF:200 TNT:N PGD:202",
	  .flow = "+100 100 stop !200 200 -202" },
	{ .name = "after FUP.BuffOvf FilterEn is 0",
	  .code = { NOP(0x100, 1), NOP(0x200, 2) },
	  .packets = "PGE:100 OVF:200 PGE:100 PGD:101",
	  .flow = "+100 !200 +100 100 -101" },
	{ .name = "FUP.PCC changes nothing",
	  .code = { NOP(0x100, 1), JCC(0x101, 2, 0x100) },
	  .packets = "PGE:100 TNT:T PCC:77 TNT:N PGD:103",
	  .flow = "+100 100 101 100 101 -103" },
	{ .name = "TraceStop leaves TNT_BUFF: read",
	  .code = { JCC(0x100, 2, 0x110), NOP(0x110, 1), NOP(0x111, 1), NOP(0x112, 1) },
	  .packets = "PGE:100 STOP",
	  .flow = "+100 stop 100 110 111 ~112",
	  .base = 0x100,
	  .limit = 0x800,
	  .stop_base = 0x112,
	  .stop_limit = 0x120,
	  .tnt_buff = 3 },
	{ .name = "TraceStop leaves TNT_BUFF: sent at the next enable",
	  .code = { JCC(0x100, 2, 0x110), NOP(0x110, 1), NOP(0x111, 1), NOP(0x112, 1) },
	  .packets = "PGE:100 STOP PSB TNT:T PGE:110 PGD:111",
	  .flow = "+100 stop 100 110 111 ~112 +110 110 -111",
	  .base = 0x100,
	  .limit = 0x800,
	  .stop_base = 0x112,
	  .stop_limit = 0x120 },
	{ .name = "TraceStop, ranges not known",
	  .code = { JCC(0x100, 2, 0x110), NOP(0x110, 1) },
	  .packets = "PGE:100 STOP PSB PGE:110 PGD:111",
	  .flow = "+100 stop ~100 +110 110 -111" },
	{ .name = "Trace_En cleared without FUP.PGD (4.2.8)",
	  .code = { NOP(0x100, 1), WRMSR(0x101), NOP(0x103, 1), NOP(0x200, 1) },
	  .packets = "PGE:100 PSB PGE:200 PGD:201",
	  .flow = "+100 100 101 ~103 +200 200 -201" },
	{ .name = "PIP: at MOV CR3",
	  .code = { NOP(0x100, 1), MOV_CR3(0x101), NOP(0x104, 1) },
	  .packets = "PGE:100 PIP:5000 PGD:105",
	  .flow = "+100 100 101 cr3=5000 104 -105" },
	{ .name = "from the middle: a TIP gives the place; a RET to a CALL that was not seen",
	  .code = { JCC(0x100, 2, 0x110), RET(0x102), IJMP(0x200, 2), NOP(0x300, 1) },
	  .packets = "TNT:TT TIP:100 TNT:NT TNT:NN TIP:300 PGD:301",
	  .flow = "100 102 lost 300 -301",
	  .middle = true },
	{ .name = "from the middle: that TIP is of a far transfer that left",
	  .code = { JCC(0x100, 2, 0x110) },
	  .packets = "TIP:900 PGE:100 TNT:N PGD:102",
	  .flow = "+100 100 -102",
	  .middle = true },
	{ .name = "a TIP where a TNT must be",
	  .code = { JCC(0x100, 2, 0x110) },
	  .packets = "PGE:100 TIP:200",
	  .flow = "+100",
	  .error = "at 0x100: a Jcc needs a TNT, the trace has a TIP" },
	{ .name = "a FUP.FAR that cannot be reached",
	  .code = { NOP(0x100, 1), IJMP(0x101, 2) },
	  .packets = "PGE:100 FAR:105 TIP:1",
	  .flow = "+100 100",
	  .error = "at 0x101: the indirect JMP needs a TIP, the trace has a FUP.FAR of 0x105" },
	{ .name = "a far transfer elsewhere than in the FUP.FAR",
	  .code = { FAR(0x100, 2) },
	  .packets = "PGE:100 FAR:105 TIP:1",
	  .flow = "+100",
	  .error = "needs a FUP with 0x102" },
	{ .name = "a TNT where packets are disabled",
	  .code = { NOP(0x100, 1) },
	  .packets = "PGE:100 PGD:100 TNT:T",
	  .flow = "+100 -100",
	  .error = "disabled" },
	{ .name = "JMP to itself",
	  .code = { JMP(0x100, 2, 0x100) },
	  .packets = "PGE:100 TIP:5",
	  .flow = "+100",
	  .error = "a loop that makes no packet" },
};

/* ---- the results ---- */

struct seen {
	const struct flow_case *c;
	char text[512];
};

static void say(struct seen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct seen *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list args;

	va_start(args, fmt);
	n += (size_t)snprintf(s->text + n, sizeof(s->text) - n, n ? " " : "");
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, args);
	va_end(args);
}

static bool insn(void *opaque, u64 ip, struct rtit_insn *out)
{
	const struct seen *s = opaque;
	const struct code *code;

	for (code = s->c->code; code < s->c->code + CODE_MAX; code++) {
		if (!code->len || code->ip != ip)
			continue;
		*out = (struct rtit_insn){ .kind = code->kind,
					   .len = code->len,
					   .target = code->target };
		return true;
	}
	return false;
}

static bool executed(void *opaque, u64 ip, u64 offset)
{
	(void)offset;
	say(opaque, "%llx", (unsigned long long)ip);
	return true;
}

static bool event(void *opaque, const struct rtit_flow_event *e)
{
	unsigned long long from = e->from, to = e->to, cr3 = e->cr3;
	struct seen *s = opaque;

	switch (e->kind) {
	case RTIT_FLOW_ENABLED:
		say(s, "+%llx", to);
		break;
	case RTIT_FLOW_DISABLED:
		say(s, "-%llx", from);
		break;
	case RTIT_FLOW_QUIET:
		say(s, "~%llx", from);
		break;
	case RTIT_FLOW_FAR:
		say(s, "%llx>%llx", from, to);
		break;
	case RTIT_FLOW_LEFT:
		say(s, ">%llx", to);
		break;
	case RTIT_FLOW_OVERFLOW:
		say(s, "!%llx", to);
		break;
	case RTIT_FLOW_STOP:
		say(s, "stop");
		break;
	case RTIT_FLOW_PAGING:
		say(s, "cr3=%llx", cr3);
		break;
	case RTIT_FLOW_LOST:
		say(s, "lost");
		break;
	default:
		say(s, "E%u", e->number);
	}
	return true;
}

START_TEST(test_flow)
{
	const struct flow_case *c = &cases[_i];
	struct rtit_flow_tnt tnt = { .value = c->tnt_buff };
	struct vmpt_rtit_regs regs = { .lip = { c->base, c->stop_base, c->limit, c->stop_limit },
				       .events = VMPT_RTIT_EVENT_RANGE0 | 1 << 3 };
	struct rtit_flow_options options = { .middle = c->middle, .tnt = &tnt };
	struct seen s = { .c = c };
	struct rtit_flow_ops ops = {
		.insn = insn, .executed = executed, .event = event, .opaque = &s
	};
	struct rtit_flow_result result;
	struct rtit_write b = { .size = 0 };
	bool done;

	rtit_write(&b, c->packets);
	options.regs = c->limit ? &regs : NULL;
	options.tnts = c->tnt_buff ? 1 : 0;
	tnt.offset = b.size;
	done = rtit_flow_run(b.data, b.size, &options, &ops, &result);
	ck_assert_msg(done == !c->error && (!c->error || strstr(result.error, c->error)),
		      "%s: \"%s\"", c->name, result.error);
	/* Before an error, instructions of the failed walk may have been reported. */
	ck_assert_msg(c->error ? strncmp(s.text, c->flow, strlen(c->flow)) == 0
			       : strcmp(s.text, c->flow) == 0,
		      "%s: \"%s\", not \"%s\"", c->name, s.text, c->flow);
}
END_TEST

/* ---- instructions ---- */

static const struct {
	unsigned int bits;
	u8 kind, size;
	u8 bytes[8];
	u64 target; /* from 0x1000 on */
} insns[] = {
	{ 64, RTIT_INSN_OTHER, 1, { 0x90 }, 0 },
	{ 64, RTIT_INSN_JCC, 2, { 0x74, 0x10 }, 0x1012 },
	{ 64, RTIT_INSN_JCC, 6, { 0x0f, 0x85, 0xfa, 0xff, 0xff, 0xff }, 0x1000 },
	{ 64, RTIT_INSN_JCC, 2, { 0xe2, 0xfe }, 0x1000 }, /* LOOP */
	{ 64, RTIT_INSN_JCC, 2, { 0xe3, 0x00 }, 0x1002 }, /* JRCXZ */
	{ 64, RTIT_INSN_JMP, 2, { 0xeb, 0xfe }, 0x1000 },
	{ 64, RTIT_INSN_JMP, 5, { 0xe9, 0, 1, 0, 0 }, 0x1105 },
	{ 64, RTIT_INSN_CALL, 5, { 0xe8, 0, 0, 0, 0 }, 0x1005 },
	{ 32, RTIT_INSN_JMP, 4, { 0x66, 0xe9, 0, 0xf0 }, 0x0004 },
	{ 32, RTIT_INSN_JMP, 5, { 0xe9, 0, 0xe0, 0xff, 0xff }, 0xfffff005 },
	{ 64, RTIT_INSN_JMP_INDIRECT, 2, { 0xff, 0xe0 }, 0 },
	{ 64, RTIT_INSN_CALL_INDIRECT, 2, { 0xff, 0xd0 }, 0 },
	{ 64, RTIT_INSN_CALL_INDIRECT, 3, { 0xff, 0x50, 0x08 }, 0 },
	{ 64, RTIT_INSN_RET, 1, { 0xc3 }, 0 },
	{ 64, RTIT_INSN_RET, 3, { 0xc2, 8, 0 }, 0 },
	{ 64, RTIT_INSN_FAR, 1, { 0xcb }, 0 },			   /* RETF */
	{ 64, RTIT_INSN_FAR, 2, { 0xff, 0x28 }, 0 },		   /* JMP far */
	{ 64, RTIT_INSN_FAR, 2, { 0xff, 0x18 }, 0 },		   /* CALL far */
	{ 32, RTIT_INSN_FAR, 7, { 0xea, 0, 0, 0, 0, 8 }, 0 },	   /* JMP 8:0 */
	{ 64, RTIT_INSN_FAR, 2, { 0x48, 0xcf }, 0 },		   /* IRETQ */
	{ 64, RTIT_INSN_FAR, 2, { 0x0f, 0x05 }, 0 },		   /* SYSCALL */
	{ 64, RTIT_INSN_FAR, 3, { 0x48, 0x0f, 0x07 }, 0 },	   /* SYSRET */
	{ 32, RTIT_INSN_FAR, 2, { 0x0f, 0x34 }, 0 },		   /* SYSENTER */
	{ 64, RTIT_INSN_FAR, 3, { 0x48, 0x0f, 0x35 }, 0 },	   /* SYSEXIT */
	{ 64, RTIT_INSN_FAR, 2, { 0xcd, 0x80 }, 0 },		   /* INT 80H */
	{ 64, RTIT_INSN_FAR, 1, { 0xcc }, 0 },			   /* INT3 */
	{ 32, RTIT_INSN_OTHER, 1, { 0xce }, 0 },		   /* INTO: rarely taken */
	{ 64, RTIT_INSN_PAGING, 3, { 0x0f, 0x22, 0xd8 }, 0 },	   /* MOV CR3 */
	{ 64, RTIT_INSN_PAGING, 3, { 0x0f, 0x22, 0xc0 }, 0 },	   /* MOV CR0 */
	{ 64, RTIT_INSN_OTHER, 3, { 0x0f, 0x20, 0xd8 }, 0 },	   /* from CR3 */
	{ 64, RTIT_INSN_OTHER, 4, { 0x44, 0x0f, 0x22, 0xc0 }, 0 }, /* MOV CR8 */
	{ 64, RTIT_INSN_WRMSR, 2, { 0x0f, 0x30 }, 0 },
};

START_TEST(test_insn)
{
	struct rtit_insn i;

	ck_assert(rtit_insn_decode(&i, 0x1000, insns[_i].bytes, sizeof(insns[_i].bytes),
				   insns[_i].bits));
	ck_assert_uint_eq(i.len, insns[_i].size);
	ck_assert_str_eq(rtit_insn_name(i.kind), rtit_insn_name(insns[_i].kind));
	ck_assert_uint_eq(i.target, insns[_i].target);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit/flow");
	TCase *tc = tcase_create("flow");

	tcase_add_loop_test(tc, test_flow, 0, VMPT_ARRAY_SIZE(cases));
	tcase_add_loop_test(tc, test_insn, 0, VMPT_ARRAY_SIZE(insns));
	suite_add_tcase(suite, tc);
	return suite;
}
