// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The generator against the manual: packets of the rows of Tables 33-53 to 33-59
 * written out by hand, the truth's own consistency; and every script of the folder
 * in libipt's packet decoder.
 */
#include <dirent.h>
#include <intel-pt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"
#include "util/array.h"

#define SCRIPTS "tests/tracegen/scripts"

static const struct tracegen_options all = { .packets = true, .insns = true };

static struct tracegen *run(const char *script)
{
	struct tracegen *g = tracegen_run("test", script, &all);

	ck_assert_ptr_nonnull(g);
	ck_assert_msg(!tracegen_error(g), "%s", tracegen_error(g));
	return g;
}

/* ---- packets as text: full IPs, the tables' names ---- */

struct text {
	char *s;
	size_t len, max;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list args;

	if (vmpt_reserve(&t->s, &t->max, t->len + 128))
		ck_abort_msg("no memory");
	va_start(args, fmt);
	t->len += (size_t)vsnprintf(t->s + t->len, t->max - t->len, fmt, args);
	va_end(args);
}

static void add_tnt(struct text *t, const struct vmpt_pt_packet *p)
{
	u64 i;

	add(t, "TNT ");
	for (i = p->tnt.count; i--;)
		add(t, "%c", p->tnt.bits >> i & 1 ? 'T' : 'N');
}

static void add_packet(struct text *t, const struct vmpt_pt_packet *p, u64 *last_ip)
{
	switch (p->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		add_tnt(t, p);
		return;
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		*last_ip = vmpt_pt_ip_expand(*last_ip, (unsigned int)p->ip.ipbytes, p->ip.ip);
		add(t, "%s", vmpt_pt_name(p->kind));
		if (p->ip.ipbytes)
			add(t, " %llx", (unsigned long long)*last_ip);
		return;
	case VMPT_PT_PIP:
		add(t, "PIP %llx%s", (unsigned long long)p->pip.cr3, p->pip.nr ? " NR" : "");
		return;
	case VMPT_PT_VMCS:
		add(t, "VMCS %llx", (unsigned long long)p->vmcs.pointer);
		return;
	case VMPT_PT_MODE_EXEC:
		add(t, "MODE.Exec %d%s",
		    p->exec.cs_l   ? 64
		    : p->exec.cs_d ? 32
				   : 16,
		    p->exec.rflags_if ? " IF" : "");
		return;
	case VMPT_PT_MODE_TSX:
		add(t, "MODE.TSX %s", p->tsx.intx ? "in" : p->tsx.txabort ? "abort" : "out");
		return;
	case VMPT_PT_CFE:
		add(t, "CFE%s %llu %llu", p->cfe.ip ? " IP" : "", (unsigned long long)p->cfe.type,
		    (unsigned long long)p->cfe.vector);
		return;
	case VMPT_PT_EVD:
		add(t, "EVD %llu %llx", (unsigned long long)p->evd.type,
		    (unsigned long long)p->evd.payload);
		return;
	case VMPT_PT_PTW:
		add(t, "PTW%s %d %llx", p->ptw.ip ? " IP" : "", p->ptw.payload_bytes ? 8 : 4,
		    (unsigned long long)p->ptw.payload);
		return;
	case VMPT_PT_TRIG:
		add(t, "TRIG%s %llx", p->trig.ip ? " IP" : "", (unsigned long long)p->trig.trbv);
		if (p->trig.icntv)
			add(t, " %llu", (unsigned long long)p->trig.icnt);
		return;
	case VMPT_PT_EXSTOP:
		add(t, "EXSTOP%s", p->exstop.ip ? " IP" : "");
		return;
	case VMPT_PT_BEP:
		add(t, "BEP%s", p->bep.ip ? " IP" : "");
		return;
	case VMPT_PT_CYC:
		add(t, "CYC %llu", (unsigned long long)p->cyc.cycles);
		return;
	case VMPT_PT_TSC:
		add(t, "TSC %llx", (unsigned long long)p->tsc.tsc);
		return;
	default:
		add(t, "%s", vmpt_pt_name(p->kind));
	}
}

/* All packets of CPU 0, "; " between them, NULL-terminated; free() it. */
static char *packets(const struct tracegen *g)
{
	const struct tracegen_stream *s = tracegen_stream(g, 0);
	struct vmpt_pt_packet p;
	struct text t = { 0 };
	unsigned int block = 0;
	u64 at, last_ip = 0;

	add(&t, "%s", "");
	for (at = 0; at < s->size; at += p.size) {
		ck_assert_int_eq(vmpt_pt_decode(&p, s->data + at, s->size - at, block), 0);
		block = vmpt_pt_block_after(&p, block);
		if (p.kind == VMPT_PT_PSB)
			last_ip = 0;
		add(&t, "%s", at ? "; " : "");
		add_packet(&t, &p, &last_ip);
	}
	return t.s;
}

/*
 * Each row: a script and the packets after the first TIP.PGE, or after PSBEND
 * where there is none. The host's code begins at 100000 (CR3 1000), VM A's at 400000
 * (CR3 5000, VMCS 7000), so that IPs can be counted by hand: NOP 1 byte, RET, HLT 1,
 * indirect branches 2, VMPTRLD, VMRESUME, MOV CR3 3; new places are 100H apart.
 */
struct row {
	const char *name, *script, *packets;
};

#define HOST	    "host cr3=0x1000 ip=0x100000\n"
#define A	    "vm A vmcs=0x7000 cr3=0x5000 ip=0x400000\n"
#define PTRLD	    HOST A "vmptrld A\n"
#define VMCS_PACKET "VMCS 7000; "

static const struct row rows[] = {
	/* Table 33-55 */
	{ "33-55/1 no jump", HOST "straight 5", "" },
	{ "33-55/2 sixth branch", HOST "cond TNTTNT", "TNT TNTTNT" },
	{ "33-55/3 fifth branch", HOST "cond TNTTN", "TNT TNTTN" },
	{ "33-55/4 indirect", HOST "straight\nijmp\nicall", "TIP 100100; TIP 100200" },
	{ "33-55/5 direct", HOST "jmp\ncall", "" },
	{ "33-55/6 RET uncompressed", "set retcomp=0\n" HOST "call\nret", "TIP 100005" },
	{ "33-55/7 RET compressed", HOST "cond NNNNN\ncall\nret", "TNT NNNNNT" },
	{ "33-55/8 far branch", HOST "far", "TIP 100100" },
	{ "33-55/9 far, CR3", HOST "far cr3=0x2000", "PIP 2000; TIP 100100" },
	{ "33-55/10 far, CR3 and CS", HOST "far cr3=0x2000 mode=32",
	  "PIP 2000; MODE.Exec 32; TIP 40000000" },
	{ "33-55/11 interrupt", HOST "straight 2\ninterrupt", "FUP 100002; TIP 100100" },
	{ "33-55/12 interrupt, CR3 and CS", HOST "interrupt cr3=0x2000 mode=32",
	  "FUP 100000; PIP 2000; MODE.Exec 32; TIP 40000000" },
	{ "33-55/13 software interrupt", HOST "straight\nswint", "FUP 100001; TIP 100100" },
	{ "33-55/14 MOV CR3", HOST "write-cr3 0x2000\nwrite-cr3 0x2000", "PIP 2000; PIP 2000" },
	{ "33-55/19 XBEGIN", HOST "straight\ntsx begin", "MODE.TSX in; FUP 100001" },
	{ "33-55/20 XEND", HOST "tsx begin\ntsx end",
	  "MODE.TSX in; FUP 100000; MODE.TSX out; FUP 100006" },
	{ "33-55/21 XABORT", HOST "tsx begin\ntsx abort",
	  "MODE.TSX in; FUP 100000; MODE.TSX abort; FUP 100006; TIP 100100" },
	{ "33-55/25 wake", "set tsc=1 mtc=1\n" HOST "wake", "TSC 10000000; TMA; CBR; PWRX" },
	/* Table 33-53, system-wide */
	{ "33-53 entry and exit", PTRLD "enter A\nstraight 3\nexit ept",
	  VMCS_PACKET "PIP 5000 NR; TIP 400000; FUP 400003; PIP 1000; TIP 100006" },
	{ "33-53 exit by an instruction", PTRLD "enter A\nexit hlt\nenter A",
	  VMCS_PACKET "PIP 5000 NR; TIP 400000; FUP 400000; PIP 1000; TIP 100006; "
		      "PIP 5000 NR; TIP 400001" },
	{ "33-53 with a change of mode",
	  HOST "vm A vmcs=0x7000 cr3=0x5000 ip=0x400000 mode=32\nvmptrld A\nenter A\nexit ept",
	  VMCS_PACKET "PIP 5000 NR; MODE.Exec 32; TIP 400000; FUP 400000; PIP 1000; "
		      "MODE.Exec 64; TIP 100006" },
	{ "33-53 with Event Trace",
	  "set event_en=1\n" PTRLD "enter A\nexit ept qualification=0x181",
	  VMCS_PACKET "CFE IP 7 0; FUP 100003; PIP 5000 NR; TIP 400000; "
		      "EVD 2 30; EVD 1 181; CFE 8 0; FUP 400000; PIP 1000; TIP 100006" },
	{ "33-53 without branches", "set branch_en=0\n" PTRLD "enter A\nexit ept",
	  VMCS_PACKET "PIP 5000 NR; PIP 1000" },
	/* Table 33-54 */
	{ "33-54 early", PTRLD "failed-entry A early", VMCS_PACKET "TIP 100006" },
	{ "33-54 late", PTRLD "failed-entry A late",
	  VMCS_PACKET "PIP 5000 NR; PIP 1000; TIP 100006" },
	{ "33-54 late, Event Trace", "set event_en=1\n" PTRLD "failed-entry A late",
	  VMCS_PACKET "CFE IP 7 0; FUP 100003; PIP 5000 NR; PIP 1000; TIP 100006" },
	{ "33-54 VM only", "set trace=guest\n" PTRLD "failed-entry A late\nfailed-entry A early",
	  "" },
	/* Table 33-56 */
	{ "33-56/3 TraceEn cleared", HOST "straight\ntrace off", "FUP 100001; TIP.PGD" },
	{ "33-56/2 TraceEn set",
	  "set tsc=1 mtc=1\n" HOST "straight\ntrace off\nadvance 256\ntrace on",
	  "FUP 100001; TIP.PGD; TSC 10000109; TMA; CBR; MODE.Exec 64; TIP.PGE 100005" },
	{ "33-56/4 out of the IP filter", HOST "ip-filter leave\nrun 9", "TIP.PGD 100100" },
	{ "33-56/5 into it", HOST "ip-filter leave\nip-filter return",
	  "TIP.PGD 100100; TIP.PGE 100200" },
	{ "33-56/6 far branch out of the context",
	  "set os=0\nhost cpl=3 ip=0x100000\nsyscall\nrun 9\nsysret", "TIP.PGD; TIP.PGE 100002" },
	{ "33-56/7 interrupt out of it",
	  "set os=0\nhost cpl=3 ip=0x100000\nstraight\ninterrupt\nrun 9\niret",
	  "FUP 100001; TIP.PGD; TIP.PGE 100001" },
	{ "33-56/11 exit, guest-only", "set trace=guest\n" PTRLD "enter A\nstraight\nexit ept",
	  "FUP 400001; TIP.PGD" },
	{ "33-56/12 entry, guest-only",
	  "set trace=guest\n" PTRLD "enter A\nexit ept\nrun 5\nenter A",
	  "FUP 400000; TIP.PGD; CBR; PIP 5000 NR; MODE.Exec 64; TIP.PGE 400000" },
	{ "33-56/9 entry, host-only", "set trace=host fup_at_host_entry=1\n" PTRLD "enter A",
	  VMCS_PACKET "FUP 100006; TIP.PGD" },
	{ "33-56/10 exit, host-only", "set trace=host\n" PTRLD "enter A\nrun 9\nexit ept",
	  VMCS_PACKET "TIP.PGD; CBR; PIP 1000; MODE.Exec 64; TIP.PGE 100006" },
	/* PTWRITE and power: Tables 33-57 and 33-58 */
	{ "PTW/2", HOST "ptwrite 32 ip 0x11223344", "PTW IP 4 11223344; FUP 100000" },
	{ "PTW/3", HOST "ptwrite 0x55", "PTW 8 55" },
	{ "TRIG", HOST "trig 5 ip\ntrig 2 9 mult", "TRIG IP 5; FUP 100000; TRIG 2 9" },
	{ "power/4", HOST "mwait 0x20 1", "MWAIT; PWRE; EXSTOP IP; FUP 100000" },
	{ "power/6", "set tsc=1 mtc=1\n" HOST "hdc",
	  "PWRE; EXSTOP IP; FUP 100000; TSC 10000000; TMA; CBR; PWRX" },
	{ "block", HOST "block 4 2", "BBP; BIP; BIP; BEP IP; FUP 100000" },
	/* Table 33-59 */
	{ "33-59/1 IRET", "set event_en=1\n" HOST "interrupt 5\nstraight\niret",
	  "CFE 1 5; FUP 100000; MODE.Exec 64; TIP 100100; CFE IP 2 0; FUP 100101; "
	  "MODE.Exec 64 IF; TIP 100000" },
	{ "33-59/2 IRET into the context",
	  "set event_en=1 os=0\nhost cpl=3 ip=0x100000\ninterrupt 5\niret",
	  "CFE 1 5; FUP 100000; TIP.PGD; CFE 2 0; TIP.PGE 100000" },
	{ "33-59/3 interrupt, no branches", "set event_en=1 branch_en=0\n" HOST "interrupt 5",
	  "CFE IP 1 5; FUP 100000" },
	{ "33-59/4 interrupt", "set event_en=1\n" HOST "interrupt 5",
	  "CFE 1 5; FUP 100000; MODE.Exec 64; TIP 100100" },
	{ "33-59/5 software interrupt", "set event_en=1 branch_en=0\n" HOST "straight\nswint 5",
	  "CFE IP 1 5; FUP 100001" },
	{ "33-59/6 page fault", "set event_en=1 branch_en=0\n" HOST "exception 14 addr=0xabc",
	  "EVD 0 abc; CFE IP 1 14; FUP 100000" },
	{ "33-59/7 page fault, no context",
	  "set event_en=1 user=0\nhost cpl=3 ip=0x100000\nexception 14 addr=0xabc",
	  "MODE.Exec 64; TIP.PGE 100100" },
	{ "33-59/13 exit by an interrupt",
	  "set event_en=1 branch_en=0 evd_qualification_first=1\n" PTRLD
	  "enter A\nexit interrupt vector=7",
	  VMCS_PACKET "CFE IP 7 0; FUP 100003; PIP 5000 NR; "
		      "EVD 1 0; EVD 2 1; CFE IP 9 7; FUP 400000; PIP 1000" },
	{ "33-59/15 exit into the context",
	  "set event_en=1 os=1 user=0\n" HOST
	  "vm A vmcs=0x7000 cr3=0x5000 ip=0x400000 cpl=3\nvmptrld A\nenter A\nexit ept",
	  VMCS_PACKET "CFE IP 7 0; FUP 100003; TIP.PGD; CFE 8 0; TIP.PGE 100006" },
	{ "33-59/22 CLI", "set event_en=1\n" HOST "straight\ncli\ncli\nsti",
	  "MODE.Exec 64; FUP 100001; MODE.Exec 64 IF; FUP 100003" },
	/* Overflow (33.3.8), TraceStop (33.4.2.9) */
	{ "overflow, PacketEn=1", HOST "cond TTT\noverflow {\nijmp\n}\nijmp",
	  "TNT TTT; OVF; FUP 100100; TIP 100200" },
	{ "overflow, PacketEn=0",
	  "set os=0\nhost cpl=3 ip=0x100000\noverflow {\nsyscall\n}\nsysret",
	  "OVF; TIP.PGE 100002" },
	{ "overflow and PSB+", HOST "overflow psb {\nijmp\n}",
	  "OVF; PSB; MODE.Exec 64; MODE.TSX out; FUP 100100; PIP 1000; CBR; PSBEND; FUP 100100" },
	{ "no RET compressed over it", HOST "call\noverflow {\nstraight\n}\nret",
	  "OVF; FUP 100101; TIP 100005" },
	{ "TraceStop", HOST "tracestop\nrun 5", "TIP.PGD; TraceStop" },
	/* CYC before what is eligible (33.3.6) */
	{ "CYC", "set cyc=1 ticks=7\n" HOST "ijmp\ncond TTTTTT\nwrite-cr3 0x2000",
	  "CYC 7; TIP 100100; CYC 42; TNT TTTTTT; CYC 7; PIP 2000" },
	/* Table 33-52 */
	{ "concealed",
	  HOST "vm A vmcs=0x7000 cr3=0x5000 ip=0x400000 conceal_exec=1 conceal_entry=1 "
	       "conceal_exit=1\nvmptrld A\nenter A\nwrite-cr3 0x6000\npsb\nexit ept",
	  VMCS_PACKET "TIP 400000; PIP 6000; PSB; MODE.Exec 64; MODE.TSX out; FUP 400003; "
		      "PIP 6000; CBR; PSBEND; FUP 400003; TIP 100006" },
};

START_TEST(packet_rows)
{
	const struct row *r = &rows[_i];
	struct tracegen *g = run(r->script);
	char *s = packets(g), *at;

	/* The case of a host that begins outside the context has its PGE in the row. */
	at = strncmp(r->packets, "MODE.Exec 64; TIP.PGE", 21) ? strstr(s, "TIP.PGE") : NULL;
	if (!at)
		at = strstr(s, "PSBEND");
	at = at ? strstr(at, "; ") : NULL;
	ck_assert_msg(!strcmp(at ? at + 2 : "", r->packets), "%s: %s", r->name, s);
	free(s);
	tracegen_free(g);
}
END_TEST

/* ---- who owns what ---- */

static void owners(const char *script, const char *expected)
{
	struct tracegen *g = run(script);
	const struct tracegen_stream *s = tracegen_stream(g, 0);
	struct text t = { 0 };
	size_t i;

	for (i = 0; i < s->range_count; i++) {
		int o = s->ranges[i].owner;

		add(&t, "%s%s %llu", i ? ", " : "",
		    o == TRACEGEN_NONE	 ? "none"
		    : o == TRACEGEN_HOST ? "host"
					 : tracegen_vm(g, (size_t)o)->name,
		    (unsigned long long)s->ranges[i].size);
	}
	ck_assert_str_eq(t.s, expected);
	free(t.s);
	tracegen_free(g);
}

START_TEST(owner_ranges)
{
	/* PSB+ 16+2+8+7+4+2, MODE 2, PGE 5, VMCS 7; PIP 8, TIP 5, FUP 3; PIP 8, TIP 5 */
	owners(PTRLD "enter A\nstraight\nexit ept", "host 53, A 16, host 13");
	/* A TNT that is buffered at the entry is the host's. */
	owners(PTRLD "cond T\nenter A", "host 54, A 13");
	owners(PTRLD "enter A\nraw none 00\nraw host 0000\ndamage 4", "host 53, A 13, none 1, "
								      "host 2, none 4");
	/* A TIP.PGD with no group before it ends what was; a CYC is of the time before it. */
	owners("set user=0\n" HOST "vm A ip=0x400000 cpl=3\nvmptrld A\nenter A\nrun 9", "host 54");
	owners("set cyc=1\n" PTRLD "enter A", "host 55, A 13");
	/* The late failure is the host's from its first byte to its last. */
	owners(PTRLD "failed-entry A late", "host 72");
}
END_TEST

START_TEST(clocks)
{
	struct tracegen *g = run("set tsc=1\n" HOST
				 "vm A ip=0x400000 tsc_offset=-0x1000 tsc_mult=0x800000000000\n"
				 "vmptrld A\nadvance 0x100\nenter A\ntsc");
	char *s = packets(g);

	/* 10000000H + 3 for the VMPTRLD + 100H + 3 for the VMRESUME, by a half, less 1000H */
	ck_assert_ptr_nonnull(strstr(s, "TSC 10000000; "));
	ck_assert_ptr_nonnull(strstr(s, "TSC 7fff083"));
	free(s);
	tracegen_free(g);
}
END_TEST

START_TEST(return_stack)
{
	struct tracegen *g = run(PTRLD "call\nenter A\ncall\nexit ept\nret\nenter A\nret");
	const struct tracegen_stream *s = tracegen_stream(g, 0);

	/* The host's RET meets the guest's entry and is sent; the guest's meets the host's. */
	ck_assert_uint_eq(s->ret_count, 0);
	tracegen_free(g);
	g = run(PTRLD "call\nenter A\ncall\nexit ept\nenter A\nret\nexit ept\ncond TN\nret\npsb");
	s = tracegen_stream(g, 0);
	ck_assert_uint_eq(s->ret_count, 2);
	ck_assert_int_eq(s->rets[0].owner, 0);
	ck_assert_uint_eq(s->rets[0].call, 1);
	ck_assert_uint_eq(s->rets[0].target, 0x400005);
	ck_assert_int_eq(s->rets[1].owner, TRACEGEN_HOST);
	ck_assert_uint_eq(s->rets[1].call, 0);
	ck_assert_uint_eq(s->rets[1].bit, 2);
	ck_assert_uint_eq(s->data[s->rets[1].offset], 0x1a); /* stop bit, T, N, T */
	tracegen_free(g);
}
END_TEST

START_TEST(other_owners_call)
{
	struct tracegen *g = run(HOST "vm A ip=0x400000\nvm B ip=0x400000\n"
				      "vmptrld B\nenter B\ncall\nexit ept\npsb\n"
				      "vmptrld A\nenter A\ncall\nexit ept\n"
				      "vmptrld B\nenter B\nret");
	const struct tracegen_stream *s = tracegen_stream(g, 0);

	ck_assert_uint_eq(s->ret_count, 1);
	ck_assert_int_eq(s->rets[0].owner, 1);
	ck_assert_int_eq(s->rets[0].call_owner, 0);
	tracegen_free(g);
}
END_TEST

START_TEST(deep_stack)
{
	struct tracegen *g = run(HOST "repeat 70 {\ncall\n}\nrepeat 71 {\nret\n}");
	const struct tracegen_stream *s = tracegen_stream(g, 0);

	ck_assert_uint_eq(s->ret_count, 64);
	ck_assert_uint_eq(s->rets[0].call, 69);
	ck_assert_uint_eq(s->rets[63].call, 6);
	ck_assert_uint_eq(s->host.calls, 70);
	ck_assert_uint_eq(s->host.rets, 71);
	tracegen_free(g);
}
END_TEST

START_TEST(counts)
{
	struct tracegen *g = run(PTRLD "repeat 5 {\nenter A\nrun 3\nexit ept\n}\n"
				       "failed-entry A early\noverflow {\nenter A\nexit ept\n}");
	const struct tracegen_count *c = &tracegen_stream(g, 0)->vms[0];

	ck_assert_uint_eq(c->entries, 6);
	ck_assert_uint_eq(c->exits, 6);
	ck_assert_uint_eq(c->seen_entries, 5);
	ck_assert_uint_eq(c->seen_exits, 5);
	ck_assert_uint_eq(c->failed_early, 1);
	ck_assert_uint_eq(tracegen_stream(g, 0)->loss_count, 1);
	tracegen_free(g);
}
END_TEST

START_TEST(psb_cadence)
{
	struct tracegen *g = run("set psb_every=512\n" HOST "run 60000");
	const struct tracegen_stream *s = tracegen_stream(g, 0);
	u64 last = 0, n = 0;
	size_t i;

	for (i = 0; i < s->packet_count; i++) {
		if (s->packets[i].kind != VMPT_PT_PSB)
			continue;
		if (n++)
			ck_assert_uint_lt(s->packets[i].offset - last, 512 + 32);
		ck_assert(n < 2 || s->packets[i].offset - last >= 512);
		last = s->packets[i].offset;
	}
	ck_assert_uint_ge(n, 10000 / 544);
	tracegen_free(g);
}
END_TEST

/* ---- all scripts of the folder ---- */

/* The truth covers every byte, and its packets follow each other. */
static void check_cover(const struct tracegen_stream *s)
{
	u64 at = 0;
	size_t i;

	for (i = 0; i < s->range_count; i++) {
		ck_assert_uint_eq(s->ranges[i].offset, at);
		ck_assert_uint_gt(s->ranges[i].size, 0);
		if (i)
			ck_assert_int_ne(s->ranges[i].owner, s->ranges[i - 1].owner);
		at += s->ranges[i].size;
	}
	ck_assert_uint_eq(at, s->size);
	for (i = 0, at = 0; i < s->packet_count; i++) {
		ck_assert_uint_eq(s->packets[i].offset, at);
		at += s->packets[i].size;
	}
	ck_assert_uint_eq(at, s->size);
}

static bool has_kind(const struct tracegen_stream *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->packet_count; i++)
		if (s->packets[i].kind >= VMPT_PT_KINDS ||
		    !strcmp(vmpt_pt_name(s->packets[i].kind), name))
			return true;
	return false;
}

/* libipt's packets have the offsets and sizes of the truth's; kinds that it lacks are skipped. */
static bool check_libipt(const char *name, const struct tracegen_stream *s)
{
	struct pt_packet_decoder *dec;
	struct pt_config config;
	struct pt_packet packet;
	size_t i = 0;
	int ret;

	if (has_kind(s, "CFE") || has_kind(s, "BBP"))
		return false;
	pt_config_init(&config);
	config.begin = s->data;
	config.end = s->data + s->size;
	dec = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(dec);
	ck_assert_int_eq(pt_pkt_sync_set(dec, 0), 0);
	while ((ret = pt_pkt_next(dec, &packet, sizeof(packet))) >= 0) {
		ck_assert_uint_lt(i, s->packet_count);
		ck_assert_msg(packet.size == s->packets[i].size, "%s: at %llu", name,
			      (unsigned long long)s->packets[i].offset);
		i++;
	}
	ck_assert_msg(ret == -pte_eos, "%s: %s", name, pt_errstr(pt_errcode(ret)));
	ck_assert_uint_eq(i, s->packet_count);
	pt_pkt_free_decoder(dec);
	return true;
}

START_TEST(every_script)
{
	DIR *dir = opendir(test_source(SCRIPTS));
	unsigned int scripts = 0, decoded = 0;
	struct dirent *e;
	char path[4096];
	size_t i;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir))) {
		struct tracegen *g;

		/* The sanitizers see nothing more in the one that is as long as all others. */
		if (!strstr(e->d_name, ".trace") ||
		    (getenv("VMPT_SANITIZED") && !strcmp(e->d_name, "demo.trace")))
			continue;
		snprintf(path, sizeof(path), "%s/%s", test_source(SCRIPTS), e->d_name);
		g = tracegen_run_file(path, &all);
		ck_assert_ptr_nonnull(g);
		ck_assert_msg(!tracegen_error(g), "%s", tracegen_error(g));
		for (i = 0; i < tracegen_streams(g); i++) {
			check_cover(tracegen_stream(g, i));
			decoded += check_libipt(e->d_name, tracegen_stream(g, i));
		}
		tracegen_free(g);
		scripts++;
	}
	closedir(dir);
	ck_assert_uint_ge(scripts, 30);
	ck_assert_uint_ge(decoded, 25);
}
END_TEST

START_TEST(same_script_same_bytes)
{
	struct tracegen *a = tracegen_run_file(test_source(SCRIPTS "/kinds.trace"), NULL);
	struct tracegen *b = tracegen_run_file(test_source(SCRIPTS "/kinds.trace"), &all);
	const struct tracegen_stream *x = tracegen_stream(a, 0), *y = tracegen_stream(b, 0);

	ck_assert_uint_eq(x->size, y->size);
	ck_assert_mem_eq(x->data, y->data, x->size);
	tracegen_free(a);
	tracegen_free(b);
}
END_TEST

/* kinds.trace has every kind except those listed here. */
START_TEST(every_kind)
{
	struct tracegen *g = tracegen_run_file(test_source(SCRIPTS "/kinds.trace"), &all);
	unsigned int kind;

	for (kind = 0; kind < VMPT_PT_KINDS; kind++)
		ck_assert_msg(has_kind(tracegen_stream(g, 0), vmpt_pt_name(kind)), "no %s",
			      vmpt_pt_name(kind));
	tracegen_free(g);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tracegen");
	TCase *tc = tcase_create("tracegen");

	tcase_add_loop_test(tc, packet_rows, 0, (int)VMPT_ARRAY_SIZE(rows));
	tcase_add_test(tc, owner_ranges);
	tcase_add_test(tc, clocks);
	tcase_add_test(tc, return_stack);
	tcase_add_test(tc, other_owners_call);
	tcase_add_test(tc, deep_stack);
	tcase_add_test(tc, counts);
	tcase_add_test(tc, psb_cadence);
	tcase_add_test(tc, every_script);
	tcase_add_test(tc, same_script_same_bytes);
	tcase_add_test(tc, every_kind);
	suite_add_tcase(suite, tc);
	return suite;
}
