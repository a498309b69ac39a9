// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The loop over packets. It takes what moves the flow most of the time, TNT-8, TIP and the two that
 * start and stop it, and steps over time; all others, and these in all but the plain case, are left
 * to events.c. It is compiled once for each combination of what an engine has to do.
 */
#include "decoder/flow/engine.h"
#include "decoder/flow/steps.h"

/* The loop reads this many bytes at once. */
#define AHEAD 16

/* Results and units of the log that one packet may add, at most. */
#define RESULTS_LEFT 128
#define UNITS_LEFT   4096

static bool enough(const struct engine *e)
{
	return !e->quiet && (e->full || e->result_count + RESULTS_LEFT > VMPT_FLOW_RESULTS ||
			     (e->blocks && e->log_count + UNITS_LEFT > e->log_room));
}

/* The number of TNT-8 at the start of @bytes: even bytes but 00H and 02H. */
static unsigned int run_length(u64 bytes)
{
	const u64 ones = 0x0101010101010101ULL, high = ones << 7;
	u64 odd = bytes << 7, rest = bytes & ~(ones * 3), end;

	/* The lowest byte found to be 0 is; those above it need not be. */
	end = (odd | ((rest - ones) & ~rest)) & high;
	return end ? (unsigned int)__builtin_ctzll(end) / 8 : 8;
}

/* The run was walked as far as bit @done: finish the packet where that is. */
static int run_stopped(struct engine *e, u64 at, u64 bytes, unsigned int done)
{
	unsigned int bits;

	for (;; at++, bytes >>= 8, done -= bits) {
		bits = vmpt_flow_bits(bytes & 0xff);
		if (done < bits)
			break;
	}
	e->c.at = at + 1;
	return vmpt_flow_tnt(e, at, (bytes & 0xff) >> 1, bits - done, done);
}

/* What a loop does, as constants that it is compiled for. */
struct mode {
	bool hash, blocks, stack;
	bool record; /* it records a raw memo: up to RAW_BYTES, and what is simple */
};

/* All of the node was executed. */
static inline __attribute__((always_inline)) void leave(struct engine *e, u32 handle,
							const struct mode mode)
{
	struct hashes h;

	if (!mode.hash || !handle)
		return;
	h = e->node_hashes[handle >> HANDLE_SHIFT];
	e->h.hash = e->h.hash * h.pow + h.hash;
	e->h.pow *= h.pow;
}

/* From the node @handle (0: none) to that at @ip; its handle, or 0 if there is no memory. */
static inline __attribute__((always_inline)) u32 enter(struct engine *e, u32 handle, u64 ip,
						       const struct mode mode)
{
	u32 next = vmpt_flow_ip_find(e, e->c.space, ip), id;

	leave(e, handle, mode);
	if (__builtin_expect(!next || (mode.stack && next & HANDLE_PUSH), 0)) {
		if (vmpt_flow_enter(e, ip))
			return 0;
		next = e->c.handle;
		if (mode.record) {
			vmpt_flow_trail(e, next >> HANDLE_SHIFT);
			if (mode.stack)
				vmpt_flow_track_calls(e, e->nodes[next >> HANDLE_SHIFT].call_count);
		}
		return next;
	}
	id = next >> HANDLE_SHIFT;
	e->node_hits[id] += e->weight;
	if (mode.blocks && !e->quiet)
		vmpt_flow_log(e, id);
	if (mode.record)
		vmpt_flow_trail(e, id);
	return next;
}

/* Whether a PSB cuts the packet at @p: events.c reports it. */
#define IS_CUT(p, size) \
	__builtin_expect(!!vmpt_psb_inside(e->data, (u64)((p)-e->data), size, e->limit), 0)

/*
 * Whether the start of a PSB comes within a packet of @p, but no whole one: the packet before may
 * have lost its end.
 */
static inline bool broken_psb(const struct engine *e, const u8 *p)
{
	static const u8 psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	u16 next = vmpt_load16(p);

	if (__builtin_expect(next != 0x8202 && next != 0x0282, 1))
		return false;
	p += *p == psb[1];
	return e->data + e->limit - p < 16 || memcmp(p, psb, sizeof(psb));
}

/* The number of PADs at the start of @bytes, up to 7. */
static inline unsigned int pads_of(u64 bytes)
{
	return (unsigned int)__builtin_ctzll(bytes | 1ULL << 63) / 8;
}

/* The number of PADs at @p, whose first 8 bytes are @bytes, up to 15. */
static inline unsigned int pads_at(const u8 *p, u64 bytes)
{
	return bytes ? pads_of(bytes) : 8 + pads_of(vmpt_load64(p + 8));
}

/* Where the loop is. */
struct place_now {
	const u8 *p;
	u64 last_ip;
	u32 handle;
	u64 hash; /* of the key that was looked up last, if there was no memo; or 0 */
};

/* The memo at @at by its hash, if there is one; it came after @before. */
static inline struct raw_memo *raw_find(struct engine *e, struct place_now *at,
					struct raw_memo *before, u64 b0, u64 b1)
{
	u32 start = at->handle ? at->handle : RAW_DISABLED | e->c.space, id;
	u64 hash = vmpt_flow_raw_hash(e, start, at->last_ip, b0, b1);

	id = *vmpt_flow_raw_slot(e, hash, start, at->last_ip, b0, b1);
	at->hash = id ? 0 : hash;
	if (before != e->raws)
		before->next[before->next[0] != 0] = id;
	return &e->raws[id];
}

/* Whether @m is the memo at @at; all of it, where the one before does not imply the rest. */
static inline __attribute__((always_inline)) bool raw_is(const struct engine *e,
							 const struct raw_memo *m,
							 const struct place_now *at, u64 b0, u64 b1,
							 bool whole)
{
	if (!whole)
		return vmpt_flow_raw_has(m, b0, b1);
	return vmpt_flow_raw_is(m, at->handle ? at->handle : RAW_DISABLED | e->c.space, at->last_ip,
				b0, b1);
}

/*
 * Take raw memos as long as they hit. True: there is none at @at->p; false: at the end, or at a
 * PAD, with which none begins.
 */
static inline __attribute__((always_inline)) bool raw_run(struct engine *e, struct place_now *now,
							  const u8 *end, const struct mode mode)
{
	struct raw_memo *raws = e->raws, *m = raws, *before = raws;
	struct place_now at = *now;
	const struct effect *fx;
	bool missed = false;
	u64 b0, b1, hits = 0;
	struct path *path;
	unsigned int pads;
	u32 id;

	end -= AHEAD + RAW_BYTES;
	while (at.p <= end) {
		b0 = vmpt_load64(at.p);
		b1 = vmpt_load64(at.p + 8);
		/* Without a stack, the memo before leads to one place only. */
		if (!raw_is(e, m, &at, b0, b1, mode.stack)) {
			m = &raws[before->next[1]];
			if (!raw_is(e, m, &at, b0, b1, mode.stack)) {
				if (!(b0 & 0xff))
					break;
				m = raw_find(e, &at, before, b0, b1);
				missed = m == raws;
				if (missed)
					break;
			}
		}
		b0 = vmpt_load64(at.p + m->size);
		missed = (b0 & 0x7f) == 2 && broken_psb(e, at.p + m->size);
		if (__builtin_expect(missed, 0))
			break;
		id = m->path;
		if (mode.stack && id & RAW_EFFECT) {
			fx = vmpt_flow_effect(e, id & ~RAW_EFFECT);
			missed = !fx;
			if (missed)
				break;
			vmpt_flow_apply(e, fx);
			at.handle = fx->end;
			id = fx->path;
			e->paths[id].hits++;
		} else {
			m->hits++;
			at.handle = m->end;
		}
		at.last_ip = m->next_last_ip;
		if (mode.hash) {
			path = &e->paths[id];
			e->h.hash = e->h.hash * path->h.pow + path->h.hash;
			e->h.pow *= path->h.pow;
		}
		hits++;
		pads = m->pads;
		if (__builtin_expect(pads_at(at.p + m->size, b0) != pads, 0))
			m->pads = (u8)(pads = pads_at(at.p + m->size, b0));
		/* As foreseen, not as counted, so that nothing waits for the count. */
		__asm__("" : "+r"(pads));
		at.p += m->size + pads;
		before = m;
		m = &raws[m->next[0]];
		if (mode.blocks) {
			vmpt_flow_log(e, id | UNIT_PATH);
			if (__builtin_expect(enough(e), 0))
				break;
		}
	}
	if (hits)
		e->c.place = at.handle ? RUNNING : DISABLED;
	e->raw_lookups += hits + missed;
	e->raw_hits += hits;
	*now = at;
	return missed;
}

/* Whether the same was looked up before, since when something else was not. */
static inline bool seen_before(struct engine *e, const struct place_now *at)
{
	u32 start = at->handle ? at->handle : RAW_DISABLED | e->c.space;

	return vmpt_flow_raw_seen(e, at->hash ? at->hash
					      : vmpt_flow_raw_hash(e, start, at->last_ip,
								   vmpt_load64(at->p),
								   vmpt_load64(at->p + 8)));
}

/* Whether raw memos may begin with a packet of this first byte. */
static inline bool can_record(u8 first)
{
	unsigned int step = vmpt_flow_steps[first];

	return step == VMPT_FLOW_RUN || step == VMPT_FLOW_TIP || step == VMPT_FLOW_PGE ||
	       step == VMPT_FLOW_PGD;
}

/* A packet at @p has a time; @handle is the current node. False: there is no more room. */
static __attribute__((noinline)) bool time_mark(struct engine *e, u32 handle, const u8 *p)
{
	e->c.handle = handle;
	vmpt_flow_time_mark(e, (u64)(p - e->data));
	return !enough(e);
}

/* Whether the packet at @p, of @size bytes, is the last that fits. */
#define STOP_RECORD(p, size) (mode.record && (p) + (size) > first + RAW_BYTES)

/*
 * Runs up to what it leaves to events.c; with mode.record over at most RAW_BYTES.
 */
static inline __attribute__((always_inline)) void loop(struct engine *e, const struct mode mode,
						       void (*record)(struct engine *e))
{
	const u8 *first = e->data + e->c.at, *p = first, *end = e->data + e->stop;
	const u64 wrap = e->c.exec == 64 ? ~0ULL : 0xffffffffULL;
	const bool pops = e->options.returns != VMPT_FLOW_RETURNS_LIBIPT;
	const bool spaced = e->c.space != NONE;
	/* Raw memos count 1. */
	bool raw = !mode.record && e->weight == 1 && e->raws && e->c.at >= e->raw_from && spaced &&
		   (!e->c.handle || e->nodes[e->c.handle >> HANDLE_SHIFT].space == e->c.space);
	u64 last_ip = e->c.last_ip, x;
	unsigned int n, step, done;
	u32 handle = e->c.handle, next;

	while (end - p >= AHEAD) {
		if (!mode.record && !*p) {
			x = vmpt_load64(p);
			p += x ? pads_of(x) : 8;
			continue;
		}
		if (!mode.record && raw) {
			struct place_now at = { p, last_ip, handle, 0 };
			bool missed = raw_run(e, &at, end, mode);

			p = at.p;
			last_ip = at.last_ip;
			handle = at.handle;
			if (mode.blocks && __builtin_expect(enough(e), 0))
				break;
			if (missed && can_record(*p) && __builtin_expect(seen_before(e, &at), 0)) {
				e->c.handle = handle;
				e->c.at = (u64)(p - e->data);
				e->c.last_ip = last_ip;
				record(e);
				handle = e->c.handle;
				last_ip = e->c.last_ip;
				x = (u64)(p - e->data);
				p = e->data + e->c.at;
				if (enough(e) || e->error || e->c.place == LOST ||
				    e->stack != mode.stack)
					return;
				if (x != e->c.at)
					continue;
			}
			if (e->raw_lookups >= RAW_TRIAL) {
				raw = e->raw_hits >= e->raw_lookups / 2;
				e->raw_pauses = raw ? 0 : e->raw_pauses + (e->raw_pauses < 4);
				if (!raw)
					e->raw_from =
						(u64)(p - e->data) + (RAW_PAUSE << e->raw_pauses);
				e->raw_lookups = e->raw_hits = 0;
			}
			if (end - p < AHEAD || !*p)
				continue;
		}
		step = vmpt_flow_steps[*p];
		if (step == VMPT_FLOW_RUN) {
			if (!handle)
				break;
			x = vmpt_load64(p);
			n = run_length(x);
			if (STOP_RECORD(p, n))
				break;
			x &= vmpt_mask64(8 * n);
			next = vmpt_flow_memo_take(e, handle, x, mode.hash, mode.blocks, mode.stack,
						   mode.record);
			if (__builtin_expect(!next, 0)) {
				e->c.handle = handle;
				done = vmpt_flow_walk(e, x);
				if (done < vmpt_flow_bits(x)) {
					e->c.last_ip = last_ip;
					run_stopped(e, (u64)(p - e->data), x, done);
					return;
				}
				next = e->c.handle;
				p += n;
				handle = next;
				if (mode.record || enough(e))
					break;
				continue;
			}
			handle = next;
			p += n;
		} else if ((step & 0xf0) == VMPT_FLOW_SKIP) {
			/* Of what is skipped only PADs come again. */
			if (mode.record && (step & 0x0f) > 1)
				break;
			/* The time matters. */
			if ((step & 0x0f) == TSC_SIZE && e->timed)
				break;
			if (STOP_RECORD(p, 1))
				break;
			if ((step & 0x0f) > 1 && IS_CUT(p, step & 0x0f))
				break;
			if (mode.blocks && (step & 0x0f) > 1 && e->times &&
			    !time_mark(e, handle, p)) {
				p += step & 0x0f;
				break;
			}
			p += step & 0x0f;
			continue;
		} else if (step == VMPT_FLOW_TIP) {
			if (!(handle & HANDLE_TIP) || !spaced)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n) || IS_CUT(p, n))
				break;
			last_ip = vmpt_flow_ip_at(p, last_ip);
			p += n;
			if (mode.stack && pops && handle & HANDLE_RET)
				vmpt_flow_pop(e);
			handle = enter(e, handle, last_ip & wrap, mode);
			if (e->full || e->error)
				break;
		} else if (step == VMPT_FLOW_PGD) {
			if (!handle || e->options.switches)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n) || IS_CUT(p, n))
				break;
			x = (u64)(p - e->data);
			last_ip = vmpt_flow_ip_at(p, last_ip);
			p += n;
			/* A node of one block has no direct jump in it. */
			if (!(handle & HANDLE_MULTI) && handle & (HANDLE_COND | HANDLE_TIP)) {
				leave(e, handle, mode);
				e->c.place = DISABLED;
				handle = 0;
				continue;
			}
			e->c.handle = handle;
			e->c.last_ip = last_ip;
			e->c.at = (u64)(p - e->data);
			if (!vmpt_flow_pgd(e, x, true)) {
				e->recording = false;
				if (mode.record || enough(e)) {
					handle = 0;
					break;
				}
			}
			handle = 0;
		} else if (step == VMPT_FLOW_PGE) {
			if (handle || !spaced || e->options.switches)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n) || IS_CUT(p, n))
				break;
			last_ip = vmpt_flow_ip_at(p, last_ip);
			p += n;
			/* A stack that is made later goes on from an earlier PSB or TIP.PGE. */
			if (mode.stack)
				vmpt_flow_stack_reset(e);
			handle = enter(e, 0, last_ip & wrap, mode);
			e->c.place = RUNNING;
			if (e->full || e->error)
				break;
		} else if (step == VMPT_FLOW_CYC && !mode.record) {
			/* Other bytes than the first go on while bit 0 is 1. The longest may be
			 * none: events.c looks. */
			n = 1;
			if (*p & 4)
				while (p[n++] & 1 && n < VMPT_PT_CYC_MAX - 1)
					;
			if (p[n - 1] & (n > 1 ? 1 : 4) || IS_CUT(p, n))
				break;
			if (mode.blocks && e->times && !time_mark(e, handle, p)) {
				p += n;
				break;
			}
			p += n;
			continue;
		} else {
			break;
		}
		if (mode.blocks && __builtin_expect(enough(e), 0))
			break;
	}
	e->c.handle = handle;
	e->c.at = (u64)(p - e->data);
	e->c.last_ip = last_ip;
}

/* ---- each combination ---- */

#define LOOP(n)                                                                                \
	static __attribute__((noinline)) void record_##n(struct engine *e)                     \
	{                                                                                      \
		const struct mode mode = { !!((n)&4), !!((n)&2), !!((n)&1), true };            \
		u64 at = e->c.at, last_ip = e->c.last_ip;                                      \
		struct hashes h = e->h;                                                        \
		u32 start = e->c.handle ? e->c.handle : RAW_DISABLED | e->c.space;             \
                                                                                               \
		vmpt_flow_raw_begin(e);                                                        \
		loop(e, mode, NULL);                                                           \
		if (e->recording && e->c.at > at && !e->error)                                 \
			vmpt_flow_raw_add(e, at, (u32)(e->c.at - at), start, last_ip, h.hash); \
		e->recording = false;                                                          \
		e->h.pow *= h.pow;                                                             \
	}                                                                                      \
                                                                                               \
	static __attribute__((noinline)) void loop_##n(struct engine *e)                       \
	{                                                                                      \
		loop(e, (struct mode){ !!((n)&4), !!((n)&2), !!((n)&1), false }, record_##n);  \
	}

LOOP(0)
LOOP(1)
LOOP(2)
LOOP(3)
LOOP(4)
LOOP(5)
LOOP(6)
LOOP(7)

static void run_loop(struct engine *e)
{
	static void (*const loops[])(struct engine * e) = { loop_0, loop_1, loop_2, loop_3,
							    loop_4, loop_5, loop_6, loop_7 };

	loops[e->hash << 2 | e->blocks << 1 | e->stack](e);
}

static void skip_pads(struct engine *e)
{
	while (e->stop - e->c.at >= 8) {
		u64 bytes = vmpt_load64(e->data + e->c.at);

		e->c.at += bytes ? pads_of(bytes) : 8;
		if (bytes)
			break;
	}
}

/*
 * Whether the loop takes the next packet. What may stand before a TIP or TIP.PGE, a MODE.Exec or a
 * PIP, does not matter any more where that only gives the IP; the space is that of its IP.
 */
static bool for_loop(struct engine *e)
{
	unsigned int step = vmpt_flow_steps[e->data[e->c.at]];
	u32 handle = e->c.handle;

	if (step == VMPT_FLOW_SLOW || e->options.by_packet)
		return false;
	if (e->c.pending & (u8)~PENDING_EXEC)
		return false;
	if (step == VMPT_FLOW_PGE && !handle && !e->options.switches) {
		e->c.pending = 0;
		if (e->c.space == NONE)
			e->c.space = vmpt_flow_space_now(e);
	}
	return !e->c.pending;
}

int vmpt_flow_packets(struct engine *e)
{
	int ret;

	while (e->c.at < e->stop && !enough(e)) {
		skip_pads(e);
		if (e->c.at < e->stop && for_loop(e))
			run_loop(e);
		if (e->error)
			return e->error;
		if (e->c.at >= e->stop || enough(e))
			break;
		ret = vmpt_flow_event(e);
		if (ret)
			return ret;
		if (e->options.by_packet && e->blocks && !e->quiet)
			vmpt_flow_close_batch(e, 0, 0, true);
	}
	return e->error;
}
