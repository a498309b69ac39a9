/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A test rig for an RTIT unit: a sink that keeps the bytes and checks their addresses, and packets
 * as one line of text to compare with, with full LIPs:
 *
 *   PSB, FUP.PGE 401000, TNT TN, TIP 983 +12, PIP 2000 PG, MTC 2:5a, STS 45/6 504030201, TraceSTOP
 *
 * Numbers are hexadecimal, except the ratios of STS and cycle counts. One unit per program: each
 * test has its own process.
 */
#ifndef VMPT_TESTS_MODEL_RTIT_RIG_H
#define VMPT_TESTS_MODEL_RTIT_RIG_H

#include "model/vmpt-rtit.h"
#include "tests/support/support.h"

/* Decode state: LIPs are rebuilt from Last LIP by Table 18, independently of the decoder. */
struct rtit_text {
	u64 last_lip;
	bool valid;
	bool keep; /* a PSB does not clear it: 3.3.9's late clearing */
};

/* Append the packets of @bytes to @text, ", " between them. The test fails on bad bytes. */
void rtit_text(struct rtit_text *state, const u8 *bytes, size_t len, bool cycle_acc, char *text,
	       size_t size);

struct rig {
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_unit_config config;
	struct vmpt_rtit_sink sink;
	int refuse;	    /* returned by the sink instead of taking bytes … */
	unsigned int takes; /* … after this many calls */
	u8 bytes[1 << 18];
	u64 pa[1 << 18];
	size_t size, shown;
	u64 base, mask, offset; /* as written last; offset advances with the bytes */
	struct rtit_text state;
	bool cycle_acc;
	char text[1 << 20];
};

extern struct rig rig;

/* MSRs by their addresses in 3.3 */
#define LIP0	       0x760
#define LIP1	       0x761
#define LIP2	       0x762
#define LIP3	       0x763
#define CTL	       0x768
#define STATUS	       0x769
#define CNTP	       0x76b
#define EVENTS	       0x76c
#define LAST_LIP       0x76e
#define LAST_CALL_NLIP 0x76f
#define BASE_ADDR      0x770
#define LIMIT_MASK     0x771
#define OFFSET	       0x772
#define CR3_MATCH      0x777
#define PKT_CNT	       0x77c
#define TNT_BUFF       0x77d

/* RTIT_CTL, Table 4 */
#define TRACE_EN     0x0001
#define CYCLE_ACC    0x0002
#define OS	     0x0004
#define USER	     0x0008
#define STS_ON_CR3   0x0010
#define CR3_EN	     0x0080
#define DEST	     0x0100
#define MTC_EN	     0x0200
#define STS_EN	     0x0400
#define CMPRS_RET    0x0800
#define LESS_PKTS    0x1000
#define TRACE_ACTIVE 0x2000
#define MTC_RANGE(n) ((u64)(n) << 14)
#define BOTH	     (OS | USER) /* what most tests trace */

/* RTIT_STATUS, 3.3.3 */
#define FILTER_EN	1u
#define CONTEXT_EN	2u
#define TRIGGER_EN	4u
#define BUFFER_OVERFLOW 8u

/* RTIT_EVENTS, Tables 6 and 7 */
#define EVENT(filter, stop) ((u64)(filter) | (u64)(stop) << 3)
#define RANGE0		    0
#define RANGE1		    1
#define RANGES		    2
#define NEVER		    6
#define ALWAYS		    7

/*
 * A fixture: CTL has been read, the filter is always on, TraceStop always off, 4 KiB of output at
 * 10000000H, CPL 0, CR3 = 1000H, paging on.
 */
void rig_setup(void);
/* Make a new unit, after a change of rig.config. */
void rig_init(void);
/* The same with one erratum, 1 to 7. */
void rig_erratum(unsigned int n);

/* Where the tests' WRMSRs end, unless given. */
#define NEXT 0x600000

/* The MSR must exist and accept the value. */
void wr(u32 msr, u64 value);
void wr_at(u32 msr, u64 value, u64 next_ip);
u64 rd(u32 msr);
/* Set and clear bits of CTL by one WRMSR. */
void ctl_set(u64 bits);
void ctl_clear(u64 bits);
u64 status(void);

/* The filter's RANGE0: @base to @limit - 1; TraceStop's is RANGE1. */
void range0(u64 base, u64 limit);
void range1(u64 base, u64 limit);

/* Enable with @ctl as 3.3.2 recommends: Trace_En, then TraceActive. The packets are not shown. */
void on(u64 ctl);
void on_shown(u64 ctl);
/* Clear TraceActive, then Trace_En. */
void off(void);

/* RANGE0 is the filter: enable outside it, at RIG_OUT; or do so and jump into it. */
#define RIG_IN	  0x401000
#define RIG_LIMIT 0x402000
#define RIG_OUT	  0x300000
void rig_outside(u64 ctl);
void rig_inside(u64 ctl);

/* Packets sent since the last call, drained; pending TNT bits stay. */
const char *rig_text(void);
void rig_skip(void);
#define expect(want)   ck_assert_str_eq(rig_text(), want)
#define expect_nothing expect("")
/* The same as bytes: "b5 83 09". */
void expect_bytes(const char *want);
/* TNT_BUFF must be @want. */
#define expect_tnt(want) ck_assert_uint_eq(rd(TNT_BUFF), want)

/* A far transfer from @ip in the current mode; or to @cpl, or to @cr3. */
void far(u64 ip, u64 target);
void far_cpl(u64 ip, u64 target, unsigned int cpl);
void far_cr3(u64 ip, u64 target, u64 cr3);
/* Other frequent events; a Jcc is 2 bytes before @next. */
void jcc(bool taken, u64 next, u64 target);
void jccs(const char *which); /* "TNT": they stay around 401000H */
void step(u64 next);
void jmp(u64 next, u64 target);
void call(u64 next, u64 target);
void jmp_ind(u64 next, u64 target);
void call_ind(u64 next, u64 target);
void ret(u64 next, u64 target);
void mov_cr3(u64 next, u64 cr3);
/* Advance one clock; the other keeps its value. */
void cycles(u64 more);
void tsc(u64 now);

/*
 * A table of instructions, one per row, with what they send. A row with a name starts with a rig
 * that was just set up, as a check of its own, and those after it go on.
 */
struct rig_row {
	const char *name;
	u64 cr3_match; /* 0: as it is */
	void (*start)(u64 ctl);
	u64 ctl;
	u64 set, clear; /* bits of CTL, before all that follows */
	const char *jccs;
	void (*op)(u64 next, u64 target); /* NULL: the caller's, if any */
	u64 next, target;
	const char *sent; /* NULL: anything */
	u64 tnt, on, off; /* TNT_BUFF; bits of STATUS that are 1 and 0. 0: anything */
	enum { RIG_ANY, RIG_ON, RIG_OFF } packet_en;
};

#define RIG_INSIDE(row, bits)  .name = (row), .start = rig_inside, .ctl = (bits)
#define RIG_OUTSIDE(row, bits) .name = (row), .start = rig_outside, .ctl = (bits)
#define RIG_OP(f, ip, to)      .op = (f), .next = (ip), .target = (to)

/* Rows with names: a loop test's end, and its check @which with @op where rows have none. */
int rig_rows(const struct rig_row *rows, size_t n);
void rig_run(const struct rig_row *rows, size_t n, int which, void (*op)(u64 next, u64 target));

/* A test file's suite of @n tests, each on a fresh rig. */
Suite *rig_suite(const char *name, const TTest *const *tests, size_t n);
#define RIG_SUITE(name, ...)                                           \
	TEST_SUITE()                                                   \
	{                                                              \
		const TTest *const tests[] = { __VA_ARGS__ };          \
                                                                       \
		return rig_suite(name, tests, VMPT_ARRAY_SIZE(tests)); \
	}

/* The same, with @row as a loop test over the rows of a table, @rows of them. */
Suite *rig_table_suite(const char *name, const TTest *row, size_t rows, const TTest *const *tests,
		       size_t n);
#define RIG_TABLE_SUITE(name, row, rows, ...)                                           \
	TEST_SUITE()                                                                    \
	{                                                                               \
		const TTest *const tests[] = { __VA_ARGS__ };                           \
                                                                                        \
		return rig_table_suite(name, row, rows, tests, VMPT_ARRAY_SIZE(tests)); \
	}

#endif
