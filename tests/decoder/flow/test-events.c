// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events that leave the flow, and where tracing goes off and on: those that the packets say, found
 * by another rule than the decoder's; and their place among the instructions, worked out by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/flow-run.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"
#include "util/array.h"

/* ---- a walk over packets ---- */

struct packets {
	struct vmpt_pt_packet *list;
	u64 *offset, *ip;
	bool *in_psb;
	size_t count, offsets, ips, in_psbs;
};

static void read_packets(struct packets *p, const struct vmpt_stream *s)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	bool in_psb = false;
	u64 at, last = 0;

	memset(p, 0, sizeof(*p));
	for (at = 0; at < s->size; at += pkt.size) {
		ck_assert_int_eq(vmpt_pt_decode(&pkt, s->data + at, s->size - at, block), 0);
		block = vmpt_pt_block_after(&pkt, block);
		in_psb |= pkt.kind == VMPT_PT_PSB;
		if (pkt.kind == VMPT_PT_PSB)
			last = 0;
		if (pkt.kind == VMPT_PT_PSBEND || pkt.kind == VMPT_PT_OVF)
			in_psb = false;
		if (vmpt_pt_table[pkt.kind].classes & VMPT_PT_HAS_IP && pkt.ip.ipbytes)
			last = vmpt_pt_ip_expand(last, (unsigned int)pkt.ip.ipbytes, pkt.ip.ip);
		if (pkt.kind == VMPT_PT_PAD || pkt.kind == VMPT_PT_CYC || pkt.kind == VMPT_PT_TSC ||
		    pkt.kind == VMPT_PT_TMA || pkt.kind == VMPT_PT_MTC || pkt.kind == VMPT_PT_CBR)
			continue;
		ck_assert(!vmpt_grow(&p->list, p->count) && !vmpt_grow(&p->offset, p->count) &&
			  !vmpt_grow(&p->ip, p->count) && !vmpt_grow(&p->in_psb, p->count));
		p->offset[p->count] = at;
		p->ip[p->count] = last;
		p->in_psb[p->count] = in_psb;
		p->list[p->count++] = pkt;
	}
}

static void free_packets(struct packets *p)
{
	free(p->list);
	free(p->offset);
	free(p->ip);
	free(p->in_psb);
}

/* Whether the FUP at @i is that of the packet before it (SDM 3 33.4.2.6). */
static bool belongs_to_one_before(const struct packets *p, size_t i)
{
	const struct vmpt_pt_packet *before = &p->list[i - 1];

	if (!i)
		return false;
	switch (before->kind) {
	case VMPT_PT_MODE_TSX:
		return !before->tsx.txabort;
	case VMPT_PT_MODE_EXEC:
	case VMPT_PT_OVF:
		return true;
	case VMPT_PT_PTW:
		return before->ptw.ip;
	case VMPT_PT_EXSTOP:
		return before->exstop.ip;
	case VMPT_PT_BEP:
		return before->bep.ip;
	case VMPT_PT_CFE:
		return before->cfe.ip;
	case VMPT_PT_TRIG:
		return before->trig.ip;
	default:
		return false;
	}
}

/* The FUP for which the TIP or TIP.PGD at @i is, or @i: none. */
static size_t fup_of(const struct packets *p, size_t i)
{
	size_t k;

	for (k = i; k; k--) {
		const struct vmpt_pt_packet *pkt = &p->list[k - 1];

		if (pkt->kind == VMPT_PT_FUP)
			break;
		if (pkt->kind != VMPT_PT_PIP && pkt->kind != VMPT_PT_VMCS &&
		    pkt->kind != VMPT_PT_MODE_EXEC && pkt->kind != VMPT_PT_MODE_TSX &&
		    pkt->kind != VMPT_PT_CFE && pkt->kind != VMPT_PT_EVD &&
		    pkt->kind != VMPT_PT_TRACESTOP && pkt->kind != VMPT_PT_BEP)
			return i;
	}
	return k && !p->in_psb[k - 1] && p->list[k - 1].ip.ipbytes &&
			       !belongs_to_one_before(p, k - 1)
		       ? k - 1
		       : i;
}

static void expect(const struct flow_run *run, size_t *n, u64 offset, u64 ip, u8 kind, bool off)
{
	const struct flow_mark *m = &run->marks[*n];

	ck_assert_msg(*n < run->mark_count, "no mark for the packet at %#llx",
		      (unsigned long long)offset);
	ck_assert_msg(m->offset == offset && m->ip == ip && m->kind == kind && m->off == off,
		      "kind %u of the packet at %#llx, IP %#llx: %u at %#llx, %#llx", kind,
		      (unsigned long long)offset, (unsigned long long)ip, m->kind,
		      (unsigned long long)m->offset, (unsigned long long)m->ip);
	++*n;
}

static u64 ip_of(const struct packets *p, size_t i)
{
	return p->list[i].ip.ipbytes ? p->ip[i] : 0;
}

/* Returns how many events there are. */
static size_t check(const struct vmpt_stream *stream, struct vmpt_code *code)
{
	struct vmpt_flow_options options = { .events = true, .switches = true };
	struct packets p;
	struct flow_run run;
	size_t i, fup, n = 0, events = 0;

	read_packets(&p, stream);
	flow_run(&run, stream, code, &options);
	for (i = 0; i < p.count; i++) {
		u8 kind = p.list[i].kind;

		if (kind == VMPT_PT_TIP || kind == VMPT_PT_TIP_PGD) {
			fup = fup_of(&p, i);
			if (fup != i) {
				events++;
				expect(&run, &n, p.offset[i], p.ip[fup], VMPT_FLOW_EVENT,
				       kind == VMPT_PT_TIP_PGD);
			}
		}
		if (kind == VMPT_PT_TIP_PGD)
			expect(&run, &n, p.offset[i], ip_of(&p, i), VMPT_FLOW_OFF, false);
		if (kind == VMPT_PT_TIP_PGE)
			expect(&run, &n, p.offset[i], ip_of(&p, i), VMPT_FLOW_ON, false);
	}
	ck_assert_uint_eq(n, run.mark_count);
	flow_run_free(&run);
	free_packets(&p);
	return events;
}

static const char *const traces[] = { "guest-unzip", "guest-mruby", "guest-two-vmcs" };

START_TEST(real)
{
	struct flow_real real;

	if (!flow_real_open(&real, traces[_i]))
		return;
	check(&real.stream, _i % 2 ? NULL : real.code);
	flow_real_close(&real);
}
END_TEST

/* Without damage. */
static const char *const scripts[] = {
	"branch-en0",	   "cfe-only",	"clocks",	"concealed", "context",
	"cr3-filter",	   "demo",	"events",	"example",   "failed-entry",
	"guest-only",	   "host-only", "ip-filter",	"kinds",     "mode-while-out",
	"one-owner",	   "os0",	"pgd-then-psb", "psb-fup",   "ret-compressed",
	"ret-other-owner", "timing",	"ovf-same",	"ovf-other", "ovf-disabled",
	"nested-calls",
};

START_TEST(generated)
{
	struct flow_generated code;
	struct tracegen *gen = flow_script(scripts[_i]);
	size_t i, events = 0;

	flow_generated_open(&code, gen);
	for (i = 0; i < tracegen_streams(gen); i++) {
		const struct tracegen_stream *s = tracegen_stream(gen, i);
		struct vmpt_stream stream = {
			.data = s->data, .size = s->size, .cpu = -1, .tid = -1
		};

		/* Where the code is missing, too. */
		events += check(&stream, code.code);
		check(&stream, NULL);
	}
	if (!strcmp(scripts[_i], "demo") || !strcmp(scripts[_i], "events"))
		ck_assert_uint_gt(events, 3);
	flow_generated_close(&code);
	tracegen_free(gen);
}
END_TEST

/* ---- their place ---- */

#define CODE 0x401000

/* nop; je 401008; nop; jmp rax; ret; hlt; 401008: call 401010; jmp .; hlt; 401010: nop; ret; at
 * 40101e: syscall */
static const u8 bytes[0x20] = { 0x90, 0x74, 0x05, 0x90, 0xff, 0xe0, 0xc3, 0xf4, 0xe8, 0x03, 0x00,
				0x00, 0x00, 0xeb, 0xfe, 0xf4, 0x90, 0xc3, 0xf4, 0xf4, 0xf4, 0xf4,
				0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0x0f, 0x05 };

/* E: event, -: off, +: on, each with its IP. A branch whose packet is missing does not count. */
static const struct {
	const char *packets, *list;
} rows[] = {
	/* Before the node's first instruction, within it, and at its branch */
	{ "psb psbend exec:64 pge:401000 fup:401000 tip:401010 tip:401004",
	  "+401000 E401000 401010 401011" },
	{ "psb psbend exec:64 pge:401000 fup:401001 tip:401010 tip:401004",
	  "+401000 401000 E401001 401010 401011" },
	{ "psb psbend exec:64 pge:401000 tnt:T fup:401010 tip:401004",
	  "+401000 401000 401001 401008 E401010" },
	/* Where the code is missing, or the flow is not known */
	{ "psb psbend exec:64 pge:501000 fup:501007 tip:401010 tip:401004",
	  "+501000 E501007 401010 401011" },
	{ "psb psbend exec:64 pge:401010 tnt:T fup:501007 tip:401010 tip:401004",
	  "+401010 401010 E501007 401010 401011" },
	/* Two in a row: the handler's first instruction is not executed, either. */
	{ "psb psbend exec:64 pge:401000 tnt:N fup:401004 tip:401010 fup:401010 tip:401004",
	  "+401000 401000 401001 401003 E401004 E401010" },
	/* Off by an event, and by a branch; on again elsewhere and at the same place */
	{ "psb psbend exec:64 pge:401000 tnt:N fup:401004 pgd:- pge:401004 tip:401010",
	  "+401000 401000 401001 401003 E401004 -0 +401004 401004 401010" },
	{ "psb psbend exec:64 pge:401004 pgd:501000 pge:401010",
	  "+401004 401004 -501000 +401010 401010" },
	{ "psb psbend exec:64 pge:40101e pgd:- pge:401010", "+40101e 40101e -0 +401010 401010" },
	/* A FUP that is another packet's, or that of a PSB+ */
	{ "psb psbend exec:64 pge:401000 tnt:N ptw:5:ip fup:401004 tip:401010",
	  "+401000 401000 401001 401003 401004 401010" },
	{ "psb exec:64 tsx:0 fup:401000 psbend tnt:N tip:401010",
	  "401000 401001 401003 401004 401010" },
	/* After an OVF the flow goes on at it. */
	{ "psb psbend exec:64 pge:401000 ovf fup:401004 tip:401010 tip:401004",
	  "+401000 401004 401010 401011" },
};

static void list_of(const struct flow_run *run, char *text, size_t size)
{
	size_t i, k = 0, n = 0;

	*text = '\0';
	for (i = 0; i <= run->count; i++) {
		for (; k < run->mark_count && run->marks[k].at == i; k++)
			n += (size_t)snprintf(text + n, size - n, "%s%c%llx", n ? " " : "",
					      "??E-+"[run->marks[k].kind],
					      (unsigned long long)run -> marks[k].ip);
		if (i < run->count)
			n += (size_t)snprintf(text + n, size - n, "%s%llx", n ? " " : "",
					      (unsigned long long)run->ips[i]);
	}
}

START_TEST(place)
{
	struct vmpt_image_options at = { .kind = VMPT_IMAGE_BYTES,
					 .has_address = true,
					 .address = CODE };
	struct vmpt_flow_options options = { .blocks = true, .events = true, .switches = true };
	struct vmpt_code *code;
	struct vmpt_image *image;
	struct flow_run run;
	struct notation n;
	char text[512];

	test_dir_make();
	ck_assert_int_eq(
		vmpt_image_open(&image, test_dir_file("code", bytes, sizeof(bytes)), &at, NULL), 0);
	ck_assert_int_eq(vmpt_code_new(&code), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, image), 0);
	notation_read(&n, rows[_i / 4].packets);
	options.times = _i % 4 == 1;
	options.by_packet = _i % 4 == 2;
	/* Enough PADs for the fast loop */
	if (_i % 4 == 3)
		n.stream.size = n.size += 64;
	flow_run(&run, &n.stream, code, &options);
	list_of(&run, text, sizeof(text));
	ck_assert_str_eq(text, rows[_i / 4].list);
	flow_run_free(&run);
	vmpt_code_free(code);
	vmpt_image_close(image);
	test_dir_remove();
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/events");
	TCase *tcase = tcase_create("events");

	tcase_add_loop_test(tcase, real, 0, (int)VMPT_ARRAY_SIZE(traces));
	tcase_add_loop_test(tcase, generated, 0, (int)VMPT_ARRAY_SIZE(scripts));
	tcase_add_loop_test(tcase, place, 0, 4 * (int)VMPT_ARRAY_SIZE(rows));
	suite_add_tcase(suite, tcase);
	return suite;
}
