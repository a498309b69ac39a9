// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every row and rule of docs/vm-tracking.md, its slices written out in the trace:
 * a word |owner states the owner of the bytes after it (tests/decoder/notation.h).
 *
 * host: CR3 1000; VMs: VMCS a000 with CR3 2000, VMCS b000 with CR3 3000.
 */
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define HOST_PSB "psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend "
#define A_PSB	 "psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend "
#define B_PSB	 "psb exec:64 pip:3000:nr vmcs:b000 cbr:8 psbend "

static const struct vmpt_options headless = { .headless = true };

struct row {
	const char *name, *trace;
	const struct vmpt_options *options;
};

static const struct row rows[] = {
	/* start, loss, damage: all unknown */
	{ "start is unknown until a PIP", "|unknown mtc:1 tnt:TN |host pip:1000 tip:f000 tnt:T",
	  &headless },
	{ "bytes before the first PSB are a loss", "|loss tnt:T mtc:1 |host " HOST_PSB "tnt:T",
	  NULL },
	{ "damage makes all unknown",
	  "|host " HOST_PSB "pge:f000 |loss raw:05 tnt:T |vm:b000 " B_PSB "tnt:T", NULL },
	{ "after damage a PSB+ without PIP proves nothing",
	  "|host " HOST_PSB "pge:f000 |loss raw:05 tnt:T |unknown psb cbr:8 psbend pge:f000 tnt:T",
	  NULL },
	{ "a packet cut by the end is a loss", "|host " HOST_PSB "tnt:T |loss raw:0243", NULL },

	/* PSB+ */
	{ "a PSB+ belongs whole to whom its PIP and VMCS state",
	  "|host " HOST_PSB "tnt:T |vm:a000 " A_PSB "pad*5 tnt:T |vm:b000 " B_PSB "|host " HOST_PSB,
	  NULL },
	{ "nothing in a PSB+ is applied before its end, whatever its order",
	  "|host " HOST_PSB "|vm:b000 psb vmcs:b000 mtc:3 cbr:8 cyc:9 pip:3000:nr tsc:77 psbend "
	  "tnt:T",
	  NULL },
	{ "a PSB+ without PIP is the tracked owner's",
	  "|vm:a000 " A_PSB "tnt:T psb cbr:8 psbend pad*3 tnt:N", NULL },
	{ "a PSB+ with VMCS and no PIP: tracked owner, VMCS holds after its PADs",
	  "|vm:a000 " A_PSB "tnt:T psb vmcs:b000 psbend pad*3 |vm:b000 tnt:T", NULL },
	{ "a PSB+ ended by OVF counts up to there",
	  "|host " HOST_PSB "tnt:T |vm:b000 psb pip:3000:nr vmcs:b000 ovf fup:8000 tnt:T " B_PSB,
	  NULL },
	{ "a PSB+ whose PSBEND is missing ends at a packet that it cannot hold",
	  "|vm:a000 psb pip:2000:nr vmcs:a000 pge:8000 tnt:T |host pip:1000 tip:f000", NULL },

	/* Units that change at most CR3 are passed over: the second PSB+ of a shape, PIPs after it
	 */
	{ "a PIP with another CR3, then a PSB+ with that and one with another VMCS",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 pip:5000:nr tip:8000 tnt:T psb exec:64 pip:5000:nr "
	  "vmcs:a000 cbr:8 psbend tnt:T |vm:b000 psb exec:64 pip:5000:nr vmcs:b000 cbr:8 psbend "
	  "tnt:T pad*80",
	  NULL },
	{ "such a PSB+ with another NR",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 pip:5000:nr tip:8000 tnt:T |host psb exec:64 pip:5000 "
	  "vmcs:a000 cbr:8 psbend tnt:T pad*80",
	  NULL },
	{ "a PIP with another CR3 and a VMCS after PADs are a group",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |vm:b000 pip:5000:nr pad*3 vmcs:b000 tip:8000 pad*80",
	  NULL },
	{ "the same after 7 PADs",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |vm:b000 pip:5000:nr pad*7 vmcs:b000 tip:8000 pad*80",
	  NULL },
	{ "the same after 8 PADs",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |vm:b000 pip:5000:nr pad*8 vmcs:b000 tip:8000 pad*80",
	  NULL },
	{ "the same after time",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |vm:b000 pip:5000:nr mtc:1 cyc:9 vmcs:b000 tip:8000 "
	  "pad*80",
	  NULL },
	{ "a PIP with another CR3 is alone before a TNT: the VMCS applies later",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 pip:5000:nr tnt:T |vm:b000 vmcs:b000 tip:8000 pad*80",
	  NULL },
	{ "and before a PSB", "|vm:a000 " A_PSB A_PSB "pge:8000 pip:5000:nr " A_PSB "tnt:T pad*80",
	  NULL },
	{ "a PIP with the same CR3 and another NR",
	  "|vm:a000 " A_PSB A_PSB
	  "pge:8000 tnt:T |host pip:2000 tip:f000 tnt:T |vm:a000 pip:2000:nr tip:8000 pad*80",
	  NULL },
	{ "a MODE.Exec and a PIP after 7 PADs are a group",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |host exec:64 pad*7 pip:1000 tip:f000 pad*80", NULL },
	{ "a MODE.Exec and a PIP after 8 PADs are a group",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 |host exec:64 pad*8 pip:1000 tip:f000 pad*80", NULL },
	{ "a MODE.Exec before a TNT is none",
	  "|vm:a000 " A_PSB A_PSB "pge:8000 exec:64 pad*2 tnt:T |host pip:1000 tip:f000 pad*80",
	  NULL },

	/* VMCS alone */
	{ "VMPTRLD changes no owner, but the next entry's",
	  "|host " HOST_PSB "pge:f000 vmcs:b000 tnt:T |vm:b000 pip:3000:nr tip:8000 tnt:T", NULL },
	{ "VMPTRLD before a TIP of the host changes no owner",
	  "|host " HOST_PSB "pge:f000 vmcs:b000 tip:f100 tnt:T |vm:b000 pip:3000:nr tip:8000",
	  NULL },
	{ "a VMCS changes no owner while NR is unknown",
	  "|unknown tnt:T vmcs:b000 tip:8000 tnt:T |vm:b000 pip:3000:nr tip:8000", &headless },
	{ "all ones: no VMCS",
	  "|host " HOST_PSB "pge:f000 vmcs:none tnt:T |vm pip:3000:nr tip:8000 tnt:T", NULL },
	{ "a VM entry without any VMCS seen is a VM, VMCS unknown",
	  "|host psb pip:1000 psbend pge:f000 tnt:T |vm pip:3000:nr tip:8000 tnt:T fup:8004 "
	  "|host pip:1000 tip:f000",
	  NULL },

	/* groups */
	{ "group PIP TIP", "|host " HOST_PSB "pge:f000 tnt:T |vm:a000 pip:2000:nr tip:8000", NULL },
	{ "group MODE.Exec PIP TIP",
	  "|host " HOST_PSB "pge:f000 tnt:T |vm:a000 exec:32 pip:2000:nr tip:8000", NULL },
	{ "group PIP MODE.Exec TIP",
	  "|host " HOST_PSB "pge:f000 tnt:T |vm:a000 pip:2000:nr exec:32 tip:8000", NULL },
	{ "group VMCS PIP TIP",
	  "|host " HOST_PSB "pge:f000 tnt:T |vm:b000 vmcs:b000 pip:3000:nr tip:8000", NULL },
	{ "group PIP VMCS MODE.Exec TIP",
	  "|host " HOST_PSB "pge:f000 tnt:T |vm:b000 pip:3000:nr vmcs:b000 exec:16 tip:8000",
	  NULL },
	{ "group MODE.Exec VMCS PIP TIP, timing and PAD between",
	  "|host " HOST_PSB "pge:f000 tnt:T |vm:b000 exec:64 pad*9 mtc:4 vmcs:b000 cyc:7 tsc:99 "
	  "tma:1:2 pip:3000:nr cbr:9 pad tip:8000",
	  NULL },
	{ "group before TIP.PGE",
	  "|host " HOST_PSB "pge:f000 pgd:f00 |vm:a000 pip:2000:nr pge:8000 tnt:T", NULL },
	{ "group before TIP.PGD: the guest's CPL is not traced",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr pgd:- |host pip:1000 pge:f000 tnt:T",
	  NULL },
	{ "guest not traced, no PIP at the transitions",
	  "|host " HOST_PSB "pge:f000 tnt:T pgd:- mtc:1 pge:f000 tnt:N " HOST_PSB "tnt:T", NULL },
	{ "the exit's FUP is the leaver's",
	  "|vm:a000 " A_PSB "pge:8000 tnt:T fup:8004 |host pip:1000 tip:f000 tnt:T", NULL },
	{ "FUP, CFE and EVD before the group are the leaver's",
	  "|vm:a000 " A_PSB "pge:8000 tnt:T evd:VMXR:1 evd:VMXQ:0 cfe:VMEXIT fup:8004 "
	  "|host pip:1000 exec:64 tip:f000",
	  NULL },
	{ "a MOV CR3 moves no boundary", "|host " HOST_PSB "pge:f000 tnt:T pip:5000 tnt:T", NULL },
	{ "a group that changes CR3 only moves no boundary",
	  "|host " HOST_PSB "pge:f000 tnt:T pip:5000 exec:32 tip:f200 tnt:T", NULL },
	{ "a group with another VMCS while NR=1",
	  "|vm:a000 " A_PSB "pge:8000 tnt:T |vm:b000 vmcs:b000 tip:8100 tnt:T", NULL },
	{ "MODE.Exec with its own FUP is no group",
	  "|vm:a000 " A_PSB "pge:8000 exec:64if fup:8001 tnt:T fup:8004 |host pip:1000 tip:f000",
	  NULL },

	/* no TIP packet after it: it applies at the packet */
	{ "PacketEn=0: a PIP applies at the packet",
	  "|host " HOST_PSB "mtc:1 |vm:a000 pip:2000:nr mtc:2 cbr:9 |host pip:1000 mtc:3", NULL },
	{ "PacketEn=0: VMCS first, the boundary stands at the PIP",
	  "|host " HOST_PSB "mtc:1 vmcs:b000 mtc:2 |vm:b000 pip:3000:nr mtc:3 ptw:1", NULL },
	{ "PacketEn=0 and NR=1: a VMCS applies at the packet",
	  "|vm:a000 " A_PSB "mtc:1 |vm:b000 vmcs:b000 mtc:2 ptw:1", NULL },
	{ "BranchEn=0: PIPs alone tell",
	  "|host " HOST_PSB "ptw:1 |vm:a000 pip:2000:nr ptw:2 |host pip:1000 ptw:3 |vm:a000 "
	  "pip:2000:nr ptw:4",
	  NULL },

	/* failed VM entry */
	{ "NR 0, 1, 0 in one group is a failed entry, no guest slice",
	  "|host " HOST_PSB "pge:f000 tnt:T pip:2000:nr pip:1000 tip:f300 tnt:T", NULL },
	{ "a failed entry with Event Trace",
	  "|host " HOST_PSB
	  "pge:f000 cfe:VMENTRY:ip fup:f004 pip:2000:nr tsc:5 cbr:8 exec:64 pip:1000 tip:f300 tnt:T",
	  NULL },
	{ "an early failed entry is the host's TIP",
	  "|host " HOST_PSB "pge:f000 tnt:T tip:f004 tnt:T", NULL },

	/* CFE */
	{ "CFE.VMENTRY with its FUP is the host's, the group the guest's",
	  "|host " HOST_PSB "pge:f000 cfe:VMENTRY:ip fup:f004 |vm:a000 pip:2000:nr tip:8000",
	  NULL },
	{ "only Event Trace, OS=1: the boundary is the PIP's",
	  "|host " HOST_PSB "cfe:VMENTRY:ip fup:f004 mtc:1 |vm:a000 pip:2000:nr mtc:2 evd:VMXR:1 "
	  "cfe:VMEXIT:ip fup:8004 |host pip:1000 mtc:3",
	  NULL },
	{ "only Event Trace, OS=0: CFEs alone tell",
	  "|unknown psb cbr:8 psbend |host cfe:VMENTRY:ip fup:f004 |vm mtc:1 cfe:INTR:ip fup:8010 "
	  "evd:VMXR:1 evd:VMXQ:0 cfe:VMEXIT:ip fup:8004 |host mtc:2 cfe:VMENTRY |vm mtc:3",
	  NULL },
	{ "CFE.VMEXIT_INTR is an exit",
	  "|unknown psb vmcs:a000 psbend |host cfe:VMENTRY |vm:a000 mtc:1 cfe:VMEXIT_INTR:ip fup:8004 "
	  "|host mtc:2",
	  NULL },
	{ "other CFEs tell no NR",
	  "|unknown psb psbend cfe:INTR:ip fup:8004 cfe:SMI:ip fup:8008 cfe:RSM cfe:IRET mtc:1",
	  NULL },

	{ "a CFE.VMEXIT proves a VM, but not its VMCS",
	  "|vm:a000 " A_PSB "pge:8000 ovf |unknown fup:8100 tnt:T evd:VMXR:1 |vm cfe:VMEXIT "
	  "fup:8104 |host pip:1000 tip:f000",
	  NULL },
	{ "a CFE.VMENTRY proves the host it leaves",
	  "|vm:a000 " A_PSB "pge:8000 ovf |unknown fup:f100 tnt:T |host cfe:VMENTRY:ip fup:f104 "
	  "|vm pip:2000:nr tip:8000",
	  NULL },

	/* OVF */
	{ "after OVF a PSB+ of the same owner gives it the bytes",
	  "|host " HOST_PSB "pge:f000 tnt:T ovf fup:f100 tnt:TT mtc:1 " HOST_PSB "tnt:T", NULL },
	{ "after OVF a PIP of the same owner gives it the bytes",
	  "|host " HOST_PSB "pge:f000 tnt:T ovf fup:f100 tnt:TT pip:5000 tnt:T", NULL },
	{ "after OVF another owner: the bytes are nobody's",
	  "|host " HOST_PSB "pge:f000 tnt:T ovf |unknown fup:8100 tnt:TT |vm:a000 " A_PSB "tnt:T",
	  NULL },
	{ "after OVF the VMCS is uncertain: NR alone proves a VM",
	  "|vm:a000 " A_PSB
	  "pge:8000 ovf |unknown fup:8100 tnt:T |vm pip:2000:nr tnt:T |vm:a000 " A_PSB "tnt:T",
	  NULL },
	{ "two OVFs are one doubt",
	  "|host " HOST_PSB "pge:f000 ovf fup:f100 tnt:T ovf fup:f200 tnt:N " HOST_PSB "tnt:T",
	  NULL },
	{ "after OVF a PIP before a TIP may be a MOV CR3 of a guest that was entered unseen",
	  "|host " HOST_PSB "pge:f000 ovf |unknown fup:8100 tnt:T |vm pip:2000:nr tip:8000", NULL },
	{ "after damage, too",
	  "|host " HOST_PSB "pge:f000 |loss raw:05 tnt:T |unknown psb cbr:8 psbend pge:8100 tnt:T "
	  "|vm pip:2000:nr tip:8000",
	  NULL },
	{ "at the start, too", "|unknown tnt:T |vm pip:2000:nr tip:8000", &headless },
	{ "an exit hidden by OVF",
	  "|vm:a000 " A_PSB "pge:8000 tnt:T ovf |unknown fup:f100 tnt:TT |host pip:5000 tnt:T",
	  NULL },
	{ "OVF and then the end: the bytes are nobody's",
	  "|host " HOST_PSB "pge:f000 tnt:T ovf |unknown fup:f100 tnt:T", NULL },
	{ "OVF and then padding to the end is no loss",
	  "|host " HOST_PSB "pge:f000 tnt:T ovf pad*40", NULL },

	/* TIP.PGD() */
	{ "after TIP.PGD() a PSB+ proves the owner",
	  "|host " HOST_PSB "pge:f000 fup:f008 pgd:- pge:f00c tnt:T " HOST_PSB "tnt:T", NULL },
	{ "after TIP.PGD() another owner",
	  "|host " HOST_PSB "pge:f000 fup:f008 pgd:- |unknown pge:800c tnt:T |vm:b000 " B_PSB,
	  NULL },
	{ "after TIP.PGD() an entry proves the host that it leaves",
	  "|host " HOST_PSB "pge:f000 fup:f008 pgd:- exec:64 pge:f00c tnt:T |vm:a000 pip:2000:nr "
	  "tip:8000 tnt:T fup:8004 |host pip:1000 tip:f000",
	  NULL },
	{ "so does one that fails",
	  "|host " HOST_PSB "pge:f000 fup:f008 pgd:- pge:f00c tnt:T pip:2000:nr pip:1000 tip:f300 "
	  "tnt:T",
	  NULL },
	{ "TraceEn was 0: a PIP before a TIP may be a MOV CR3, or an entry after an exit",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 fup:8004 pgd:- |unknown cbr:8 "
	  "exec:64 pge:f00c tnt:T |vm:a000 pip:2000:nr tip:8000",
	  NULL },
	{ "so it may where there was a TSC",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 fup:8004 pgd:- |unknown tsc:5 "
	  "pge:f00c tnt:T |vm:a000 pip:2000:nr tip:8000",
	  NULL },
	{ "a pause: the guest's user, its kernel, MOV CR3 and RET",
	  "|host " HOST_PSB
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- mtc:1 cyc:9 pad*3 exec:64 "
	  "pge:8100 tnt:T pip:4000:nr tip:8200 tnt:T",
	  NULL },
	{ "two pauses, a PSB+ without PIP, then an exit",
	  "|host " HOST_PSB
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- psb cbr:8 psbend pge:8100 "
	  "tnt:T pgd:- pge:8100 tnt:N fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "one of two is no pause: nothing proves whom the exit leaves",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- |unknown cbr:8 pge:8100 "
	  "tnt:T pgd:- pge:8100 tnt:N fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "a CBR after the pause: the frequency changed",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- mtc:1 pge:8100 cbr:8 "
	  "tnt:T pgd:- pge:8100 tnt:N fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "two pauses in which the processor sleeps and wakes",
	  "|host " HOST_PSB
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- exstop raw:02220020 exstop "
	  "raw:02a22001000000 mtc:1 pge:8100 tnt:T pgd:- raw:02220020 exstop mtc:2 pge:8100 tnt:N "
	  "fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "a CBR after the last of them that is none",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- |unknown pge:8100 "
	  "tnt:T pgd:- mtc:1 cbr:8 pge:8100 cbr:9 fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "a pause that an OVF ends is none",
	  "|host " HOST_PSB
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- |unknown ovf pge:8100 tnt:T "
	  "fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "an OVF after a pause",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- |unknown pge:8100 ovf "
	  "fup:8104 |host pip:1000 tip:f000",
	  NULL },
	{ "a pause: an exit from the guest's user",
	  "|host " HOST_PSB
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000 pgd:- pge:8100 tnt:T pgd:- mtc:1 "
	  "|host pip:1000 exec:64 pge:f000 tnt:T",
	  NULL },
	{ "with the same CR3 it may be the MOV CR3 that a CR3 filter waits for",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:1000:nr tip:8000 pgd:- |unknown mtc:1 |host "
	  "pip:1000 pge:f000 tnt:T",
	  NULL },
	{ "a pause: the host's user, its kernel, an entry to the guest's user",
	  "|host " HOST_PSB
	  "pge:f000 tnt:T pgd:- mtc:1 exec:64 pge:f100 tnt:T |vm:a000 pip:2000:nr "
	  "pgd:- pge:8100 tnt:T fup:8200 |host pip:1000 tip:f000",
	  NULL },
	{ "in a pause a PIP without TIP packet proves no transition",
	  "|host " HOST_PSB "pge:f000 pgd:- |unknown pge:8000 tnt:T |vm:a000 pip:2000:nr tnt:T",
	  NULL },
	{ "a TIP.PGD with an IP leaves no doubt",
	  "|host " HOST_PSB "pge:f000 pgd:e000 pge:f00c tnt:T", NULL },
	{ "guest only: one VM, exits and entries without PIP",
	  "|vm:a000 " A_PSB
	  "pge:8000 fup:8008 pgd:- pge:8008 tnt:T fup:8010 pgd:- pge:8010 tnt:T " A_PSB "tnt:T",
	  NULL },
	{ "guest only: after TIP.PGD() a PIP proves the VM, its VMCS assumed",
	  "|vm:a000 " A_PSB "pge:8000 fup:8008 pgd:- pip:2000:nr pge:8008 tnt:T", NULL },
	{ "guest only: a MOV CR3 and a RET",
	  "|vm:a000 " A_PSB
	  "pge:8000 fup:8008 pgd:- cbr:8 pge:8008 tnt:T pip:2000:nr tip:8200 tnt:T",
	  NULL },
	{ "guest only: a PSB+ tells of another VMCS",
	  "|vm:a000 " A_PSB "pge:8000 fup:8008 pgd:- |vm:b000 " B_PSB "pge:9000 tnt:T", NULL },
	{ "the VMCS stays known in a system-wide trace",
	  "|host " HOST_PSB "pge:f000 |vm:a000 pip:2000:nr tip:8000 fup:8004 pgd:- |host pip:1000 "
	  "pge:f000 |vm:a000 pip:2000:nr tip:8000",
	  NULL },

	/* OS=0 */
	{ "OS=0: no PIP anywhere, no owner",
	  "|unknown psb exec:64 cbr:8 psbend pge:4000 tnt:T pgd:- pge:4004 tnt:T tip:5000", NULL },

	/* concealed */
	{ "a concealed guest looks like the host",
	  "|host " HOST_PSB "pge:f000 tnt:T pip:2000 tip:8000 tnt:T psb pip:2000 psbend tnt:T",
	  NULL },
};

START_TEST(row)
{
	notation_check_slices(rows[_i].trace, rows[_i].options);
}
END_TEST

static void check_packets(const struct row *row)
{
	static struct notation n;
	struct vmpt_decoder *d;
	struct vmpt_cursor at = { 0 };
	struct vmpt_packet p;
	size_t i;
	int ret;

	notation_read(&n, row->trace);
	ck_assert_int_eq(vmpt_decoder_open(&d, &n.stream, row->options), 0);
	while ((ret = vmpt_packet_next(d, &at, &p)) > 0) {
		for (i = 0; i + 1 < n.slice_count && n.slices[i + 1].offset <= p.offset; i++)
			;
		if (p.owner.sure == VMPT_UNCERTAIN)
			continue;
		ck_assert_msg(vmpt_owner_same(&p.owner, &n.slices[i].owner), "%s: packet at %#llx",
			      row->name, (unsigned long long)p.offset);
	}
	ck_assert_int_eq(ret, 0);
	vmpt_decoder_close(d);
}

/*
 * With NR given, each row has no byte without an owner but those that are no packets. Restarts as
 * kAFL makes them: TIP.PGD, CBR, MODE.Exec, TIP.PGE, and no PSB.
 */
#define RESTART "fup:8008 pgd:- cbr:8 exec:64 pge:8100 tnt:TT "

static const struct vmpt_options guests = { .guest_only = VMPT_GUEST_ONLY_YES };
static const struct vmpt_options guests_headless = { .guest_only = VMPT_GUEST_ONLY_YES,
						     .headless = true };

static const struct row a3_rows[] = {
	{ "restarts, then the end", "|vm:a000 " A_PSB "pge:8000 " RESTART RESTART RESTART,
	  &guests },
	{ "restarts without a VMCS",
	  "|vm psb exec:64 pip:2000:nr cbr:8 psbend pge:8000 " RESTART RESTART, &guests },
	{ "a MOV CR3 after a restart",
	  "|vm:a000 " A_PSB "pge:8000 " RESTART "pip:4000:nr tip:8200 tnt:T " RESTART, &guests },
	{ "user space only, without a PIP", "|vm psb cbr:8 psbend pge:8000 tnt:T " RESTART,
	  &guests },
	{ "from the first byte", "|vm tnt:T mtc:1 " RESTART, &guests_headless },
	{ "after damage a VM, its VMCS unknown",
	  "|vm:a000 " A_PSB "pge:8000 |loss raw:05 tnt:T |vm psb cbr:8 psbend pge:8000 tnt:T",
	  &guests },
	{ "the VMCS is in doubt after an OVF", "|vm:a000 " A_PSB "pge:8000 ovf |vm fup:8100 tnt:T",
	  &guests },
	{ "and if a PIP follows",
	  "|vm:a000 " A_PSB "pge:8000 ovf |vm fup:8100 tnt:T " RESTART "pip:4000:nr tip:8200 tnt:T "
	  "|vm:b000 " B_PSB "tnt:T",
	  &guests },
	{ "a PSB+ proves it",
	  "|vm:a000 " A_PSB "pge:8000 ovf fup:8100 tnt:T " RESTART A_PSB "tnt:T", &guests },
	{ "tracing ends with a CFE.VMEXIT",
	  "|vm:a000 " A_PSB "pge:8000 cfe:VMEXIT:ip fup:8008 pgd:- cbr:8 exec:64 pge:8100 tnt:T",
	  &guests },
	{ "an exit clears TraceEn by its list: the host's up to there",
	  "|vm:a000 " A_PSB
	  "pge:8000 fup:8008 |host pip:1000 tip:f000 fup:f004 pgd:- |vm:a000 cbr:8 "
	  "exec:64 pge:8008 tnt:T fup:800c |host pip:1000 tip:f000 pgd:f008",
	  &guests },
	{ "the same with Event Trace",
	  "|vm:a000 " A_PSB "pge:8000 cfe:VMEXIT:ip fup:8008 |host ptw:1 pgd:- |vm:a000 cbr:8 "
	  "pge:8008 tnt:T",
	  &guests },
};

START_TEST(a3_guests_only_and_nr_is_known)
{
	notation_check_slices(a3_rows[_i].trace, a3_rows[_i].options);
	check_packets(&a3_rows[_i]);
}
END_TEST

/* The VMCS keeps its own certainty. */
START_TEST(a3_the_vmcs_is_assumed_after_a_restart)
{
	static struct notation n;
	struct vmpt_splitter *split;
	struct vmpt_slice s;

	notation_read(&n, A_PSB "pge:8000 " RESTART);
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, &guests), 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.size, n.size);
	ck_assert_uint_eq(s.owner.vmcs, 0xa000);
	ck_assert_uint_eq(s.owner.sure, VMPT_ASSUMED);
	vmpt_splitter_close(split);
}
END_TEST

static const struct vmpt_options hosts = { .host_only = true };
static const struct vmpt_options hosts_headless = { .host_only = true, .headless = true };

static const struct row a4_rows[] = {
	{ "user space only, without a PIP",
	  "|host psb exec:64 cbr:8 psbend pge:4000 tnt:T pgd:- pge:4004 tnt:T tip:5000 pgd:-",
	  &hosts },
	{ "after a TIP.PGD() and an OVF",
	  "|host " HOST_PSB "pge:f000 pgd:- cbr:8 pge:f00c tnt:T ovf fup:f100 tnt:T", &hosts },
	{ "after damage", "|host psb psbend pge:f000 |loss raw:05 tnt:T |host psb psbend tnt:T",
	  &hosts },
	{ "from the first byte", "|host tnt:T mtc:1 pge:f000", &hosts_headless },
	{ "a PIP with NR = 1 contradicts: from there on only packets count",
	  "|host psb psbend pge:f000 tnt:T |vm pip:2000:nr tip:8000 fup:8004 pgd:- |unknown cbr:8 "
	  "pge:f00c tnt:T",
	  &hosts },
	{ "so does a CFE",
	  "|host psb psbend pge:f000 cfe:VMENTRY:ip fup:f004 |vm ptw:1 pgd:- |unknown cbr:8 "
	  "pge:f00c tnt:T",
	  &hosts },
};

START_TEST(a4_hosts_only_and_nr_is_known)
{
	notation_check_slices(a4_rows[_i].trace, a4_rows[_i].options);
	check_packets(&a4_rows[_i]);
}
END_TEST

START_TEST(a4_host_only_and_guest_only_exclude_each_other)
{
	struct vmpt_options both = { .guest_only = VMPT_GUEST_ONLY_YES, .host_only = true };
	static struct notation n;
	struct vmpt_splitter *split;
	struct vmpt_decoder *dec;

	notation_read(&n, HOST_PSB);
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, &both), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &n.stream, &both), -VMPT_E_INVAL);
	both = (struct vmpt_options){ .guest_only = (enum vmpt_guest_only)7 };
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, &both), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &n.stream, &both), -VMPT_E_INVAL);
}
END_TEST

/* Batches have the same owners as slices, apart from doubt, packet by packet. */
START_TEST(packets_have_the_owners_of_their_slices)
{
	check_packets(&rows[_i]);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/vm-tracker");
	TCase *t = tcase_create("rows");

	tcase_add_loop_test(t, row, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_loop_test(t, packets_have_the_owners_of_their_slices, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_loop_test(t, a3_guests_only_and_nr_is_known, 0, VMPT_ARRAY_SIZE(a3_rows));
	tcase_add_test(t, a3_the_vmcs_is_assumed_after_a_restart);
	tcase_add_loop_test(t, a4_hosts_only_and_nr_is_known, 0, VMPT_ARRAY_SIZE(a4_rows));
	tcase_add_test(t, a4_host_only_and_guest_only_exclude_each_other);
	suite_add_tcase(s, t);
	return s;
}
