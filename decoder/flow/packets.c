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
#define RESULTS_LEFT 16
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

/* From the node @handle (0: none) to that at @ip; its handle, or 0 if there is no memory. */
static inline __attribute__((always_inline)) u32 enter(struct engine *e, u32 handle, u64 ip,
						       const struct mode mode)
{
	u32 next = vmpt_flow_ip_find(e, e->c.space, ip), id = handle >> HANDLE_SHIFT;

	if (mode.hash && handle) {
		struct hashes h = e->node_hashes[id];

		e->h.hash = e->h.hash * h.pow + h.hash;
		e->h.pow *= h.pow;
	}
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

static inline __attribute__((always_inline)) bool raw_take(struct engine *e, const u8 **p,
							   u32 *handle, u64 *last_ip, u64 *key,
							   const struct mode mode)
{
	u64 b0 = vmpt_load64(*p), b1 = vmpt_load64(*p + 8);
	const struct raw_memo *m;
	const struct effect *fx;
	struct path *path;
	u32 start = *handle ? *handle : RAW_DISABLED | e->c.space, end, id;

	*key = vmpt_flow_raw_hash(start, *last_ip, b0, b1);
	m = vmpt_flow_raw(e, *key, start, *last_ip, b0, b1);
	e->raw_lookups++;
	if (__builtin_expect(!m->start, 0))
		return false;
	end = m->end;
	id = m->path;
	if (mode.stack && m->effect) {
		fx = vmpt_flow_effect(e, m->effect);
		if (!fx)
			return false;
		vmpt_flow_apply(e, fx);
		end = fx->end;
		id = fx->path;
	}
	e->raw_hits++;
	*p += m->size;
	*last_ip = m->next_last_ip;
	*handle = end;
	e->c.place = end ? RUNNING : DISABLED;
	path = &e->paths[id];
	path->hits += e->weight;
	if (mode.hash) {
		e->h.hash = e->h.hash * path->h.pow + path->h.hash;
		e->h.pow *= path->h.pow;
	}
	if (mode.blocks && !e->quiet)
		vmpt_flow_log(e, id | UNIT_PATH);
	return true;
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
	bool raw = !mode.record && e->raws && e->c.at >= e->raw_from && spaced &&
		   (!e->c.handle || e->nodes[e->c.handle >> HANDLE_SHIFT].space == e->c.space);
	u64 last_ip = e->c.last_ip, x, key;
	unsigned int n, step, done;
	u32 handle = e->c.handle, next;

	while (end - p >= AHEAD) {
		if (!mode.record && raw && *p) {
			if (raw_take(e, &p, &handle, &last_ip, &key, mode))
				goto taken;
			if (__builtin_expect(vmpt_flow_raw_seen(e, key), 0)) {
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
					goto taken;
			}
			if (e->raw_lookups >= RAW_TRIAL) {
				if (e->raw_hits < RAW_TRIAL / 2) {
					raw = false;
					e->raw_from = (u64)(p - e->data) + RAW_PAUSE;
				}
				e->raw_lookups = e->raw_hits = 0;
			}
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
			if (!mode.record && !*p) {
				x = vmpt_load64(p);
				p += x ? (unsigned int)__builtin_ctzll(x) / 8 : 8;
				continue;
			}
			p += step & 0x0f;
			continue;
		} else if (step == VMPT_FLOW_TIP) {
			if (!(handle & HANDLE_TIP) || !spaced)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n))
				break;
			last_ip = vmpt_flow_ip_at(p, last_ip);
			p += n;
			if (mode.stack && pops && handle & HANDLE_RET)
				vmpt_flow_pop(e);
			handle = enter(e, handle, last_ip & wrap, mode);
			if (e->full || e->error)
				break;
		} else if (step == VMPT_FLOW_PGD) {
			if (!handle)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n))
				break;
			x = (u64)(p - e->data);
			last_ip = vmpt_flow_ip_at(p, last_ip);
			p += n;
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
			if (handle || !spaced)
				break;
			n = vmpt_flow_ips[*p >> 5].size;
			if (STOP_RECORD(p, n))
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
			/* Other bytes than the first go on while bit 0 is 1. */
			if (*p++ & 4)
				while (*p++ & 1)
					;
			continue;
		} else {
			break;
		}
	taken:
		if (mode.blocks && __builtin_expect(enough(e), 0))
			break;
	}
	e->c.handle = handle;
	e->c.at = (u64)(p - e->data);
	e->c.last_ip = last_ip;
}

/* ---- each combination ---- */

#define LOOP(n)                                                                               \
	static __attribute__((noinline)) void record_##n(struct engine *e)                    \
	{                                                                                     \
		const struct mode mode = { !!((n)&4), !!((n)&2), !!((n)&1), true };           \
		u64 at = e->c.at, last_ip = e->c.last_ip, hash = e->h.hash;                   \
		u32 start = e->c.handle ? e->c.handle : RAW_DISABLED | e->c.space;            \
                                                                                              \
		vmpt_flow_raw_begin(e);                                                       \
		loop(e, mode, NULL);                                                          \
		if (e->recording && e->c.at > at && !e->error)                                \
			vmpt_flow_raw_add(e, at, (u32)(e->c.at - at), start, last_ip, hash);  \
		e->recording = false;                                                         \
	}                                                                                     \
                                                                                              \
	static __attribute__((noinline)) void loop_##n(struct engine *e)                      \
	{                                                                                     \
		loop(e, (struct mode){ !!((n)&4), !!((n)&2), !!((n)&1), false }, record_##n); \
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

int vmpt_flow_packets(struct engine *e)
{
	int ret;

	while (e->c.at < e->stop && !enough(e)) {
		if (!e->c.pending && !e->options.by_packet)
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
