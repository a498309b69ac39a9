// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One owner's stream, rule by rule of docs/vm-tracking.md: the source and the
 * streams of the host and of the VMs written out (tests/decoder/notation.h).
 *
 * host: CR3 1000; VMs: VMCS a000 with CR3 2000, VMCS b000 with CR3 3000.
 */
#include "tests/decoder/extract-memory.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define HOST_PSB "psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend"
#define A_PSB	 "psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend"
#define A_HEAD	 "psb pip:2000:nr vmcs:a000 cbr:8 psbend"
#define B_HEAD	 "psb pip:3000:nr vmcs:b000 cbr:8 psbend"

struct rule {
	const char *name, *source;
	const char *host, *a, *b; /* the streams; NULL: none */
	bool conceal;
	bool no_oracle; /* has packets that libipt 2.0.5 does not know */
};

static const struct rule rules[] = {
	{ .name = "head and return, leave with and without FUP",
	  .source = HOST_PSB " pge:f000 tnt:TN pip:2000:nr tip:8000 tnt:T fup:8004 pip:1000 "
			     "tip:f010 tnt:N",
	  .host = HOST_PSB " pge:f000 tnt:TN pgd:- pip:1000 exec:64 pge:f010 tnt:N",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 tnt:T fup:8004 pgd:-" },
	{ .name = "second visit: no PSB+",
	  .source = HOST_PSB " pge:f000 pip:2000:nr tip:8000 tnt:T fup:8004 pip:1000 tip:f010 "
			     "pip:2000:nr tip:8004 tnt:N fup:8008 pip:1000 tip:f010",
	  .host = HOST_PSB " pge:f000 pgd:- pip:1000 exec:64 pge:f010 pgd:- pip:1000 exec:64 "
			   "pge:f010",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 tnt:T fup:8004 pgd:- pip:2000:nr exec:64 "
		      "pge:8004 tnt:N fup:8008 pgd:-" },
	{ .name = "two VMs on a CPU, VMPTRLD in the host",
	  .source = HOST_PSB " pge:f000 pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f010 vmcs:b000 "
			     "tnt:T pip:3000:nr tip:9000 tnt:NN fup:9004 pip:1000 tip:f010",
	  .host = HOST_PSB " pge:f000 pgd:- pip:1000 exec:64 pge:f010 vmcs:b000 tnt:T pgd:- "
			   "pip:1000 exec:64 pge:f010",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 fup:8004 pgd:-",
	  .b = B_HEAD " pip:3000:nr exec:64 pge:9000 tnt:NN fup:9004 pgd:-" },
	{ .name = "MODE.Exec always from tracked state: the mode changed while out",
	  .source = HOST_PSB " pge:f000 exec:32 pip:2000:nr tip:8000 fup:8004 exec:64 pip:1000 "
			     "tip:f010 exec:16 pip:2000:nr tip:8004 tnt:T",
	  .host = HOST_PSB " pge:f000 pgd:- pip:1000 exec:64 pge:f010 pgd:-",
	  .a = A_HEAD " pip:2000:nr exec:32 pge:8000 fup:8004 pgd:- pip:2000:nr exec:16 pge:8004 "
		      "tnt:T" },
	{ .name = "MODE.TSX and CBR only if they changed",
	  .source =
		  HOST_PSB " tsx:0 cbr:9 pge:f000 pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f010 "
			   "pip:2000:nr tip:8004 tnt:T",
	  .host = HOST_PSB " tsx:0 cbr:9 pge:f000 pgd:- pip:1000 exec:64 pge:f010 pgd:-",
	  .a = "psb pip:2000:nr vmcs:a000 cbr:9 psbend pip:2000:nr exec:64 tsx:0 pge:8000 fup:8004 "
	       "pgd:- pip:2000:nr exec:64 pge:8004 tnt:T" },
	{ .name = "a high IP is sent whole, in six bytes or in eight",
	  .source = HOST_PSB " pge:ffffffff81000000 pip:2000:nr tip:1234000000008000 tnt:T "
			     "fup:1234000000008004 pip:1000 tip:ffffffff81000010 tnt:T",
	  .host = HOST_PSB " pge:ffffffff81000000 pgd:- pip:1000 exec:64 pge:ffffffff81000010 "
			   "tnt:T",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:1234000000008000 tnt:T fup:1234000000008004 "
		      "pgd:-" },
	{ .name = "a return without IP is a PIP only",
	  .source = HOST_PSB " pge:f000 pip:2000:nr pgd:- mtc:1 pip:1000 pge:f010 tnt:T",
	  .host = HOST_PSB " pge:f000 pgd:- mtc:1 pip:1000 exec:64 pge:f010 tnt:T",
	  .a = A_HEAD " pip:2000:nr mtc:1" },
	{ .name = "BranchEn=0: no TIP.PGE, no TIP.PGD",
	  .source = HOST_PSB " ptw:1 pip:2000:nr ptw:2 pip:1000 ptw:3",
	  .host = HOST_PSB " ptw:1 pip:1000 ptw:3",
	  .a = A_HEAD " pip:2000:nr ptw:2" },
	{ .name = "A2: a TRIG and its FUP are the current owner's",
	  .no_oracle = true,
	  .source = HOST_PSB " pge:f000 trig:1 pip:2000:nr tip:8000 trig:2:ip fup:8004 tnt:T "
			     "fup:8008 pip:1000 tip:f010 trig:4",
	  .host = HOST_PSB " pge:f000 trig:1 pgd:- pip:1000 exec:64 pge:f010 trig:4",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 trig:2:ip fup:8004 tnt:T fup:8008 pgd:-" },
	{ .name = "A2: with BranchEn=0 the FUP of a TRIG stays, concealed or not",
	  .no_oracle = true,
	  .conceal = true,
	  .source = HOST_PSB " trig:1:ip fup:f004 pip:2000:nr trig:2:ip fup:8004 mtc:1 pip:1000",
	  .host = "psb exec:64 pip:1000 cbr:8 psbend trig:1:ip fup:f004 mtc:1 pip:1000",
	  .a = "psb pip:2000 cbr:8 psbend pip:2000 trig:2:ip fup:8004 mtc:1" },
	{ .name = "compressed RETs stay, IPs after a return stay",
	  .source = HOST_PSB " pge:f000 pip:2000:nr tip:ffff800000008000 tip:ffff800000008100 "
			     "tnt:TTT tip:ffff800000008200 fup:ffff800000008204 pip:1000 tip:f010",
	  .host = HOST_PSB " pge:f000 pgd:- pip:1000 exec:64 pge:f010",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:ffff800000008000 tip:ffff800000008100 tnt:TTT "
		      "tip:ffff800000008200 fup:ffff800000008204 pgd:-" },

	/* PSB+ */
	{ .name = "a slice that begins with its own PSB+ needs no head",
	  .source = HOST_PSB " " A_PSB " pge:8000 tnt:T",
	  .host = HOST_PSB " cbr:8",
	  .a = A_PSB " pge:8000 tnt:T" },
	{ .name = "the FUP of a PSB+ before TIP.PGE is dropped, the PGE's IP sent whole",
	  .source =
		  "psb exec:64 fup:8000 pip:2000:nr vmcs:a000 cbr:8 psbend mtc:1 exec:64 pge:8000 "
		  "tnt:T",
	  .a = "psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend mtc:1 exec:64 pge:8000 tnt:T" },
	{ .name = "the FUP of a PSB+ while tracing stays",
	  .source = A_PSB " pge:8000 tnt:T psb exec:64 fup:8004 pip:2000:nr vmcs:a000 cbr:8 psbend "
			  "tnt:T",
	  .a = A_PSB " pge:8000 tnt:T psb exec:64 fup:8004 pip:2000:nr vmcs:a000 cbr:8 psbend "
		     "tnt:T" },
	{ .name = "the FUP of a PSB+ that sets PacketEn stays if no TIP.PGE follows",
	  .source = "psb exec:64 fup:8000 pip:2000:nr vmcs:a000 cbr:8 psbend tnt:T fup:8004 "
		    "pip:1000 tip:f000",
	  .host = "psb pip:1000 cbr:8 psbend pip:1000 exec:64 pge:f000",
	  .a = "psb exec:64 fup:8000 pip:2000:nr vmcs:a000 cbr:8 psbend tnt:T fup:8004 pgd:-" },

	/* time */
	{ .name = "others' MTC and CBR stay, their CYC as a sum, their TSC and TMA never",
	  .source =
		  HOST_PSB " tsc:100 tma:1:2 pge:f000 mtc:1 pip:2000:nr mtc:2 cyc:3 tip:8000 "
			   "tsc:9 mtc:3 cyc:5 fup:8004 cyc:6 pip:1000 tip:f010 mtc:4 cyc:7 tsc:200 "
			   "tma:3:4 cbr:a cyc:8 pip:2000:nr cyc:9 tip:8004 tnt:T",
	  .host = HOST_PSB " tsc:100 tma:1:2 pge:f000 mtc:1 pgd:- mtc:2 mtc:3 cyc:e pip:1000 "
			   "exec:64 pge:f010 mtc:4 cyc:7 tsc:200 tma:3:4 cbr:a cyc:8 pgd:-",
	  .a = A_HEAD " mtc:2 cyc:3 pip:2000:nr exec:64 pge:8000 tsc:9 mtc:3 cyc:5 fup:8004 cyc:6 "
		      "pgd:- mtc:4 cbr:a cyc:f cyc:9 pip:2000:nr exec:64 pge:8004 tnt:T" },

	/* overflow and loss */
	{ .name = "OVF goes to the known owner; bytes given back stay",
	  .source = HOST_PSB " pge:f000 tnt:T ovf fup:f100 tnt:TT psb fup:f108 pip:1000 vmcs:a000 "
			     "psbend tnt:T",
	  .host = HOST_PSB " pge:f000 tnt:T ovf fup:f100 tnt:TT psb fup:f108 pip:1000 vmcs:a000 "
			   "psbend tnt:T" },
	{ .name = "OVF and then another owner: the bytes between are lost",
	  .source = HOST_PSB " pge:f000 tnt:T ovf fup:8100 tnt:TT psb fup:8108 pip:2000:nr "
			     "vmcs:a000 cbr:9 psbend tnt:T",
	  .host = HOST_PSB " pge:f000 tnt:T ovf cbr:9",
	  .a = "psb fup:8108 pip:2000:nr vmcs:a000 cbr:9 psbend tnt:T" },
	{ .name = "after a loss a head again",
	  .source = HOST_PSB
	  " pge:f000 pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f010 raw:05 " HOST_PSB
	  " pge:f020 tnt:T pip:2000:nr tip:8004 tnt:N",
	  .host = HOST_PSB " pge:f000 pgd:- pip:1000 exec:64 pge:f010 pgd:- " HOST_PSB
			   " pge:f020 tnt:T pgd:-",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 fup:8004 pgd:- " A_HEAD
		      " pip:2000:nr exec:64 pge:8004 tnt:N" },
	{ .name = "an owner proved in the middle of flow: dropped until a TIP says where it is",
	  .source = A_PSB " pge:8000 ovf fup:f100 tnt:T pip:5000 tnt:NN mtc:1 fup:f110 tip:f200 "
			  "tnt:T",
	  .host = "psb pip:5000 cbr:8 psbend pip:5000 mtc:1 exec:64 pge:f200 tnt:T",
	  .a = A_PSB " pge:8000 ovf mtc:1" },
	{ .name = "a PSB+ without PSBEND says nothing of PacketEn: flow stays",
	  .source = "psb pip:1000 vmcs:a000 tnt:T tip:f010 pip:2000:nr tip:8000 tnt:N",
	  .host = "psb pip:1000 vmcs:a000 tnt:T tip:f010 pgd:-",
	  .a = "psb pip:2000:nr vmcs:a000 psbend pip:2000:nr pge:8000 tnt:N" },
	{ .name = "a FUP after OVF that a CFE consumes does not say that tracing resumed",
	  .no_oracle = true,
	  .source =
		  HOST_PSB " cfe:INTR:ip fup:f000 ovf cfe:INTR:ip fup:f100 cfe:VMENTRY:ip fup:f004 "
			   "pip:2000:nr ptw:1",
	  .host = HOST_PSB
	  " cfe:INTR:ip fup:f000 ovf cfe:INTR:ip fup:f100 cfe:VMENTRY:ip fup:f004" },
	{ .name = "others' cycles before a loss are not carried over it",
	  .source = HOST_PSB " pge:f000 pip:2000:nr tip:8000 cyc:5 raw:05 " HOST_PSB " pge:f020",
	  .host = HOST_PSB " pge:f000 pgd:- " HOST_PSB " pge:f020",
	  .a = A_HEAD " pip:2000:nr exec:64 pge:8000 cyc:5 pgd:-" },
	{ .name = "a failed entry is the host's",
	  .source = HOST_PSB " pge:f000 tnt:T pip:2000:nr pip:1000 tip:f300 tnt:T",
	  .host = HOST_PSB " pge:f000 tnt:T pip:2000:nr pip:1000 tip:f300 tnt:T" },
	{ .name = "a block whose BBP is another owner's is dropped",
	  .source = HOST_PSB " bbp:4:0 bip:0:11 cfe:VMENTRY bip:1:22 bep mtc:1",
	  .host = HOST_PSB " bbp:4:0 bip:0:11 cfe:VMENTRY bep mtc:1",
	  .a = "psb vmcs:a000 cbr:8 psbend bep mtc:1",
	  .no_oracle = true },

	/* conceal */
	{ .name = "conceal: NR=0 and no VMCS in a PSB+",
	  .conceal = true,
	  .source = A_PSB " pge:8000 pip:5000:nr tnt:T",
	  .a = "psb exec:64 pip:2000 cbr:8 psbend pge:8000 pip:5000 tnt:T" },
	{ .name = "conceal: head and return without VMX",
	  .conceal = true,
	  .source = HOST_PSB " pge:f000 tnt:T pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f010",
	  .host = "psb exec:64 pip:1000 cbr:8 psbend pge:f000 tnt:T pgd:- pip:1000 exec:64 pge:f010",
	  .a = "psb pip:2000 cbr:8 psbend pip:2000 exec:64 pge:8000 fup:8004 pgd:-" },
	{ .name = "conceal: CFE and EVD of VMX dropped, the exit's FUP kept",
	  .conceal = true,
	  .no_oracle = true,
	  .source =
		  HOST_PSB " pge:f000 cfe:VMENTRY:ip fup:f004 pip:2000:nr tip:8000 cfe:INTR:ip "
			   "fup:8002 evd:PFA:77 evd:VMXR:1 evd:VMXQ:2 cfe:VMEXIT fup:8004 pip:1000 "
			   "tip:f010",
	  .host = "psb exec:64 pip:1000 cbr:8 psbend pge:f000 pgd:- pip:1000 exec:64 pge:f010",
	  .a = "psb pip:2000 cbr:8 psbend pip:2000 exec:64 pge:8000 cfe:INTR:ip fup:8002 "
	       "evd:PFA:77 fup:8004 pgd:-" },
	{ .name = "conceal, BranchEn=0: a FUP that served the CFE only is dropped",
	  .conceal = true,
	  .no_oracle = true,
	  .source = HOST_PSB " cfe:VMENTRY:ip fup:f004 pip:2000:nr cfe:INTR:ip fup:8002 "
			     "cfe:VMEXIT:ip fup:8004 pip:1000 mtc:1",
	  .host = "psb exec:64 pip:1000 cbr:8 psbend pip:1000 mtc:1",
	  .a = "psb pip:2000 cbr:8 psbend pip:2000 cfe:INTR:ip fup:8002 mtc:1" },
};

static void check_stream(const struct rule *r, const char *who, const char *want,
			 const struct extracted_stream *got)
{
	u64 packets;

	ck_assert_msg(!want == !got, "%s: stream of %s", r->name, who);
	if (!want)
		return;
	ck_assert_msg(!strcmp(notation_write(got->bytes, got->size), want), "%s, %s:\n%s\nnot\n%s",
		      r->name, who, notation_write(got->bytes, got->size), want);
	if (!r->no_oracle)
		ck_assert_int_eq(ipt_packets_check(got->bytes, got->size, &packets), 0);
}

START_TEST(rule)
{
	const struct rule *r = &rules[_i];
	struct vmpt_extract_options options = { .conceal = r->conceal };
	static struct notation n;
	struct extracted e;

	notation_read(&n, r->source);
	extract_to_memory(&e, &n.stream, &options);
	check_stream(r, "host", r->host, extracted_find(&e, 0));
	check_stream(r, "a000", r->a, extracted_find(&e, 0xa000));
	check_stream(r, "b000", r->b, extracted_find(&e, 0xb000));
	extracted_free(&e);
}
END_TEST

START_TEST(the_index_tells_what_was_done)
{
	static struct notation n;
	struct extracted e;

	notation_read(&n, HOST_PSB " pge:f000 mtc:1 pip:2000:nr tip:8000 mtc:2 cyc:3 cyc:4 tsc:5 "
				   "fup:8004 pip:1000 tip:f010 ovf fup:8100 " A_PSB " tnt:T");
	extract_to_memory(&e, &n.stream, NULL);
	ck_assert_uint_eq(e.slice_count, 5);
	ck_assert(!e.slices[0].head && e.slices[0].left);
	ck_assert(e.slices[1].head && e.slices[1].returned && e.slices[1].enabled);
	ck_assert(e.slices[1].left);
	ck_assert_uint_eq(e.slices[2].others_mtc, 1);
	ck_assert_uint_eq(e.slices[2].others_cyc, 2);
	ck_assert_uint_eq(e.slices[2].others_cycles, 7);
	ck_assert_uint_eq(e.slices[2].others_tsc, 1);
	ck_assert_int_eq(e.slices[3].stream, -1);
	ck_assert_uint_eq(e.slices[3].slice.begin, VMPT_BEGIN_DOUBT);
	ck_assert_uint_eq(e.slices[0].out_offset, 0);
	/* After the host's first slice the guest's MTC, two bytes. */
	ck_assert_uint_eq(e.slices[2].out_offset, e.slices[0].out_size + 2);
	extracted_free(&e);
}
END_TEST

/*
 * The code that ran in the lost bytes may have made calls: of the owner before, and the one after.
 */
START_TEST(returns_may_lack_their_calls)
{
	static struct notation n;
	struct extracted e;

	notation_read(&n, HOST_PSB " pge:f000 pip:2000:nr tip:8000 ovf fup:8100 tnt:T pip:1000 "
				   "tip:f010 tnt:T pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f010 "
				   "tnt:T " HOST_PSB " pip:2000:nr tip:8000 fup:8004 pip:1000 "
				   "tip:f010");
	extract_to_memory(&e, &n.stream, NULL);
	ck_assert_uint_eq(e.slice_count, 8);
	ck_assert_uint_eq(e.slices[2].slice.begin, VMPT_BEGIN_DOUBT);
	ck_assert_uint_eq(e.slices[3].slice.owner.kind, VMPT_OWNER_HOST);
	ck_assert(!e.slices[0].lacks_calls);
	ck_assert(!e.slices[1].lacks_calls);
	ck_assert(e.slices[3].lacks_calls);
	ck_assert(e.slices[5].lacks_calls);
	ck_assert(e.slices[6].lacks_calls);
	ck_assert(!e.slices[7].lacks_calls);
	extracted_free(&e);
}
END_TEST

static int fail_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)stream;
	(void)owner;
	return 0;
}

static int fail_write(void *opaque, int stream, const u8 *bytes, size_t size)
{
	(void)stream;
	(void)bytes;
	(void)size;
	return --*(int *)opaque < 0 ? 77 : 0;
}

START_TEST(a_failing_write_ends_it)
{
	static const struct vmpt_extract_ops ops = { fail_stream, fail_write, NULL };
	static struct notation n;
	int left;

	notation_read(&n, rules[1].source);
	for (left = 0; left < 8; left++) {
		int budget = left;

		ck_assert_int_eq(vmpt_extract(&n.stream, NULL, &ops, &budget), 77);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/extract");
	TCase *t = tcase_create("rules");

	tcase_add_loop_test(t, rule, 0, VMPT_ARRAY_SIZE(rules));
	tcase_add_test(t, the_index_tells_what_was_done);
	tcase_add_test(t, returns_may_lack_their_calls);
	tcase_add_test(t, a_failing_write_ends_it);
	suite_add_tcase(s, t);
	return s;
}
