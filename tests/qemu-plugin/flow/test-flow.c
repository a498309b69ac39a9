// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From blocks to packets: how the flow handles what QEMU reports and what it does not. Code is
 * hex bytes, one word per instruction; addresses are worked out in comments.
 */
#include "tests/model/rig.h"
#include "tests/qemu-plugin/stand-in.h"

/* ---- on the bench ---- */

/* A jump to RAX, which flushes pending packets, and its target block. */
#define JMP_RAX "ffe0"
#define NOPS	"90 90"

/* Tracing with @ctl; the vCPU is at the block 400000H. */
static void begin(u64 ctl)
{
	stand_in_setup();
	rig.unit.config.options.careful_retc = true;
	flow_unit(&stand_in.vcpu, &rig.unit, true);
	stand_in_run_here(stand_in_block(0x400000, "eb00"));
	rig.unit.mode = stand_in.vcpu.mode;
	rig_on(ctl);
	stand_in.reads = 0;
}

/* JMP RAX at @at to @to, as the last thing of a test. */
static void jump(u64 at, u64 to)
{
	stand_in_run_here(stand_in_block(at, JMP_RAX));
	stand_in_run_here(stand_in_block(to, NOPS));
}

START_TEST(jcc_shows_by_where_execution_goes)
{
	/* 400002: jz +10H (400014), or 400004 */
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "7410"));
	stand_in_run_here(stand_in_block(0x400014, "74ea")); /* back to 400000, or 400016 */
	stand_in_run_here(stand_in_block(0x400016, NOPS));
	ck_assert_uint_eq(stand_in.reads, 0);
	jump(0x400018, 0x500000);
	expect("TNT(TN), TIP(0x500000)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 0);
}
END_TEST

/* inc %rax; jnz to itself: the block restarting shows that the branch was taken. */
START_TEST(loop_of_one_block)
{
	struct qemu_block *loop;

	begin(CTL);
	loop = stand_in_block(0x400002, "48ffc0 75fb");
	for (int i = 0; i < 3; i++)
		stand_in_run_here(loop);
	jump(0x400007, 0x500000);
	expect("TNT(TTN), TIP(0x500000)");
}
END_TEST

/*
 * push; L: mov (%rax),%rcx; jnz L. QEMU cuts the block at the load and continues with a new block
 * there: at the branch's target, although the branch has not executed.
 */
START_TEST(block_cut_where_its_branch_goes)
{
	begin(CTL);
	stand_in_run(stand_in_block(0x400002, "50 488b08 75fb"), 0x400002, 1);
	stand_in_run_here(stand_in_block(0x400003, "488b08"));
	stand_in_run_here(stand_in_block(0x400006, "75fb"));
	stand_in_run_here(stand_in_block(0x400008, NOPS));
	jump(0x40000a, 0x500000);
	expect("TNT(N), TIP(0x500000)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 0);
}
END_TEST

/* One translation serves two addresses: what was translated at 600000 runs at 7000000. */
START_TEST(shared_block)
{
	struct qemu_block *shared, *next;

	begin(CTL);
	shared = stand_in_block(0x600000, "7402");
	next = stand_in_block(0x600004, JMP_RAX);
	stand_in_run_here(stand_in_block(0x400002, JMP_RAX));
	stand_in_run(shared, 0x7000000, 0);
	stand_in_run(next, 0x7000004, 0);
	stand_in_run(shared, 0x600000, 0);
	stand_in_run(next, 0x600004, 0);
	stand_in_run_here(stand_in_block(0x500000, "c3"));
	stand_in_run(shared, 0x7000000, 0);
	stand_in_run(next, 0x7000004, 0);
	stand_in_run_here(stand_in_block(0x500010, NOPS));
	expect("TIP(0x7000000), TNT(T), TIP(0x600000), TNT(T), TIP(0x500000), TIP(0x7000000), "
	       "TNT(T), TIP(0x500010)");
}
END_TEST

START_TEST(calls_and_returns)
{
	/* 400002: call 400100; there ret; 400007: call *rax to 400200; there ret */
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "e8f9000000"));
	stand_in_run_here(stand_in_block(0x400100, "c3"));
	ck_assert_uint_eq(stand_in.reads, 0);
	stand_in_run_here(stand_in_block(0x400007, "ffd0"));
	ck_assert_uint_eq(stand_in.reads, 0);
	stand_in_run_here(stand_in_block(0x400200, "c3"));
	stand_in_run_here(stand_in_block(0x400009, "c3"));
	stand_in_run_here(stand_in_block(0x400300, NOPS));
	expect("TNT(T), TIP(0x400200), TNT(T), TIP(0x400300)");
}
END_TEST

/* A recursion whose CALL stands right before its RET; deeper than the flow remembers. */
START_TEST(ret_to_itself)
{
	struct qemu_block *ret;

	begin(CTL);
	ret = stand_in_block(0x400002, "c3");
	stand_in_run_here(ret);
	stand_in_run_here(ret);
	stand_in_run_here(stand_in_block(0x400300, NOPS));
	expect("TIP(0x400002), TIP(0x400300)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 0);
}
END_TEST

/*
 * QEMU does not report SMIs. Decoders cannot follow RSM: it is shown as an interrupt, with TraceEn
 * set.
 */
START_TEST(rsm)
{
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "0faa"));
	stand_in_run_here(stand_in_block(0x500000, NOPS));
	jump(0x500002, 0x500010);
	expect("FUP(0x400004), TIP(0x500000), TIP(0x500010)");
}
END_TEST

/* Instructions that have not executed make no packets; only the event does. */
START_TEST(faults)
{
	struct qemu_block *ret, *call;

	begin(CTL);
	/* in mid-block */
	stand_in_run(stand_in_block(0x400002, "90 488b08 7410"), 0x400002, 2);
	stand_in_event(0x400003, 0x800000);
	stand_in_run_here(stand_in_block(0x800000, NOPS));
	expect("FUP(0x400003), TIP(0x800000)");
	/* the RET itself: its stack is not mapped */
	ret = stand_in_block(0x800002, "c3");
	stand_in_run_here(ret);
	stand_in_event(0x800002, 0x800000);
	expect("FUP(0x800002), TIP(0x800000)");
	/* the CALL itself: no RET of it may be compressed */
	call = stand_in_block(0x800000, "e8fb000000");
	stand_in_run_here(call);
	stand_in_event(0x800000, 0x800100);
	stand_in_run_here(stand_in_block(0x800100, "c3"));
	stand_in_run_here(stand_in_block(0x800005, NOPS));
	expect("FUP(0x800000), TIP(0x800100), TIP(0x800005)");
	/* the fetch after a branch that was not taken: the branch has executed */
	stand_in_run_here(stand_in_block(0x800007, "74f0"));
	stand_in_event(0x800009, 0x800000);
	expect("TNT(N), FUP(0x800009), TIP(0x800000)");
}
END_TEST

/* An interrupt comes between blocks: the branch before it has executed. */
START_TEST(interrupts)
{
	struct qemu_block *loop;

	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "7410"));
	stand_in_event(0x400014, 0x800000);
	expect("TNT(T), FUP(0x400014), TIP(0x800000)");
	/* a second one at once */
	stand_in_event(0x800000, 0x900000);
	expect("FUP(0x800000), TIP(0x900000)");
	/* a loop of one block, interrupted at its beginning: once around */
	loop = stand_in_block(0x900000, "48ffc0 75fb");
	stand_in_run_here(loop);
	stand_in_event(0x900000, 0x800000);
	expect("TNT(T), FUP(0x900000), TIP(0x800000)");
	/* the same loop, whose first instruction faults: not around */
	stand_in_run_here(stand_in_block(0x800000, JMP_RAX));
	stand_in_run(loop, 0x900000, 1);
	stand_in_event(0x900000, 0x800000);
	expect("TIP(0x900000), FUP(0x900000), TIP(0x800000)");
	/* an indirect jump */
	stand_in_run_here(stand_in_block(0x800000, JMP_RAX));
	stand_in_event(0x123456789a, 0x800000);
	expect("TIP(0x123456789a), FUP(0x123456789a), TIP(0x800000)");
	/* INT 80H */
	stand_in_run_here(stand_in_block(0x800000, "cd80"));
	stand_in_event(0x800000, 0x800100);
	expect("FUP(0x800000), TIP(0x800100)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 0);
}
END_TEST

/* If nothing leads to the next block, no branch is made up. */
START_TEST(astray)
{
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, NOPS));
	stand_in_run_here(stand_in_block(0xa00000, NOPS));
	expect("FUP(0x400004), TIP(0xa00000)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 1);
}
END_TEST

/* A reset comes between blocks, where at most the branch before it is known. */
START_TEST(reset)
{
	struct qemu_block *vector;

	begin(CTL);
	vector = stand_in_block(0xfffffff0, "90");
	stand_in_run_here(stand_in_block(0x400002, "7410"));
	stand_in.reg[QREG_CR0] = 0;
	stand_in.reg[QREG_EFER] = 0;
	stand_in.reg[QREG_CS] = 0xf000;
	stand_in_run(vector, 0xfff0, 0);
	expect("TNT(N), FUP(0x400004), MODE.Exec(16), TIP(0xfffffff0)");
	stand_in_run(stand_in_block(0xfffffff1, "ffe0"), 0xfff1, 0);
	stand_in_run(vector, 0xfff0, 0);
	expect("FUP(0xfffffff1), TIP(0xfffffff0)");
	stand_in_run(stand_in_block(0xfffffff1, "eb80"), 0xfff1, 0);
	stand_in_run(vector, 0xfff0, 0);
	expect("FUP(0xffffff73), TIP(0xfffffff0)");
	ck_assert_uint_eq(stand_in.vcpu.astray, 3);
}
END_TEST

/* SYSRET to CPL 3 and an interrupt before the first instruction there; only user code is traced.
 * If the mode change is missed, so is the visit to user mode. */
START_TEST(user_code_of_no_instruction)
{
	const u64 frame[] = { 0x403000, 0x1b, 0x202, 0x7000, 0x2b };

	begin(VMPT_CTL_USER | VMPT_CTL_BRANCH_EN);
	memcpy(stand_in.bytes + 0x800, frame, sizeof(frame));
	stand_in.reg[QREG_RSP] = stand_in.page + 0x800;
	stand_in_run_here(stand_in_block(0x400002, "480f07"));
	stand_in_event(0x403000, 0x800000);
	expect("MODE.Exec(64), TIP.PGE(0x403000), FUP(0x403000), TIP.PGD()");
}
END_TEST

/* The same without it: an exception in user code comes back to it by IRET. */
START_TEST(privilege)
{
	begin(VMPT_CTL_USER | VMPT_CTL_BRANCH_EN);
	stand_in_run_here(stand_in_block(0x400002, "480f07"));
	stand_in.reg[QREG_CS] = 0x1b;
	stand_in_run_here(stand_in_block(0x403000, "0f05"));
	stand_in.reg[QREG_CS] = 8;
	stand_in_run_here(stand_in_block(0x800000, "48cf"));
	stand_in.reg[QREG_CS] = 0x13; /* 32 bits */
	stand_in_run_here(stand_in_block(0x403002, "7410"));
	stand_in_run_here(stand_in_block(0x403014, JMP_RAX));
	stand_in_run_here(stand_in_block(0x403000, NOPS));
	expect("MODE.Exec(64), TIP.PGE(0x403000), TIP.PGD(), "
	       "MODE.Exec(32), TIP.PGE(0x403002), TNT(T), TIP(0x403000)");
}
END_TEST

START_TEST(mov_cr3)
{
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "0f22d8"));
	stand_in.reg[QREG_CR3] = 0x5000;
	stand_in_run_here(stand_in_block(0x400005, NOPS));
	expect("PIP(0x5000)");
	/* one that faults */
	stand_in_run_here(stand_in_block(0x400007, "0f22d8"));
	stand_in_event(0x400007, 0x800000);
	expect("FUP(0x400007), TIP(0x800000)");
}
END_TEST

/* REP MOVSB may repeat any number of times. */
START_TEST(rep)
{
	struct qemu_block *rep;

	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "90 f3a4"));
	rep = stand_in_block(0x400003, "f3a4");
	for (int i = 0; i < 3; i++)
		stand_in_run_here(rep);
	stand_in_run_here(stand_in_block(0x400005, NOPS));
	ck_assert_uint_eq(stand_in.reads, 0);
	jump(0x400007, 0x500000);
	expect("TIP(0x500000)");
}
END_TEST

/* Blocks that QEMU drops are kept while they execute. */
START_TEST(flush)
{
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "c3"));
	flow_keep_block(&stand_in.vcpu);
	translate_free(&stand_in.plugin);
	stand_in_run_here(stand_in_block(0x500000, "7402"));
	flow_keep_block(&stand_in.vcpu);
	translate_free(&stand_in.plugin);
	stand_in_run_here(stand_in_block(0x500004, JMP_RAX));
	stand_in_run_here(stand_in_block(0x600000, NOPS));
	expect("TIP(0x500000), TNT(T), TIP(0x600000)");
}
END_TEST

/* LGDT's operand: the limit, then the base of a table with other segments. */
START_TEST(lgdt)
{
	struct qemu_block *tb;
	u64 base = stand_in.page;
	/* selector 10H there: 16-bit code */
	const u64 other = 0x008ffb000000ffff;

	begin(CTL);
	base = stand_in.page + 0x400;
	memcpy(stand_in.bytes + 0x402, &base, 8);
	memcpy(stand_in.bytes + 0x410, &other, 8);
	tb = stand_in_block(0x400002, "0f0110");
	stand_in_run_here(tb);
	ck_assert_ptr_nonnull(tb->put[0].load);
	tb->put[0].load(0, 2, stand_in.page + 0x400, tb->put[0].load_user);
	tb->put[0].load(0, 8, stand_in.page + 0x402, tb->put[0].load_user);
	stand_in_run_here(stand_in_block(0x400005, "48cb"));
	stand_in.reg[QREG_CS] = 0x13;
	stand_in_run_here(stand_in_block(0x403000, NOPS));
	expect("MODE.Exec(16), TIP(0x403000)");
}
END_TEST

/* LLDT of a register; segments of that table, its first entry too, have a base. */
START_TEST(lldt)
{
	/* 18H in the GDT: an LDT (16 bytes in long mode); in it 32-bit code of CPL 3 at 20000000H
	 */
	const u64 code = 0x20c0fb0000000fff;
	u64 system[2];

	begin(CTL);
	system[0] = (stand_in.page + 0x600) & 0xffffff;
	system[0] = system[0] << 16 | 0x820000000fff | ((stand_in.page + 0x600) >> 24 & 0xff) << 56;
	system[1] = (stand_in.page + 0x600) >> 32;
	memcpy(stand_in.bytes + 0x18, system, sizeof(system));
	memcpy(stand_in.bytes + 0x600, &code, 8);
	stand_in.reg[QREG_RCX] = 0xffff0018;
	stand_in_run_here(stand_in_block(0x400002, "0f00d1"));
	ck_assert_uint_eq(stand_in.vcpu.cpu.ldt, stand_in.page + 0x600);
	stand_in_run_here(stand_in_block(0x400005, "48cb"));
	stand_in.reg[QREG_CS] = 7;
	stand_in_run(stand_in_block(0x20000010, "74fe"), 0x10, 0);
	stand_in_run(stand_in_block(0x20000012, NOPS), 0x12, 0);
	expect("MODE.Exec(32), TIP(0x20000010)");
	/* an event there has a linear address */
	stand_in.reg[QREG_CS] = 8;
	stand_in_event(0x20000014, 0x800000);
	expect("TNT(N), FUP(0x20000014), MODE.Exec(64), TIP(0x800000)");
	/* LLDT 0: none */
	stand_in.reg[QREG_R9] = 0;
	stand_in_run_here(stand_in_block(0x800000, "410f00d1"));
	ck_assert_uint_eq(stand_in.vcpu.cpu.ldt, 0);
}
END_TEST

/* LIDT and its gates: a page fault, an interrupt, one whose gate is written later. */
START_TEST(vectors)
{
	u64 base = stand_in.page;
	struct qemu_block *tb;

	begin(CTL | VMPT_CTL_EVENT_EN);
	stand_in.plugin.events = true;
	base = stand_in.page + 4096;
	memcpy(stand_in.bytes + 0x502, &base, 8);
	stand_in_gate(14, 0xffffffff81000e00);
	stand_in_gate(0xec, 0xffffffff8100ec00);
	tb = stand_in_block(0x400002, "0f0118");
	stand_in_run_here(tb);
	ck_assert_ptr_nonnull(tb->put[0].load);
	tb->put[0].load(0, 2, stand_in.page + 0x500, tb->put[0].load_user);
	tb->put[0].load(0, 8, stand_in.page + 0x502, tb->put[0].load_user);
	/* after the block, where a fetch may fault: an exception by its vector */
	stand_in.reg[QREG_CR2] = 0x400005;
	stand_in_event(0x400005, 0xffffffff81000e00);
	expect("EVD.PFA(0x400005), CFE.INTR(14), FUP(0x400005), TIP(0xffffffff81000e00)");
	stand_in_event(0xffffffff81000e00, 0xffffffff8100ec00);
	expect("CFE.INTR(236), FUP(0xffffffff81000e00), TIP(0xffffffff8100ec00)");
	stand_in_gate(0x20, 0xffffffff81002000);
	stand_in_event(0xffffffff8100ec00, 0xffffffff81002000);
	expect("CFE.INTR(32), FUP(0xffffffff8100ec00), TIP(0xffffffff81002000)");
}
END_TEST

/* RFLAGS.IF, which STI, CLI and POPF change in mid-block, and only where allowed. */
START_TEST(interrupt_flag)
{
	u64 flags = 0x246;

	begin(CTL | VMPT_CTL_EVENT_EN);
	stand_in.plugin.events = true;
	memcpy(stand_in.bytes + 0x800, &flags, 8);
	stand_in.reg[QREG_RSP] = stand_in.page + 0x800;
	stand_in_run_here(stand_in_block(0x400002, "fb 90 fa fa 9d"));
	expect("MODE.Exec(64,IF), FUP(0x400002), MODE.Exec(64), FUP(0x400004), MODE.Exec(64,IF), "
	       "FUP(0x400006)");
	/* CPL 3, IOPL 0: CLI faults, POPF leaves IF alone */
	stand_in.vcpu.mode.cpl = 3;
	flags = 0x46;
	memcpy(stand_in.bytes + 0x800, &flags, 8);
	stand_in_run_here(stand_in_block(0x400007, "9d fa"));
	expect("");
}
END_TEST

/* Paging off and real mode: linear addresses are physical, and CS has a base. */
START_TEST(real_mode)
{
	begin(CTL);
	stand_in_run_here(stand_in_block(0x400002, "0f22c0"));
	stand_in.reg[QREG_CR0] = 0;
	stand_in.reg[QREG_EFER] = 0;
	stand_in_run_here(stand_in_block(0x400005, "cb"));
	stand_in.reg[QREG_CS] = 0xf000;
	stand_in_run(stand_in_block(0xffff0, "74fe"), 0xfff0, 0);
	expect("MODE.Exec(16), TIP(0xffff0)");
	ck_assert_uint_eq(stand_in.vcpu.cpu.cs_base, 0xf0000);
	/* jz to itself, not taken: IP wraps, and QEMU's address does not */
	stand_in_run(stand_in_block(0xffff2, JMP_RAX), 0xfff2, 0);
	stand_in_run(stand_in_block(0xf1000, NOPS), 0x1000, 0);
	expect("TNT(N), TIP(0xf1000)");
}
END_TEST

RIG_SUITE("qemu-plugin/flow", jcc_shows_by_where_execution_goes, loop_of_one_block,
	  block_cut_where_its_branch_goes, shared_block, calls_and_returns, ret_to_itself, rsm,
	  reset, faults, interrupts, astray, user_code_of_no_instruction, privilege, mov_cr3, rep,
	  flush, lgdt, lldt, vectors, interrupt_flag, real_mode)
