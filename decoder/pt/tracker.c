// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The VM tracker: the state table of docs/vm-tracking.md, one function a row.
 */
#include "decoder/pt/tracker.h"

/* ---- facts and the owner derived from them ---- */

static void set_fact(struct vmpt_fact *f, u64 value)
{
	f->value = value;
	f->sure = VMPT_KNOWN;
}

static void doubt_fact(struct vmpt_fact *f)
{
	if (f->sure <= VMPT_ASSUMED)
		f->sure = VMPT_UNCERTAIN;
}

static bool holds(const struct vmpt_fact *f)
{
	return f->sure <= VMPT_ASSUMED;
}

/* Owner = host if NR=0; VMCS v if NR=1 and VMCS known or assumed; a VM; unknown. */
static struct vmpt_owner owner_now(const struct vmpt_tracker *t)
{
	struct vmpt_owner o = { .kind = VMPT_OWNER_UNKNOWN, .sure = VMPT_UNKNOWN };

	if (!holds(&t->nr))
		return o;
	o.sure = t->nr.sure;
	if (!t->nr.value) {
		o.kind = VMPT_OWNER_HOST;
	} else if (holds(&t->vmcs) && t->vmcs.value != VMPT_PT_VMCS_NONE) {
		o.kind = VMPT_OWNER_VM;
		o.vmcs = t->vmcs.value;
		if (t->vmcs.sure > o.sure)
			o.sure = t->vmcs.sure;
	} else {
		o.kind = VMPT_OWNER_VM_ANY;
	}
	return o;
}

static struct vmpt_mark *add_mark(struct vmpt_tracker *t, u64 at, enum vmpt_mark_kind kind)
{
	struct vmpt_mark *m;

	if (t->mark_count == VMPT_TRACKER_MARKS)
		t->mark_count--; /* cannot happen: see VMPT_TRACKER_MARKS */
	m = &t->marks[t->mark_count++];
	memset(m, 0, sizeof(*m));
	m->offset = at;
	m->kind = (u8)kind;
	return m;
}

static void mark_value(struct vmpt_tracker *t, u64 at, enum vmpt_mark_kind kind, u64 value)
{
	add_mark(t, at, kind)->value = value;
}

/* From @at on the owner is that of the current facts. */
static void mark_owner(struct vmpt_tracker *t, u64 at, enum vmpt_begin cause, bool by_group,
		       bool concealed)
{
	struct vmpt_owner o = owner_now(t);
	struct vmpt_mark *m;

	o.concealed = concealed && o.kind == VMPT_OWNER_HOST;
	if (vmpt_owner_same(&o, &t->owner) && o.sure == t->owner.sure &&
	    o.concealed == t->owner.concealed)
		return;
	m = add_mark(t, at, VMPT_MARK_OWNER);
	m->owner = o;
	m->cause = (u8)cause;
	m->by_group = by_group;
	t->owner = o;
	t->cr3_marked = false;
}

/* From @at on the owner is possibly still the same. */
static void mark_doubt(struct vmpt_tracker *t, u64 at)
{
	struct vmpt_mark *m;

	if (t->owner.kind == VMPT_OWNER_UNKNOWN || t->owner.sure == VMPT_UNCERTAIN)
		return;
	t->owner.sure = VMPT_UNCERTAIN;
	t->cr3_marked = false; /* the stretch in doubt has facts of its own */
	m = add_mark(t, at, VMPT_MARK_OWNER);
	m->owner = t->owner;
	m->cause = VMPT_BEGIN_DOUBT;
}

/* The same after a given NR was kept: only the VMCS may be in doubt, and only a VM's owner needs
 * it. */
static void mark_doubt_of_vmcs(struct vmpt_tracker *t, u64 at)
{
	if (t->owner.kind == VMPT_OWNER_VM && !holds(&t->vmcs))
		mark_doubt(t, at);
	else
		mark_owner(t, at, VMPT_BEGIN_SWITCH, false, t->owner.concealed);
}

static void mark_tscs(struct vmpt_tracker *t, u64 at, const struct vmpt_tscs *tsc)
{
	if (t->owners_only || !tsc->any)
		return;
	mark_value(t, at, VMPT_MARK_TSC, tsc->first);
	if (tsc->last != tsc->first)
		mark_value(t, at, VMPT_MARK_TSC, tsc->last);
}

static void mark_cr3(struct vmpt_tracker *t, u64 at)
{
	if (!t->cr3_marked && !t->owners_only)
		mark_value(t, at, VMPT_MARK_CR3, t->cr3.value);
	t->cr3_marked = true;
}

static void set_pip(struct vmpt_tracker *t, bool nr, u64 cr3)
{
	if (cr3 != t->cr3.value)
		t->cr3_marked = false;
	set_fact(&t->nr, nr);
	set_fact(&t->cr3, cr3);
	t->pause = 0;
	if (!nr)
		t->seen_root = true;
	if (nr && !t->given_nr)
		t->given = false;
}

/* NR is in doubt from here on; a given NR never is. */
static void doubt_nr(struct vmpt_tracker *t, enum vmpt_doubt why)
{
	if (t->given) {
		set_fact(&t->nr, t->given_nr);
		return;
	}
	if (holds(&t->nr) || t->doubt < why)
		t->doubt = why;
	doubt_fact(&t->nr);
}

static enum vmpt_begin nr_cause(const struct vmpt_fact *before, bool nr)
{
	if (!holds(before) || before->value == nr)
		return VMPT_BEGIN_SWITCH;
	return nr ? VMPT_BEGIN_ENTRY : VMPT_BEGIN_EXIT;
}

static bool is_guest_only(const struct vmpt_tracker *t)
{
	if (t->guest_only == VMPT_GUEST_ONLY_AUTO)
		return !t->seen_root;
	return t->guest_only == VMPT_GUEST_ONLY_YES;
}

/* ---- rows of the table ---- */

/* Start of the trace, loss, damage: everything is unknown. */
static void on_loss(struct vmpt_tracker *t, u64 at, u64 loss)
{
	struct vmpt_mark *m = add_mark(t, at, VMPT_MARK_LOSS);

	m->value = loss >> 6;
	m->cause = loss & 63;
	t->nr.sure = t->vmcs.sure = t->cr3.sure = VMPT_UNKNOWN;
	t->pause = 0;
	if (t->given)
		set_fact(&t->nr, t->given_nr);
	t->owner = owner_now(t);
	t->cr3_marked = false;
	m = add_mark(t, at + (loss >> 6), VMPT_MARK_OWNER);
	m->owner = t->owner;
	m->cause = VMPT_BEGIN_START;
	t->skip = at + (loss >> 6);
}

/* Whether a PSB+ states anything new; most do not. */
static bool psb_is_news(const struct vmpt_tracker *t, const struct vmpt_psb_plus *psb)
{
	return !psb->has_pip || !psb->has_vmcs || t->nr.sure != VMPT_KNOWN ||
	       t->nr.value != psb->nr || t->vmcs.sure != VMPT_KNOWN || t->vmcs.value != psb->vmcs ||
	       t->owner.sure != VMPT_KNOWN || t->owner.concealed || t->cr3.value != psb->cr3 ||
	       !t->cr3_marked;
}

/*
 * PSB … PSBEND with its trailing PADs: one unit, applied at its end. All of it belongs
 * to the owner that its own PIP and VMCS state; without a PIP to the tracked owner, and
 * a change by its VMCS holds after it.
 */
static void on_psb(struct vmpt_tracker *t, u64 at)
{
	const struct vmpt_psb_shape *shape;
	struct vmpt_psb_plus psb;
	bool concealed;

	shape = vmpt_psb_plus_read(&t->shapes, t->data, at, t->end, &psb);
	t->skip = psb.end;
	t->skip_tokens = psb.tokens;
	if (!psb.complete && t->pause)
		vmpt_tracker_settle(t, t->end);
	if (psb_is_news(t, &psb)) {
		if (psb.has_vmcs)
			set_fact(&t->vmcs, psb.vmcs);
		if (psb.has_pip) {
			set_pip(t, psb.nr, psb.cr3);
			/* PIP without VMCS: not in VMX operation, or a concealed guest. */
			concealed = psb.complete && !psb.nr && !psb.has_vmcs;
			mark_owner(t, at, VMPT_BEGIN_PSB, false, concealed);
			mark_cr3(t, at);
		}
	}
	mark_tscs(t, at, &psb.tsc);
	if (psb.has_vmcs && !psb.has_pip && holds(&t->nr))
		mark_owner(t, vmpt_pads_skip(t->data, psb.end, t->end), VMPT_BEGIN_PSB, false,
			   false);
	/* What set_pip() keeps of each PIP is as it would leave it. */
	if (shape && !psb_is_news(t, &psb) && (psb.nr ? !t->given || t->given_nr : t->seen_root)) {
		t->known.valid = true;
		t->known.pip = vmpt_load64(t->data + at + shape->pip);
		t->known.vmcs = vmpt_load64(t->data + at + shape->vmcs - 1) >> 8;
	}
}

void vmpt_tracker_settle(struct vmpt_tracker *t, u64 end)
{
	if (t->doubt == VMPT_DOUBT_PAUSE && !vmpt_pause_scan(t->data, t->pause, end))
		t->doubt = VMPT_DOUBT_STOP;
	t->pause = 0;
}

/*
 * Whether a PIP with another NR is that of the transition. Each transition makes one if one of its
 * sides is in context (33.4.2.7, 33.5.1), and VMX root operation is, at CPL 0, except with a CR3
 * filter.
 */
static bool is_transition(const struct vmpt_tracker *t, const struct vmpt_group *g, bool nr)
{
	if (t->doubt == VMPT_DOUBT_STOP)
		return nr && g->last == VMPT_PT_TIP;
	if (t->doubt != VMPT_DOUBT_PAUSE)
		return false;
	/* It could be the MOV CR3 that matches the filter, but then CR3 was that before, too. */
	if (g->last == VMPT_PT_TIP_PGE)
		return !nr && t->cr3.sure == VMPT_KNOWN &&
		       t->cr3.value != vmpt_pip_cr3(t->data + g->first_pip);
	return true;
}

/* The first PIPs while NR is in doubt: what they prove about the time before. */
static void prove_left(struct vmpt_tracker *t, u64 at, const struct vmpt_group *g)
{
	bool was = t->nr.value, nr;

	if (!g->pips || t->nr.sure != VMPT_UNCERTAIN)
		return;
	if (t->pause)
		vmpt_tracker_settle(t, t->end);
	nr = vmpt_pip_nr(t->data + g->first_pip);
	if (was != nr && is_transition(t, g, nr))
		set_fact(&t->nr, was);
	else if (was && nr && g->last == VMPT_PT_TIP && t->doubt != VMPT_DOUBT_PAUSE &&
		 !is_guest_only(t))
		/* A MOV CR3 and a later RET's TIP, or an entry after an exit that was not seen. */
		t->nr.sure = VMPT_UNKNOWN;
	else
		return;
	mark_owner(t, at, VMPT_BEGIN_SWITCH, false, false);
}

/* A group that ends with TIP, TIP.PGE or TIP.PGD: applied as a whole, the boundary is before it. */
static void apply_bound_group(struct vmpt_tracker *t, u64 at, const struct vmpt_group *g)
{
	struct vmpt_fact nr;

	prove_left(t, at, g);
	nr = t->nr;
	if (g->has_vmcs)
		set_fact(&t->vmcs, g->vmcs);
	if (g->pips)
		set_pip(t, g->nr, g->cr3);
	/* NR 0→1→0: a failed VM entry; no guest slice. */
	if (g->pips && holds(&nr) && !nr.value && g->was_nonroot && !g->nr)
		mark_value(t, at, VMPT_MARK_FAILED_ENTRY, 0);
	if (holds(&t->nr))
		mark_owner(t, at, nr_cause(&nr, t->nr.value), true, t->owner.concealed);
	if (g->pips)
		mark_cr3(t, at);
	mark_tscs(t, at, &g->tsc);
	t->skip = g->end;
}

/* A PIP or VMCS that no TIP packet follows applies at the packet. */
static void apply_alone(struct vmpt_tracker *t, u64 at, unsigned int kind)
{
	struct vmpt_fact nr = t->nr;
	const u8 *p = t->data + at;

	if (kind == VMPT_PT_VMCS) {
		/* VMPTRLD: the owner does not change while NR is 0 or unknown. */
		set_fact(&t->vmcs, vmpt_vmcs_pointer(p));
		if (holds(&t->nr) && t->nr.value)
			mark_owner(t, at, VMPT_BEGIN_SWITCH, true, false);
		return;
	}
	set_pip(t, vmpt_pip_nr(p), vmpt_pip_cr3(p));
	mark_owner(t, at, nr_cause(&nr, t->nr.value), true, t->owner.concealed);
	mark_cr3(t, at);
}

static void on_group(struct vmpt_tracker *t, u64 at, unsigned int kind)
{
	struct vmpt_group g = { 0 };

	/* A group is walked only once, however many packets it has. */
	if (at >= t->alone)
		vmpt_group_scan(t->data, at, t->end, &g);
	if (g.bound && (g.pips || g.has_vmcs)) {
		apply_bound_group(t, at, &g);
		return;
	}
	if (g.end)
		t->alone = g.end;
	if (kind != VMPT_PT_MODE_EXEC)
		apply_alone(t, at, kind);
}

/* OVF: everything is uncertain. The packet itself is the known owner's. */
static void on_ovf(struct vmpt_tracker *t, u64 at)
{
	add_mark(t, at, VMPT_MARK_OVERFLOW);
	doubt_nr(t, VMPT_DOUBT_LOST);
	doubt_fact(&t->vmcs);
	doubt_fact(&t->cr3);
	at += vmpt_pt_table[VMPT_PT_OVF].size;
	if (t->given)
		mark_doubt_of_vmcs(t, at);
	else
		mark_doubt(t, at);
}

/*
 * TIP.PGD(): NR is uncertain until PIP, CFE or PSB+; in a guest-only trace the VMCS
 * becomes assumed, because VMPTRLD in root operation makes no packet there.
 */
static void after_pgd(struct vmpt_tracker *t, u64 at, enum vmpt_doubt why)
{
	doubt_nr(t, why);
	if (is_guest_only(t) && t->vmcs.sure == VMPT_KNOWN)
		t->vmcs.sure = VMPT_ASSUMED;
	if (t->given)
		mark_doubt_of_vmcs(t, at);
	else
		mark_doubt(t, at);
}

/*
 * It begins a pause unless the next token that matters shows otherwise. One TIP.PGD() after another
 * has a TIP.PGE between: that of the pause, since no token came that ends one.
 */
static void on_pgd(struct vmpt_tracker *t, u64 at)
{
	after_pgd(t, at + 1, VMPT_DOUBT_PAUSE);
	t->pause = t->given ? 0 : at + 1;
	t->after_pgd = true;
}

/* The packets of a CFE's unit: its FUP, a TIP.PGD(); timing packets and PADs between. */
struct cfe_unit {
	u64 end; /* after the last of them, or at the group's start */
	bool group, pgd;
	struct vmpt_tscs tsc; /* before end: those after it are the next owner's */
};

static void cfe_end(struct cfe_unit *u, const struct vmpt_tscs *tsc, u64 end)
{
	u->end = end;
	u->tsc = *tsc;
}

static void cfe_scan(const struct vmpt_tracker *t, u64 at, struct cfe_unit *u)
{
	struct vmpt_tscs seen = { 0 };
	bool fup = false;
	unsigned int size;
	int kind;

	memset(u, 0, sizeof(*u));
	at += vmpt_pt_table[VMPT_PT_CFE].size;
	u->end = at;
	for (; at < t->end; at += size) {
		kind = vmpt_head_at(t->data, at, t->end, &size);
		if (kind < 0)
			return;
		if (kind == VMPT_PT_FUP && !fup) {
			fup = true;
			cfe_end(u, &seen, at + size);
		} else if (vmpt_pt_table[kind].classes & VMPT_PT_GROUP) {
			u->group = true;
			cfe_end(u, &seen, at);
			return;
		} else if (kind == VMPT_PT_TIP_PGD && fup) {
			u->pgd = true;
			cfe_end(u, &seen, at + size);
			return;
		} else if (kind == VMPT_PT_TSC) {
			vmpt_tscs_add(&seen, vmpt_tsc_value(t->data + at));
		} else if (kind != VMPT_PT_PAD && !(vmpt_pt_table[kind].classes & VMPT_PT_TIMING)) {
			return;
		}
	}
}

/*
 * CFE.VMENTRY, CFE.VMEXIT*: NR is known, both before and after. The CFE and its FUP belong
 * to the owner before; if a group follows, the boundary is the group's.
 */
static void on_cfe(struct vmpt_tracker *t, u64 at)
{
	unsigned int type = t->data[at + 2] & 0x1f;
	struct vmpt_owner before = t->owner;
	bool entry = type == VMPT_CFE_VMENTRY;
	struct vmpt_fact nr = t->nr;
	struct cfe_unit u;
	struct vmpt_group g;

	if (entry)
		t->seen_root = true;
	if (!t->given_nr)
		t->given = false;
	if (!holds(&t->nr)) {
		set_fact(&t->nr, !entry);
		mark_owner(t, at, VMPT_BEGIN_SWITCH, false, false);
		nr = t->nr;
		before = t->owner;
	}
	cfe_scan(t, at, &u);
	mark_tscs(t, at, &u.tsc);
	t->skip = u.end;
	if (u.group) {
		vmpt_group_scan(t->data, u.end, t->end, &g);
		if (g.bound && g.pips) {
			apply_bound_group(t, u.end, &g);
			return;
		}
		if (!g.bound)
			t->alone = g.end;
	}
	set_fact(&t->nr, entry);
	if (!u.pgd || !is_guest_only(t) || entry)
		mark_owner(t, u.end, nr_cause(&nr, entry), u.group, before.concealed);
	/* The processor stopped tracing here: NR may differ when it resumes. */
	if (u.pgd)
		after_pgd(t, u.end, VMPT_DOUBT_STOP);
}

void vmpt_tracker_init(struct vmpt_tracker *t, const u8 *data, const struct vmpt_options *options,
		       bool owners_only)
{
	memset(t, 0, sizeof(*t));
	t->data = data;
	t->guest_only = options->guest_only;
	t->owners_only = t->no_cr3s = owners_only;
	t->nr.sure = t->vmcs.sure = t->cr3.sure = VMPT_UNKNOWN;
	t->given_nr = options->guest_only == VMPT_GUEST_ONLY_YES;
	t->given = t->given_nr || options->host_only;
	if (t->given)
		set_fact(&t->nr, t->given_nr);
	t->owner = owner_now(t);
}

void vmpt_tracker_apply(struct vmpt_tracker *t, u64 token, u64 loss, u64 region_end)
{
	u64 at = vmpt_token_offset(token);
	unsigned int kind = vmpt_token_kind(token);

	t->mark_count = 0;
	t->end = region_end;
	t->after_pgd = false;
	if (kind == VMPT_PT_PIP && vmpt_pip_is_cr3(t, at, region_end)) {
		t->known.pip = vmpt_load64(t->data + at);
		set_pip(t, t->nr.value, vmpt_pip_cr3(t->data + at));
		mark_cr3(t, at);
		return;
	}
	if (kind != VMPT_PT_TSC)
		t->known.valid = false;
	if (kind == VMPT_TOKEN_LOSS) {
		on_loss(t, at, loss);
		return;
	}
	switch (kind) {
	case VMPT_PT_PSB:
		on_psb(t, at);
		return;
	case VMPT_PT_PIP:
	case VMPT_PT_VMCS:
	case VMPT_PT_MODE_EXEC:
		on_group(t, at, kind);
		return;
	case VMPT_PT_TSC:
		mark_value(t, at, VMPT_MARK_TSC, vmpt_tsc_value(t->data + at));
		return;
	case VMPT_PT_OVF:
		on_ovf(t, at);
		return;
	case VMPT_PT_CFE:
		on_cfe(t, at);
		return;
	case VMPT_PT_TIP_PGD:
		on_pgd(t, at);
		return;
	}
}
