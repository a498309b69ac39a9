/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A test rig for a trace unit of model/: a sink that keeps the bytes, physical memory for ToPA
 * output, and packets as one line of text to compare with:
 *
 *   PSB, TSC(0x1000), CBR(20), TIP.PGE(0x401000), TNT(TN), PIP(0x2000,NR), TIP.PGD()
 *
 * IPs are rebuilt against Last IP, as a decoder does (Table 33-18). One unit per program: each test
 * has its own process.
 */
#ifndef VMPT_TESTS_MODEL_RIG_H
#define VMPT_TESTS_MODEL_RIG_H

#include "model/vmpt-model.h"
#include "tests/support/support.h"

/* Decode state, carried from call to call. */
struct packet_text {
	u64 last_ip;
	unsigned int block;
};

/* Append the packets of @bytes to @text, ", " between them. The test fails on bad bytes. */
void packet_text(struct packet_text *state, const u8 *bytes, size_t len, char *text, size_t size);

#define RIG_MEMORY 0x40000

struct rig {
	struct vmpt_unit unit;
	struct vmpt_unit_config config;
	struct vmpt_sink sink;
	struct vmpt_output_memory memory;
	int refuse;	 /* returned by sink or memory instead of taking bytes */
	u64 refuse_from; /* memory: only from this address on */
	u8 bytes[1 << 18];
	size_t size, shown;
	struct packet_text state;
	char text[1 << 18];
	u8 ram[RIG_MEMORY]; /* physical addresses 0 to RIG_MEMORY - 1 */
	unsigned int pmis;
};

extern struct rig rig;

/* A fixture: all capabilities, output to the sink, 64-bit mode at CPL 0, CR3 = 1000H. */
void rig_setup(void);
/* Make a new unit, after a change of rig.config. */
void rig_init(void);

/* IPs of the WRMSR that sets CTL in rig_on() and of the next instruction. */
#define ON_IP	0x400ff0
#define ON_NEXT 0x401000

/* CTL as most tests need it. */
#define CTL (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN)

/* A WRMSR that must succeed. */
void rig_wrmsr(u32 msr, u64 value);
u64 rig_rdmsr(u32 msr);
/* Set CTL and TraceEn. Packets sent up to here are not shown. */
void rig_on(u64 ctl);
/* The same with all packets shown. */
void rig_on_shown(u64 ctl);
/* Clear TraceEn; the WRMSR is at @ip. */
void rig_off(u64 ip);

/* Packets sent since the last call. Pending TNT bits stay. */
const char *rig_text(void);
/* Discard them. */
void rig_skip(void);

#define expect(want) ck_assert_str_eq(rig_text(), want)

/* A mode of 64-bit code. */
struct vmpt_mode mode64(unsigned int cpl, u64 cr3);
/* A far transfer to @target from @ip in the current mode. */
struct vmpt_far far_to(unsigned int kind, u64 ip, u64 target);
void rig_far(const struct vmpt_far *far);
/* Set clocks: cycles, TSC, ART. */
void rig_time(u64 cycles, u64 tsc, u64 art);

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
