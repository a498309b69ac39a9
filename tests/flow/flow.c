// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <intel-pt.h>
#include <stdio.h>

#include "tests/flow/cursor.h"
#include "tests/flow/flow.h"
#include "tests/flow/returns.h"

/* This many equal instructions after an OVF show that the right place was found. */
#define SURE 10000u

struct flow {
	struct cursor cursor;
	const struct flow_options *options;
	struct flow_counts *counts;
	struct pt_block_decoder *decoder;
	struct pt_packet_decoder *packets;
	struct pt_insn insn; /* the last one whose code libipt was given; size 0: none yet */
	unsigned int given;  /* their number in this block */
	struct returns returns;
	bool reads_ahead;  /* libipt does */
	u64 offset;	   /* libipt's in the trace, before the instruction */
	u64 tnts;	   /* TNTs up to here are used */
	unsigned int bits; /* left in the last one */
	u64 unsure;	   /* instructions that must still be equal after an OVF */
	u64 shared_runs;   /* runs begun when the return stack was corrected */
	u64 decoded[CURSOR_PAST];
	u64 code_ip; /* the last IP for which the decoder requested code */
	bool failed;
};

/* ---- a difference ---- */

static void print_ips(const char *what, const u64 *ips, u64 n)
{
	u64 i = n > 10 ? n - 10 : 0;

	fprintf(stderr, "  %s:", what);
	for (; i < n; i++)
		fprintf(stderr, " %llx", (unsigned long long)ips[i % CURSOR_PAST]);
	fprintf(stderr, "\n");
}

static void print_expected(struct flow *f)
{
	const struct cursor *c = &f->cursor;

	if (cursor_in_block(c)) {
		fprintf(stderr, "  the truth has instruction %llx next\n",
			(unsigned long long)c->ip);
		return;
	}
	switch (c->item.kind) {
	case TRUTH_RUN_EVENT:
		fprintf(stderr, "  the truth has an event from %llx to %llx next\n",
			(unsigned long long)c->item.from, (unsigned long long)c->item.to);
		break;
	case TRUTH_END_OF_FILE:
		fprintf(stderr, "  the truth ends\n");
		break;
	default:
		fprintf(stderr, "  the truth has no instruction next\n");
	}
}

/* Report the first difference with its place; false. */
static bool differ(struct flow *f, const char *what, u64 ip)
{
	u64 offset = 0;

	if (f->failed)
		return false;
	f->failed = true;
	if (*f->cursor.reader->error) {
		fprintf(stderr, "%s\n", f->cursor.reader->error);
		return false;
	}
	pt_blk_get_offset(f->decoder, &offset);
	fprintf(stderr, "instruction %llu, trace offset %#llx: %s %llx\n",
		(unsigned long long)f->counts->insns, (unsigned long long)offset, what,
		(unsigned long long)ip);
	print_expected(f);
	print_ips("last executed", f->cursor.past, f->cursor.passed);
	print_ips("last decoded ", f->decoded, f->counts->insns);
	return false;
}

/* ---- losses ---- */

/*
 * The decoder is at @ip after a loss, or a run begins there. The right place is never before the
 * first of the remaining places with this IP: if that is the wrong one, the flows differ soon and
 * the next place is tried.
 */
static bool search(struct flow *f, u64 ip, bool run)
{
	struct cursor *c = &f->cursor;

	while (run ? c->item.kind != TRUTH_RUN_BEGIN || c->item.from != ip
		   : !cursor_in_block(c) || c->ip != ip) {
		if (cursor_in_block(c)) {
			f->counts->lost++;
			cursor_pass(c);
		} else if (c->item.kind == TRUTH_END_OF_FILE || !cursor_next(c)) {
			return false;
		}
	}
	return true;
}

/* ---- instructions ---- */

/* To the next instruction. Events between were taken when the decoder reported them. */
static bool advance(struct flow *f, u64 ip)
{
	struct cursor *c = &f->cursor;

	while (!cursor_in_block(c)) {
		if (c->item.kind == TRUTH_END_OF_FILE)
			return differ(f, "after the truth's end, the trace has", ip);
		if (!cursor_next(c))
			return differ(f, "", ip);
		if (c->item.kind == TRUTH_RUN_EVENT && !f->unsure)
			return differ(f, "no such event in the trace, which continues at", ip);
	}
	return true;
}

/* The instruction given to libipt was executed. False: it only led libipt. */
static bool executed(struct flow *f)
{
	if (returns_step(&f->returns, &f->insn))
		return false;
	f->decoded[f->counts->insns++ % CURSOR_PAST] = f->insn.ip;
	f->unsure -= f->unsure != 0;
	cursor_pass(&f->cursor);
	return true;
}

/* No branch, and yet libipt does not continue at the truth's next instruction. */
static bool other_length(const struct flow *f, u64 ip)
{
	const struct cursor *c = &f->cursor;

	return !f->unsure && f->insn.ip == c->ip && c->at + 1 < c->insns &&
	       ip != c->ip + f->insn.size;
}

/* The code at @ip: only that of the next instruction. */
static int next_code(struct flow *f, u8 *buf, size_t size, u64 ip)
{
	struct cursor *c = &f->cursor;
	int jump = returns_code(&f->returns, ip, buf, size);
	u8 length;

	if (jump)
		return jump;
	f->code_ip = ip;
	if (!cursor_in_block(c) && !advance(f, ip))
		return -pte_nomap;
	if (c->ip != ip) {
		if (!f->unsure) {
			differ(f, "the trace has", ip);
			return -pte_nomap;
		}
		f->counts->searches++;
		f->unsure = SURE;
		returns_forget(&f->returns);
		if (!search(f, ip, false)) {
			differ(f, "after the overflow the truth does not have", ip);
			return -pte_nomap;
		}
	}
	length = cursor_length(c);
	if (length > size)
		return -pte_nomap;
	memcpy(buf, cursor_code(c), length);
	return length;
}

static void other_insn(struct flow *f)
{
	differ(f, "in the trace's mode it is another instruction, at", f->insn.ip);
}

/* libipt requests the code at @ip: within a block it has executed the instructions given before. */
static int read_code(u8 *buf, size_t size, const struct pt_asid *asid, u64 ip, void *context)
{
	struct flow *f = context;
	int length;

	(void)asid;
	if (f->insn.size) {
		if (other_length(f, ip)) {
			other_insn(f);
			return -pte_nomap;
		}
		executed(f);
	}
	length = next_code(f, buf, size, ip);
	if (length > 0) {
		f->given++;
		f->insn.ip = ip;
		f->insn.size = (u8)length;
		memcpy(f->insn.raw, buf, f->insn.size);
	}
	return length;
}

/*
 * Instructions up to a near CALL, or to one that needs a packet, or to an event: libipt reports the
 * class of the last one. From 2.2 on its instruction decoder returns blocks, too, so that all code
 * up to the next packet has been read before the first instruction is returned.
 */
static int next_block(struct flow *f)
{
	struct pt_block block;
	int status;

	f->insn.size = 0;
	f->given = 0;
	pt_blk_get_offset(f->decoder, &f->offset);
	status = pt_blk_next(f->decoder, &block, sizeof(block));
	f->insn.mode = block.mode;
	f->insn.iclass = block.iclass;
	/* Invalid code in the trace's mode: more of it was read, as if it were the next. */
	if (status >= 0 && f->given != block.ninsn)
		other_insn(f);
	return status;
}

/*
 * Whether a conditional branch or RET used a bit of a TNT: one is left, or libipt has read a TNT
 * whose bits are unused. 2.0 reads it when it needs a bit. From 2.1 on libipt is always one TNT,
 * TIP or event ahead: it must have read it before the instruction.
 */
static bool takes_bit(struct flow *f)
{
	struct pt_packet packet;
	u64 until = f->offset;
	int size;

	if (f->bits) {
		f->bits--;
		return true;
	}
	if (!f->reads_ahead)
		pt_blk_get_offset(f->decoder, &until);
	if (f->tnts >= until || pt_pkt_sync_set(f->packets, f->tnts) < 0)
		return false;
	while (f->tnts < until) {
		size = pt_pkt_next(f->packets, &packet, sizeof(packet));
		if (size <= 0)
			return false;
		f->tnts += (u64)size;
		if (packet.type == ppt_tnt_8 || packet.type == ppt_tnt_64) {
			f->bits = packet.payload.tnt.bit_size - 1;
			return true;
		}
	}
	return false;
}

/* The next IP in the truth; an event or a run's end is at the instruction that has not retired. */
static bool truth_next(struct flow *f, u64 *ip)
{
	struct cursor *c = &f->cursor;
	const struct truth_item *next;

	*ip = c->ip;
	if (cursor_in_block(c))
		return true;
	next = cursor_peek(c);
	if (!next || next->kind == TRUTH_END_OF_FILE)
		return false;
	*ip = next->kind == TRUTH_RUN_BLOCK ? next->block->ip : next->from;
	return true;
}

/*
 * A compressed RET that does not return to its CALL by this owner's CALLs: this is right if another
 * owner ran since, and its CALLs and RETs can have brought the address to the top.
 */
static bool shared_return(struct flow *f)
{
	u64 ip;

	if (!f->options->shared_returns || f->cursor.begun == f->shared_runs ||
	    !truth_next(f, &ip) || (f->returns.called && ip == f->returns.to) ||
	    !returns_shared(&f->returns, ip))
		return false;
	f->shared_runs = f->cursor.begun;
	f->counts->shared++;
	return true;
}

static bool near_return(struct flow *f)
{
	const struct pt_insn *insn = &f->insn;
	bool compressed = takes_bit(f);
	bool known = returns_ret(&f->returns, insn, compressed);

	f->counts->compressed += compressed;
	if (compressed)
		known |= shared_return(f);
	if (!known && !f->unsure)
		return differ(f, "the trace has a compressed RET, but no CALL for it: at",
			      insn->ip);
	f->counts->led += f->returns.leads;
	return true;
}

/* The last instruction of a block. */
static bool last_insn(struct flow *f)
{
	const struct pt_insn *insn = &f->insn;

	if (!executed(f))
		return true;
	switch (insn->iclass) {
	case ptic_cond_jump:
		takes_bit(f);
		return true;
	case ptic_call:
		returns_call(&f->returns, insn);
		return true;
	case ptic_return:
		return near_return(f);
	default:
		return true;
	}
}

/* ---- events ---- */

/* Items of the truth that the decoder does not report, with an event or a run's end at @ip. */
static bool unlisted(struct flow *f, u64 ip)
{
	struct cursor *c = &f->cursor;

	if (!cursor_in_block(c) || c->ip != ip || c->at + 1 != c->insns)
		return false;
	if (cursor_is_soft_int(cursor_code(c), cursor_length(c)))
		f->counts->soft_ints++;
	else if (cursor_is_self_jump(cursor_code(c), cursor_length(c)))
		f->counts->silent++;
	else if (cursor_is_vmentry(cursor_code(c), cursor_length(c)))
		f->counts->entries++; /* to a CPL that is not traced (Table 33-56, case 8) */
	else if (cursor_is_wrmsr(cursor_code(c), cursor_length(c)))
		f->counts->disables++; /* the FUP has its IP (case 3) */
	else
		return false;
	cursor_pass(c);
	return true;
}

/* To the next event, if no instruction comes before it. @landed: the first block instead. */
static bool to_event(struct flow *f, u64 from, u64 *landed)
{
	struct cursor *c = &f->cursor;
	const struct truth_item *next;
	bool any = c->item.kind == TRUTH_RUN_BLOCK && cursor_in_block(c) && c->at == c->skipped;

	*landed = any ? c->item.block->ip : 0;
	for (;;) {
		if (cursor_in_block(c) && !unlisted(f, from))
			return false;
		if (cursor_in_block(c))
			continue;
		next = cursor_peek(c);
		if (!next || next->kind == TRUTH_END_OF_FILE || !cursor_next(c))
			return false;
		if (c->item.kind == TRUTH_RUN_EVENT)
			return true;
		if (!any && c->item.kind == TRUTH_RUN_BLOCK) {
			*landed = c->item.block->ip;
			any = true;
		}
	}
}

static bool async_branch(struct flow *f, u64 from, u64 to)
{
	struct cursor *c = &f->cursor;
	u64 landed;

	if (f->unsure)
		return true;
	if (!to_event(f, from, &landed)) {
		/*
		 * The truth has no SMI, INIT and others: a block begins where no instruction led.
		 */
		if (landed != to)
			return differ(f, "the trace has an event, from", from);
		f->counts->astray++;
		return true;
	}
	if (c->item.from != from)
		return differ(f, "the trace has an event, but from", from);
	if (c->item.to != to)
		return differ(f, "the trace has an event, but to", to);
	f->counts->events++;
	return true;
}

/* Read on to the next begin or end that does not follow an instruction or event. */
static bool next_run(struct flow *f, struct cursor_run *run, u64 ip)
{
	struct cursor *c = &f->cursor;
	const struct truth_item *next;

	while (!cursor_take_run(c, run)) {
		if (cursor_in_block(c) && !unlisted(f, ip))
			return false;
		if (cursor_in_block(c))
			continue;
		next = cursor_peek(c);
		if (!next || next->kind == TRUTH_END_OF_FILE || next->kind == TRUTH_RUN_EVENT ||
		    !cursor_next(c))
			return false;
	}
	return true;
}

/* A run begins or ends at @ip, if that is known; not all truths have runs. */
static bool run_at(struct flow *f, enum truth_kind kind, u64 ip, bool known)
{
	u64 entries = f->counts->entries, disables = f->counts->disables;
	struct cursor_run run;

	while (next_run(f, &run, ip)) {
		if (f->counts->entries != entries && !run.ip)
			known = false; /* in the truth the instruction at @ip has retired */
		if (f->counts->disables != disables)
			known = false;
		if (run.kind == kind && (run.ip == ip || !known))
			return true;
		/* After a loss it is unknown how many were lost. */
		if (!f->counts->overflows)
			return differ(f,
				      kind == TRUTH_RUN_BEGIN
					      ? "the trace begins a run, the truth does not, at"
					      : "the trace ends a run, the truth does not, at",
				      ip);
	}
	if (!f->cursor.begun || (f->counts->overflows && !f->unsure))
		return true;
	if (f->unsure)
		return kind != TRUTH_RUN_BEGIN || search(f, ip, true) ||
		       differ(f, "after the overflow no run begins at", ip);
	return differ(f, "the trace begins or ends a run, the truth does not, at", ip);
}

static bool overflow(struct flow *f)
{
	f->counts->overflows++;
	returns_forget(&f->returns);
	if (!f->options->allow_overflow)
		return differ(f, "an overflow; the last IP before it is", f->code_ip);
	f->unsure = SURE;
	return true;
}

static bool event(struct flow *f, const struct pt_event *e)
{
	/*
	 * The state in a PSB+: libipt compares it with its own. From 2.1 on this includes whether
	 * PacketEn is 1, as ptev_enabled or ptev_disabled, which begin and end no run here.
	 */
	if (e->status_update)
		return true;
	switch (e->type) {
	case ptev_async_branch:
		return async_branch(f, e->variant.async_branch.from, e->variant.async_branch.to);
	case ptev_async_disabled:
		return run_at(f, TRUTH_RUN_END, e->variant.async_disabled.at, true);
	case ptev_disabled:
		return run_at(f, TRUTH_RUN_END, 0, false);
	case ptev_enabled:
		return run_at(f, TRUTH_RUN_BEGIN, e->variant.enabled.ip, true);
	case ptev_overflow:
		return overflow(f);
	default:
		return true;
	}
}

/* ---- the walk ---- */

static bool end(struct flow *f)
{
	struct cursor *c = &f->cursor;

	for (;;) {
		while (cursor_in_block(c)) {
			cursor_pass(c);
			f->counts->tail++;
		}
		if (!cursor_next(c))
			return differ(f, "", 0);
		if (c->item.kind == TRUTH_END_OF_FILE)
			break;
	}
	if (f->counts->tail <= f->options->tail)
		return true;
	fprintf(stderr, "the trace ends after instruction %llu, the truth has %llu more\n",
		(unsigned long long)f->counts->insns, (unsigned long long)f->counts->tail);
	return false;
}

/* From the next PSB on. */
static int sync_forward(struct flow *f)
{
	int status = pt_blk_sync_forward(f->decoder);

	f->bits = 0;
	pt_blk_get_sync_offset(f->decoder, &f->tnts);
	return status;
}

static bool walk(struct flow *f)
{
	int status = sync_forward(f);
	struct pt_event e;

	while (status >= 0) {
		while (status >= 0 && status & pts_event_pending) {
			status = pt_blk_event(f->decoder, &e, sizeof(e));
			if (status >= 0 && !event(f, &e))
				return false;
		}
		if (status < 0 || status & pts_eos)
			break;
		status = next_block(f);
		if (f->failed || (status >= 0 && f->insn.size && !last_insn(f)))
			return false;
		/* With the code of a wrong place a decoder may go wrong. */
		if (status < 0 && status != -pte_eos && f->unsure && !f->failed) {
			f->counts->searches++;
			f->unsure = SURE;
			returns_init(&f->returns);
			status = sync_forward(f);
		}
	}
	if (f->failed)
		return false;
	if (status < 0 && status != -pte_eos)
		return differ(f, pt_errstr(pt_errcode(status)), f->code_ip);
	return end(f);
}

bool flow_check(struct truth_reader *reader, const u8 *trace, size_t size,
		const struct flow_options *options, struct flow_counts *counts)
{
	struct flow f = { .options = options, .counts = counts, .shared_runs = 1 };
	struct pt_version version = pt_library_version();
	struct pt_config config;
	bool equal;

	f.reads_ahead = version.major > 2 || (version.major == 2 && version.minor >= 1);
	memset(counts, 0, sizeof(*counts));
	cursor_init(&f.cursor, reader);
	pt_config_init(&config);
	config.begin = (u8 *)trace;
	config.end = (u8 *)trace + size;
	config.flags.variant.block.end_on_call = 1;
	f.decoder = pt_blk_alloc_decoder(&config);
	f.packets = pt_pkt_alloc_decoder(&config);
	if (!f.decoder || !f.packets ||
	    pt_image_set_callback(pt_blk_get_image(f.decoder), read_code, &f) < 0) {
		fprintf(stderr, "libipt: no decoder\n");
		return false;
	}
	equal = walk(&f);
	counts->blocks = f.cursor.blocks;
	counts->merged = f.cursor.merged;
	counts->emulated = f.cursor.emulated;
	counts->runs = f.cursor.begun;
	counts->definitions = reader->blocks;
	pt_pkt_free_decoder(f.packets);
	pt_blk_free_decoder(f.decoder);
	return equal;
}
