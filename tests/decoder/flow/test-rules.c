// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The rules of docs/flow.md one by one: packets written out, a page of code, and the instructions
 * that must have been executed, worked out by hand.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/flow-run.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define PAGE 0x401000

/* What is at these addresses; HLT elsewhere. */
static const struct {
	u32 at;
	u8 size, bytes[5];
} code[] = {
	{ 0x401000, 1, { 0x90 } },			   /* nop */
	{ 0x401001, 2, { 0x74, 0x05 } },		   /* je 401008 */
	{ 0x401003, 1, { 0x90 } },			   /* nop */
	{ 0x401004, 2, { 0xff, 0xe0 } },		   /* jmp rax */
	{ 0x401006, 1, { 0xc3 } },			   /* ret */
	{ 0x401008, 5, { 0xe8, 0x03, 0x00, 0x00, 0x00 } }, /* call 401010 */
	{ 0x40100d, 2, { 0xeb, 0xfe } },		   /* jmp 40100d */
	{ 0x401010, 1, { 0x90 } },			   /* nop */
	{ 0x401011, 1, { 0xc3 } },			   /* ret */
	{ 0x401012, 3, { 0x0f, 0x22, 0xd8 } },		   /* mov cr3, rax */
	{ 0x401015, 1, { 0x90 } },			   /* nop */
	{ 0x401016, 2, { 0x75, 0xf8 } },		   /* jne 401010 */
	{ 0x401018, 2, { 0x0f, 0x05 } },		   /* syscall */
	{ 0x40101a, 2, { 0xff, 0xd0 } },		   /* call rax */
	{ 0x40101c, 1, { 0x90 } },			   /* nop */
	{ 0x40101d, 5, { 0xe9, 0xde, 0x0f, 0x00, 0x00 } }, /* jmp 402000 */
	{ 0x401022, 1, { 0x06 } },			   /* push es: not in 64-bit mode */
	{ 0x401030, 2, { 0x75, 0xfe } },		   /* jne 401030 */
	{ 0x401032, 2, { 0xff, 0xe0 } },		   /* jmp rax */
	{ 0x401060, 2, { 0x75, 0x00 } },		   /* jne 401062 */
	{ 0x401062, 1, { 0xc3 } },			   /* ret */
	{ 0x401070, 5, { 0xe8, 0xeb, 0xff, 0xff, 0xff } }, /* call 401060 */
	{ 0x401075, 5, { 0xe8, 0xe6, 0xff, 0xff, 0xff } }, /* call 401060 */
	{ 0x40107a, 2, { 0x75, 0xf4 } },		   /* jne 401070 */
	/* 16-bit code */
	{ 0x401080, 3, { 0xe8, 0x05, 0x00 } }, /* call 401088 */
	{ 0x401083, 2, { 0x75, 0x03 } },       /* jne 401088 */
	{ 0x401085, 3, { 0xc2, 0x04, 0x00 } }, /* ret 4 */
	{ 0x401088, 2, { 0x75, 0x00 } },       /* jne 40108a */
	{ 0x40108a, 2, { 0x66, 0xc3 } },       /* retd */
	{ 0x401ffe, 2, { 0x90, 0xb8 } },       /* nop; mov eax, ... over the page's end */
};

#define AT_401000 "psb exec:64 tsx:0 fup:401000 psbend "

static const struct row {
	const char *packets, *ips, *gaps; /* gaps: reason@IP */
	struct vmpt_flow_options options;
} rows[] = {
	/* The last branch waits for its packet. */
	{ AT_401000, "401000", "", { 0 } },
	{ AT_401000 "tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "tnt:N tip:401006", "401000 401001 401003 401004", "", { 0 } },
	/* A deferred TIP: the bit after the indirect branch's comes first. */
	{ AT_401000 "tnt:NT tip:401016", "401000 401001 401003 401004 401016 401010", "", { 0 } },
	{ AT_401000 "tnt:NT pad*3 tip:401016 tip:401000",
	  "401000 401001 401003 401004 401016 401010 401011 401000",
	  "",
	  { 0 } },
	{ AT_401000 "tnt:NT", "401000 401001 401003", "2@401004", { 0 } },
	/* One right before a compressed RET, with bits before it in the packet and without. */
	{ "psb psbend exec:64 pge:40101a tip:401000 tnt:NT tip:401006",
	  "40101a 401000 401001 401003 401004 401006 40101c 40101d",
	  "",
	  { 0 } },
	{ "psb psbend exec:64 pge:40101a tip:401003 tnt:T tip:401006",
	  "40101a 401003 401004 401006 40101c 40101d",
	  "",
	  { 0 } },
	/* A compressed RET, and a loop without a packet. */
	{ AT_401000 "tnt:TT", "401000 401001 401008 401010 401011 40100d", "", { 0 } },
	{ AT_401000 "tnt:TT tnt:N", "401000 401001 401008 401010 401011", "3@40100d", { 0 } },
	{ AT_401000 "tnt:TT fup:40100d tip:401010",
	  "401000 401001 401008 401010 401011 401010",
	  "",
	  { 0 } },
	{ AT_401000 "tnt:TN", "401000 401001 401008 401010", "2@401011", { 0 } },
	{ AT_401000 "tnt:TT",
	  "401000 401001 401008 401010",
	  "2@401011",
	  { .returns = VMPT_FLOW_RETURNS_NONE } },
	/* Each RET pops; with libipt 2.0.5 only a compressed one. */
	{ "psb psbend exec:64 pge:401008 tip:401010 tnt:T",
	  "401008 401010 401011 401010",
	  "2@401011",
	  { 0 } },
	{ "psb psbend exec:64 pge:401008 tip:401010 tnt:T",
	  "401008 401010 401011 401010 401011 40100d",
	  "",
	  { .returns = VMPT_FLOW_RETURNS_LIBIPT } },
	/* An indirect CALL pushes; what it returns to is not in the image at the end. */
	{ "psb psbend exec:64 pge:40101a tip:401010 tnt:T",
	  "40101a 401010 401011 40101c 40101d",
	  "",
	  { 0 } },
	/* A PSB and a TIP.PGE empty the stack. */
	{ "psb psbend exec:64 pge:401008 psb exec:64 tsx:0 fup:401010 psbend tnt:T",
	  "401008 401010",
	  "2@401011",
	  { 0 } },
	/* Events */
	{ AT_401000 "fup:401001 tip:401010", "401000 401010", "", { 0 } },
	{ AT_401000 "fup:401000 tip:401010", "401010", "", { 0 } },
	{ AT_401000 "fup:401010 tip:401010", "401000 401010", "2@401001", { 0 } },
	{ AT_401000 "tnt:N fup:401004 pgd:-", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "tsx:2 fup:401001 tip:401010", "401000 401010", "", { 0 } },
	/* FUPs that are none: a PTW's, a CFE's, a power packet's, RFLAGS.IF's, XBEGIN's */
	{ AT_401000 "ptw:1:ip fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "cfe:IRET:ip fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "exstop:ip fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "exec:64if fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "tsx:1 fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ AT_401000 "bbp:4:0 bip:1:2 bep:ip fup:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	/* MOV CR3: with a PIP the flow goes on, without it PacketEn became 0. */
	{ "psb psbend exec:64 pge:401012 pip:2000 tnt:T",
	  "401012 401015 401016 401010",
	  "",
	  { 0 } },
	{ "psb psbend exec:64 pge:401012 pgd:-", "401012", "", { 0 } },
	/* TIP.PGD at a direct branch to its IP, at the next branch, at a SYSCALL */
	{ "psb psbend exec:64 pge:40101c pgd:402000", "40101c 40101d", "", { 0 } },
	{ "psb psbend exec:64 pge:401008 pgd:401010", "401008", "", { 0 } },
	{ "psb psbend exec:64 pge:401008 pgd:401000", "401008 401010 401011", "", { 0 } },
	{ "psb psbend exec:64 pge:401016 pgd:-", "401016", "", { 0 } },
	{ "psb psbend exec:64 pge:401018 pgd:-", "401018", "", { 0 } },
	{ "psb psbend exec:64 pge:40101c pgd:401000", "40101c 40101d", "0@402000", { 0 } },
	/* An overflow: nothing is known of what came after the last branch. */
	{ AT_401000 "tnt:N ovf fup:401016 tnt:T", "401000 401001 401016 401010", "4@0", { 0 } },
	{ AT_401000 "tnt:N ovf exec:64 pge:401016 tnt:T",
	  "401000 401001 401016 401010",
	  "4@0",
	  { 0 } },
	{ AT_401000 "ovf psb exec:64 tsx:0 fup:401016 psbend fup:401016 tnt:T",
	  "401016 401010",
	  "4@0",
	  { 0 } },
	/* TNT is disabled. */
	{ AT_401000 "tip:401003 tip:401010",
	  "401000 401003 401004 401010",
	  "6@401001",
	  { .no_tnt = true } },
	{ AT_401000 "tip:401010", "401000 401010", "2@401001", { 0 } },
	/* Code that is missing, that is none, that goes on after its page */
	{ "psb psbend exec:64 pge:402000 tnt:T tip:401010", "401010", "0@402000", { 0 } },
	{ "psb psbend exec:64 pge:401022 tip:401010", "401010", "1@401022", { 0 } },
	{ "psb psbend exec:64 pge:401ffe tip:401010", "401ffe 401010", "0@401fff", { 0 } },
	{ "psb psbend exec:64 pge:401ffe fup:401fff tip:401010", "401ffe 401010", "", { 0 } },
	/* Too much without a packet: HLTs up to the page's end */
	{ "psb psbend exec:64 pge:401100 tip:401010",
	  "401010",
	  "3@401100",
	  { .no_packet_max = 100 } },
	/* A FUP in a PSB+ while PacketEn is 0 (BDM70) */
	{ AT_401000 "pge:401000 tnt:N", "401000 401001 401003", "", { 0 } },
	{ "psb psbend exec:64 pge:401018 pgd:- " AT_401000 "pge:401003",
	  "401018 401003",
	  "",
	  { 0 } },
	/* Without MODE.TSX BranchEn may be 0: it needs a packet of the flow. */
	{ "psb exec:64 fup:401000 psbend ptw:1:ip fup:401003 psb exec:64 fup:401010 psbend",
	  "",
	  "",
	  { 0 } },
	{ "psb exec:64 fup:401000 psbend tnt:N", "401000 401001 401003", "", { 0 } },
	/* At a PSB the flow is where it says, in code without a branch, too. */
	{ AT_401000 "psb exec:64 tsx:0 fup:401001 psbend tnt:N",
	  "401000 401001 401003",
	  "",
	  { 0 } },
	/* One that says something else: a gap at the PSB. */
	{ AT_401000 "tnt:N psb exec:64 tsx:0 fup:401016 psbend tnt:T",
	  "401000 401001 401003 401016 401010",
	  "2@401004",
	  { 0 } },
	/* A PSB+ that is not finished, and damage in it */
	{ AT_401000 "psb exec:64 tsx:0 ovf fup:401016 tnt:T", "401016 401010", "4@0", { 0 } },
	/* A TNT of 47 bits: 46 rounds, and out */
	{ "psb psbend exec:64 pge:401030 tnt:TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTN tip:401000",
	  "401030*47 401032 401000",
	  "",
	  { 0 } },
	{ "psb psbend exec:64 pge:401030 tnt:TTTTTTT tip:401010",
	  "401030*7 401010",
	  "2@401030",
	  { 0 } },
	/* A wrong N in a loop: it is found again after 12 bits, the other 6 are followed. */
	{ "psb psbend exec:64 pge:401030 tnt:TTTTTT tnt:TTNTTT tnt:TTTTTT tnt:TTTTTT tnt:TTTTTN "
	  "tip:401000",
	  "401030*15 401032 401000",
	  "2@401032",
	  { 0 } },
	/* A byte that is no packet */
	{ "psb psbend exec:64 pge:401030 tnt:TTTTTT raw:e5 tnt:TTTTTT tnt:TTTTTT tnt:TTTTTN "
	  "tip:401000 pad*48",
	  "401030*12 401032 401000",
	  "5@0",
	  { 0 } },
	/* A CYC of more than 64 bits is none. */
	{ AT_401000 "tnt:N raw:ffffffffffffffffff10 pad*20", "401000 401001 401003", "5@0", { 0 } },
	/* Bits while PacketEn is 0; nothing says where the flow is. */
	{ "psb psbend exec:64 pge:401030 tnt:T pgd:401040 tnt:TTTTTT", "401030*2", "2@0", { 0 } },
	/* The FUP of a PSB+ that is damaged says where it is. */
	{ "psb exec:64 tsx:0 pgd:- fup:401016 psbend tnt:T", "401016 401010", "2@0", { 0 } },
	/* 32-bit code: PUSH ES is one there. */
	{ "psb psbend exec:32 pge:401022 fup:401023 tip:401000", "401022 401000", "", { 0 } },
	/* RETs there: compressed, and not; that pops, too */
	{ "psb psbend exec:32 pge:401070 tnt:TT", "401070 401060 401062 401075", "", { 0 } },
	{ "psb psbend exec:32 pge:401070 tnt:T tip:401075",
	  "401070 401060 401062 401075",
	  "",
	  { 0 } },
	{ "psb psbend exec:32 pge:401070 tnt:T tip:401060 tnt:TT",
	  "401070 401060 401062 401060",
	  "2@401062",
	  { 0 } },
	{ "psb psbend exec:32 pge:401070 tnt:T tip:401060 tnt:TT",
	  "401070 401060 401062 401060 401062 401075",
	  "",
	  { .returns = VMPT_FLOW_RETURNS_LIBIPT } },
	/* The same in 16-bit code */
	{ "psb psbend exec:16 pge:401080 tnt:TT tnt:N", "401080 401088 40108a 401083", "", { 0 } },
	{ "psb psbend exec:16 pge:401080 tnt:T tip:401083 tnt:N tip:401080",
	  "401080 401088 40108a 401083 401085 401080",
	  "",
	  { 0 } },
	{ "psb psbend exec:16 pge:401080 tnt:T tip:401083 tnt:NT",
	  "401080 401088 40108a 401083",
	  "2@401085",
	  { 0 } },
	{ "psb psbend exec:16 pge:401080 tnt:T tip:401083 tnt:NT",
	  "401080 401088 40108a 401083 401085",
	  "",
	  { .returns = VMPT_FLOW_RETURNS_LIBIPT } },
};

static struct vmpt_image *image;
static struct vmpt_code *images;

static void setup(void)
{
	struct vmpt_image_options options = { .kind = VMPT_IMAGE_BYTES, .has_address = true };
	static u8 page[4096];
	size_t i;

	memset(page, 0xf4, sizeof(page));
	for (i = 0; i < VMPT_ARRAY_SIZE(code); i++)
		memcpy(page + code[i].at - PAGE, code[i].bytes, code[i].size);
	options.address = PAGE;
	test_dir_make();
	ck_assert_int_eq(
		vmpt_image_open(&image, test_dir_file("code", page, sizeof(page)), &options, NULL),
		0);
	ck_assert_int_eq(vmpt_code_new(&images), 0);
	ck_assert_int_eq(vmpt_code_add(images, NULL, NULL, image), 0);
}

static void teardown(void)
{
	vmpt_code_free(images);
	vmpt_image_close(image);
	test_dir_remove();
}

static void check_ips(const struct row *r, const struct flow_run *run)
{
	const char *p = r->ips;
	unsigned long ip, times;
	size_t n = 0;
	char *end;

	while (*p) {
		ip = strtoul(p, &end, 16);
		times = *end == '*' ? strtoul(end + 1, &end, 10) : 1;
		for (; times; times--, n++)
			ck_assert_msg(n < run->count && run->ips[n] == ip,
				      "%s: instruction %zu is not at %#lx but at %#llx", r->packets,
				      n, ip,
				      n < run->count ? (unsigned long long)run->ips[n] : 0ULL);
		p = *end ? end + 1 : end;
	}
	ck_assert_msg(n == run->count, "%s: %zu instructions, not %zu", r->packets, run->count, n);
}

static void check_gaps(const struct row *r, const struct flow_run *run)
{
	char text[256] = "";
	size_t i, n = 0;

	for (i = 0; i < run->gap_count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u@%llx", i ? " " : "",
				      run->gaps[i].reason, (unsigned long long)run->gaps[i].ip);
	ck_assert_msg(!strcmp(text, r->gaps), "%s: gaps %s, not %s", r->packets, text, r->gaps);
}

START_TEST(rule)
{
	const struct row *r = &rows[_i / 5];
	struct vmpt_flow_options options = r->options;
	struct notation n;
	struct flow_run run;

	notation_read(&n, r->packets);
	options.blocks = options.hash = true;
	options.by_packet = _i % 5 == 1;
	options.off = _i % 5 == 2 ? VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_PSB_MEMO : 0;
	options.events = options.switches = options.times = _i % 5 == 4;
	/* Enough PADs for the fast loop. */
	if (_i % 5 >= 3)
		n.stream.size = n.size += 64;
	flow_run(&run, &n.stream, images, &options);
	check_ips(r, &run);
	check_gaps(r, &run);
	flow_run_free(&run);
}
END_TEST

/*
 * 32-bit code at both ends of its 4 GiB: a CALL, what it returns to, a JMP. An instruction over the
 * end has no bytes there: what processors do is their own matter.
 */
static const struct row wrapping[] = {
	{ "psb psbend exec:32 pge:fffffffb tnt:TT", "fffffffb 10 0 4 fffffffb", "", { 0 } },
	{ "psb psbend exec:32 pge:fffffffb tip:0 tnt:T", "fffffffb 10 0 4 fffffffb", "", { 0 } },
	{ "psb psbend exec:32 pge:fffffffd tip:10", "fffffffd", "0@ffffffff", { 0 } },
	{ "psb psbend exec:32 pge:fffffff8 tip:10",
	  "fffffff8 fffffff9 fffffffa fffffffb 10",
	  "",
	  { 0 } },
};

static struct vmpt_image *image_at(u64 address, const char *name, const u8 *bytes, size_t size)
{
	struct vmpt_image_options options = { .kind = VMPT_IMAGE_BYTES,
					      .has_address = true,
					      .address = address };
	struct vmpt_image *at;

	ck_assert_int_eq(vmpt_image_open(&at, test_dir_file(name, bytes, size), &options, NULL), 0);
	return at;
}

START_TEST(wraps)
{
	/* hlt *3; call 10 | jne 4; jmp eax; jmp fffffffb; ... ret */
	static const u8 high[] = { 0xf4, 0xf4, 0xf4, 0xe8, 0x10, 0, 0, 0 };
	static const u8 low[17] = { 0x75, 0x02, 0xff, 0xe0, 0xeb, 0xf5, [16] = 0xc3 };
	struct vmpt_image *top = image_at(0xfffffff8, "high", high, sizeof(high));
	struct vmpt_image *bottom = image_at(0, "low", low, sizeof(low));
	const struct row *r = &wrapping[_i / 2];
	struct vmpt_flow_options options = r->options;
	struct vmpt_code *both;
	struct flow_run run;
	struct notation n;

	ck_assert_int_eq(vmpt_code_new(&both), 0);
	ck_assert_int_eq(vmpt_code_add(both, NULL, NULL, top), 0);
	ck_assert_int_eq(vmpt_code_add(both, NULL, NULL, bottom), 0);
	notation_read(&n, r->packets);
	options.blocks = options.hash = true;
	options.returns = _i % 2 ? VMPT_FLOW_RETURNS_FOLLOW : VMPT_FLOW_RETURNS_AUTO;
	flow_run(&run, &n.stream, both, &options);
	check_ips(r, &run);
	check_gaps(r, &run);
	flow_run_free(&run);
	vmpt_code_free(both);
	vmpt_image_close(top);
	vmpt_image_close(bottom);
}
END_TEST

/* After the PIP of a MOV CR3 the code is another space's. */
START_TEST(spaces)
{
	struct vmpt_flow_options options = { .blocks = true };
	struct flow_run run;
	struct notation n;

	notation_read(&n,
		      "psb pip:1000 psbend exec:64 pge:401012 pip:2000 tnt:T tip:401012 pip:3000 "
		      "exec:32 tip:401000");
	flow_run(&run, &n.stream, images, &options);
	/* 401012 | 401015 401016 401010 401011 401012 | 401015: taken back, a TIP comes */
	ck_assert_uint_eq(run.count, 8);
	ck_assert_uint_eq(run.space[run.spaces[0]].cr3, 0x1000);
	ck_assert_uint_eq(run.space[run.spaces[1]].cr3, 0x2000);
	ck_assert_uint_eq(run.space[run.spaces[5]].cr3, 0x2000);
	ck_assert_uint_eq(run.space[run.spaces[6]].cr3, 0x3000);
	ck_assert_uint_eq(run.space[run.spaces[6]].exec, 64);
	ck_assert_uint_eq(run.space[run.spaces[7]].cr3, 0x3000);
	ck_assert_uint_eq(run.space[run.spaces[7]].exec, 32);
	flow_run_free(&run);
}
END_TEST

START_TEST(refusals)
{
	struct vmpt_stream stream = { .isa = VMPT_ISA_RTIT };
	struct vmpt_flow_options options = { .returns = VMPT_FLOW_RETURNS_LIBIPT + 1 };
	struct vmpt_flow *flow;

	ck_assert_int_eq(vmpt_flow_open(&flow, &stream, images, NULL), -VMPT_E_UNSUPPORTED);
	stream.isa = VMPT_ISA_PT;
	ck_assert_int_eq(vmpt_flow_open(&flow, &stream, images, &options), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_flow_open_abi(&flow, &stream, images, NULL, 0), -VMPT_E_VERSION);
}
END_TEST

/*
 * The same bytes over and over, while the RET of 401062 goes to two places in turn: memos of it
 * must look at the stack.
 */
START_TEST(repeats)
{
	static const u64 round[] = { 0x401070, 0x401060, 0x401062, 0x401075,
				     0x401060, 0x401062, 0x40107a };
	struct vmpt_flow_options options = { .hash = true, .blocks = true };
	struct flow_run run, counts;
	struct notation n;
	size_t i;

	notation_read(&n, "psb psbend exec:64 pge:401070");
	memset(n.bytes + n.size, 0xfe, 4000);
	n.stream.size = n.size + 4000;
	options.returns = _i % 2 ? VMPT_FLOW_RETURNS_FOLLOW : VMPT_FLOW_RETURNS_AUTO;
	options.off = _i < 2 ? 0 : _i < 4 ? VMPT_FLOW_NO_RAW_MEMO : VMPT_FLOW_NO_MEMO;
	flow_run(&run, &n.stream, images, &options);
	/* Five bits a round, 24,000 of them; at the end the next branch waits. */
	ck_assert_uint_eq(run.count, 4800 * 7 + 1);
	for (i = 0; i < run.count; i++)
		if (run.ips[i] != round[i % 7])
			ck_abort_msg("instruction %zu is at %#llx", i,
				     (unsigned long long)run.ips[i]);
	ck_assert_uint_eq(run.gap_count, 0);
	options.blocks = false;
	flow_run(&counts, &n.stream, images, &options);
	flow_run_same(&run, &counts, "without blocks");
	flow_run_free(&run);
	flow_run_free(&counts);
}
END_TEST

/*
 * Packets that are walked again to make the stack for a late compressed RET, and then once more:
 * memos that were made in the second walk are as those of the first.
 */
START_TEST(walked_again)
{
	struct vmpt_flow_options options = { .hash = true, .blocks = true };
	struct flow_run run, plain;
	static char text[16384];
	struct notation n;
	int i, length;

	length = snprintf(text, sizeof(text), "psb psbend exec:64 ");
	for (i = 0; i < 300; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%s",
				   i == 150 ? "pge:401008 tnt:T pgd:40100d "
					    : "pge:401016 tnt:T pgd:- pge:401018 pgd:401060 ");
	notation_read(&n, text);
	flow_run(&run, &n.stream, images, &options);
	options.returns = VMPT_FLOW_RETURNS_FOLLOW;
	options.off = VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO;
	flow_run(&plain, &n.stream, images, &options);
	flow_run_same(&plain, &run, "a stack made late");
	ck_assert_uint_eq(run.count, 299 * 4 + 4);
	flow_run_free(&run);
	flow_run_free(&plain);
}
END_TEST

/* No code at all: each IP is a gap. */
START_TEST(no_code)
{
	struct vmpt_flow_options options = { .blocks = true };
	struct flow_run run;
	struct notation n;

	notation_read(&n, "psb psbend exec:64 pge:401000 tnt:T tip:401000 tip:401010");
	flow_run(&run, &n.stream, NULL, &options);
	ck_assert_uint_eq(run.count, 0);
	ck_assert_uint_eq(run.gap_count, 2);
	ck_assert_uint_eq(run.total.gaps[VMPT_FLOW_NO_CODE], 2);
	flow_run_free(&run);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/rules");
	TCase *tcase = tcase_create("rules");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, rule, 0, 5 * (int)VMPT_ARRAY_SIZE(rows));
	tcase_add_loop_test(tcase, wraps, 0, 2 * (int)VMPT_ARRAY_SIZE(wrapping));
	tcase_add_loop_test(tcase, repeats, 0, 6);
	tcase_add_test(tcase, walked_again);
	tcase_add_test(tcase, spaces);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, no_code);
	suite_add_tcase(suite, tcase);
	return suite;
}
