// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Decode the trace with libipt's instruction decoder and compare it with what was executed. */
#include <check.h>

#include "tests/model/programs/program.h"
#include "tests/support/ipt.h"

struct walk {
	const struct program *program;
	const struct execution *done;
	const char *what;
	struct pt_insn_decoder *decoder;
	size_t at, overflow;	/* next instruction, next overflow */
	bool astray;		/* on a wrong path, where an overflow dropped packets */
	bool resumed;		/* after an OVF, no instruction yet */
	enum pt_exec_mode mode; /* what libipt knows */
	enum pt_exec_mode resumed_mode;
};

static const char *place(const struct walk *w)
{
	static char text[160];
	u64 offset = 0, ip = w->at < w->done->insns ? w->done->insn[w->at].ip : 0;

	pt_insn_get_offset(w->decoder, &offset);
	snprintf(text, sizeof(text), "trace offset %#llx, instruction %zu of %zu, executed %#llx",
		 (unsigned long long)offset, w->at, w->done->insns, (unsigned long long)ip);
	return text;
}

static const struct overflow *next_overflow(const struct walk *w)
{
	return w->overflow < w->done->overflows ? &w->done->overflow[w->overflow] : NULL;
}

/* CR3 comes from PIPs; where an overflow dropped them the decoder need not know it. */
static void check_cr3(const struct walk *w, u64 cr3, u64 ip)
{
	const struct overflow *o = next_overflow(w);
	u64 want = w->at < w->done->insns ? w->done->insn[w->at].cr3 : 0;

	if (!want || w->astray || w->done->insn[w->at].ip != ip || cr3 == pt_asid_no_cr3)
		return;
	if (cr3 >> 12 != want >> 12 && !(o && w->at >= o->from))
		ck_abort_msg("%s: at %#llx with CR3 %#llx, decoded %#llx; %s", w->what,
			     (unsigned long long)ip, (unsigned long long)want,
			     (unsigned long long)cr3, place(w));
}

static int read_memory(u8 *buf, size_t size, const struct pt_asid *asid, u64 ip, void *context)
{
	const struct walk *w = context;
	const struct program_region *r = program_region_at(w->program, ip);
	size_t n;

	check_cr3(w, asid->cr3, ip);
	if (!r)
		return -pte_nomap;
	n = r->size - (size_t)(ip - r->base);
	n = n < size ? n : size;
	memcpy(buf, r->code + (ip - r->base), n);
	return (int)n;
}

static void open_decoder(struct walk *w)
{
	struct pt_config config;
	struct pt_image *image;

	pt_config_init(&config);
	config.begin = w->done->trace;
	config.end = w->done->trace + w->done->size;
	w->decoder = pt_insn_alloc_decoder(&config);
	ck_assert_ptr_nonnull(w->decoder);
	image = pt_insn_get_image(w->decoder);
	ck_assert_int_eq(pt_image_set_callback(image, read_memory, w), 0);
}

static void instruction(struct walk *w, u64 ip)
{
	const struct overflow *o = next_overflow(w);

	if (w->astray)
		return;
	if (w->at < w->done->insns && w->done->insn[w->at].ip == ip) {
		w->at++;
		return;
	}
	/* The decoder goes on until it needs a packet; an event may have come first. */
	if (!o || w->at < o->from)
		ck_abort_msg("%s: decoded %#llx; %s", w->what, (unsigned long long)ip, place(w));
	w->astray = true;
}

/* Branches that may have been pending in the TNT buffer, and deferred TIPs. */
#define WAITING (47 + VMPT_UNIT_TIPS)

/* The OVF of the next overflow: the flow resumes where it was resolved. */
static void overflow(struct walk *w)
{
	const struct overflow *o = next_overflow(w);

	if (!o) {
		ck_abort_msg("%s: one OVF too many; %s", w->what, place(w));
		return;
	}
	if (w->at < o->from &&
	    (!o->traced || o->branches - w->done->insn[w->at].branches > WAITING))
		ck_abort_msg("%s: an overflow dropped packets sent before it, instruction %zu; %s",
			     w->what, o->from, place(w));
	w->at = o->to;
	w->resumed = true;
	w->resumed_mode = o->is_64 ? ptem_64bit : ptem_32bit;
	w->overflow++;
	w->astray = false;
}

static int drain(struct walk *w, int status)
{
	struct pt_event event;

	while (status >= 0 && status & pts_event_pending) {
		status = pt_insn_event(w->decoder, &event, sizeof(event));
		if (status >= 0 && event.type == ptev_overflow)
			overflow(w);
		if (status >= 0 && event.type == ptev_exec_mode)
			w->mode = event.variant.exec_mode.mode;
	}
	return status;
}

static bool psb_at(const struct execution *done, u64 at)
{
	static const u8 psb[] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

	return at + sizeof(psb) <= done->size && memcmp(done->trace + at, psb, sizeof(psb)) == 0;
}

/*
 * An overflow dropped a MODE.Exec, and the PSB+ after OVF and FUP has it. libipt takes this for an
 * error: restart it there.
 */
static int new_mode(struct walk *w, int status)
{
	u64 at;

	if (!w->resumed || status != -pte_bad_status_update || w->resumed_mode == w->mode ||
	    pt_insn_get_offset(w->decoder, &at) < 0)
		return status;
	while (at && !psb_at(w->done, at))
		at--;
	return pt_insn_sync_set(w->decoder, at);
}

static int next(struct walk *w, int status)
{
	struct pt_insn insn;

	status = drain(w, status);
	if (status < 0 || status & pts_eos)
		return status;
	status = ipt_insn_next(w->decoder, &insn);
	if (status < 0 || !insn.size)
		return status;
	instruction(w, insn.ip);
	w->resumed = false;
	return status;
}

static int next_ip(struct walk *w, int status, u64 *ip)
{
	struct pt_event event;
	struct pt_insn insn;

	do {
		while (status >= 0 && status & pts_event_pending)
			status = pt_insn_event(w->decoder, &event, sizeof(event));
		if (status >= 0)
			status = ipt_insn_next(w->decoder, &insn);
	} while (status >= 0 && !insn.size);
	*ip = insn.ip;
	return status;
}

/*
 * From a PSB in the middle on: a decoder without earlier state must find the
 * last instructions. Their number is unknown: walk twice.
 */
static void check_from(struct walk *w, u64 psb)
{
	size_t n = 0, at = 0;
	u64 ip = 0;
	int status, turn;

	for (turn = 0; turn < 2; turn++) {
		at = w->done->insns - n;
		status = pt_insn_sync_set(w->decoder, psb);
		for (;;) {
			status = next_ip(w, status, &ip);
			if (status < 0)
				break;
			if (turn && w->done->insn[at++].ip != ip)
				ck_abort_msg("%s: from PSB %#llx: at %#llx; instruction %zu of %zu",
					     w->what, (unsigned long long)psb,
					     (unsigned long long)ip, at, w->done->insns);
			n += !turn;
		}
		if (status != -pte_eos || n > w->done->insns)
			ck_abort_msg("%s: from PSB %#llx, after %zu: %s", w->what,
				     (unsigned long long)psb, n, pt_errstr(pt_errcode(status)));
	}
}

/* Instructions that an overflow dropped cannot be counted from the end. */
static void check_middle(struct walk *w)
{
	u64 at = w->done->size / 2;

	if (w->done->overflows)
		return;
	while (at < w->done->size && !psb_at(w->done, at))
		at++;
	w->astray = true; /* CR3 is not checked */
	if (at < w->done->size)
		check_from(w, at);
}

void program_check(const struct program *program, const struct execution *done, const char *what)
{
	struct walk w = { .program = program, .done = done, .what = what };
	int status;

	open_decoder(&w);
	status = pt_insn_sync_forward(w.decoder);
	while (status >= 0 && !(status & pts_eos))
		status = new_mode(&w, next(&w, status));
	if (status < 0 && status != -pte_eos)
		ck_abort_msg("%s: %s; %s", what, pt_errstr(pt_errcode(status)), place(&w));
	if (w.at != done->insns || w.overflow != done->overflows)
		ck_abort_msg("%s: ends too early, after overflow %zu of %zu; %s", what, w.overflow,
			     done->overflows, place(&w));
	check_middle(&w);
	pt_insn_free_decoder(w.decoder);
}
