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

/* From the node @handle (0: none) to that at @ip; its handle, or 0 if there is no memory. */
static inline __attribute__((always_inline)) u32 enter(struct engine *e, u32 handle, u64 ip,
						       bool hash, bool blocks, bool stack)
{
	u32 next = vmpt_flow_ip_find(e, e->c.space, ip), id = handle >> HANDLE_SHIFT;

	if (hash && handle) {
		struct hashes h = e->node_hashes[id];

		e->h.hash = e->h.hash * h.pow + h.hash;
		e->h.pow *= h.pow;
	}
	if (__builtin_expect(!next || (stack && next & HANDLE_PUSH), 0)) {
		vmpt_flow_enter(e, ip);
		return e->c.handle;
	}
	id = next >> HANDLE_SHIFT;
	e->node_hits[id] += e->weight;
	if (blocks && !e->quiet)
		vmpt_flow_log(e, id);
	return next;
}

static inline __attribute__((always_inline)) u64 ip_of(const u8 *p, u64 last_ip)
{
	const struct vmpt_flow_ip *form = &vmpt_flow_ips[*p >> 5];
	u64 ip = (vmpt_load64(p + 1) & form->mask) | (last_ip & form->keep);

	return (u64)((s64)(ip << form->sign) >> form->sign);
}

static inline __attribute__((always_inline)) void loop(struct engine *e, const bool hash,
						       const bool blocks, const bool stack)
{
	const u8 *p = e->data + e->c.at, *end = e->data + e->stop;
	const u64 wrap = e->c.exec == 64 ? ~0ULL : 0xffffffffULL;
	const bool pops = e->options.returns != VMPT_FLOW_RETURNS_LIBIPT;
	const bool spaced = e->c.space != NONE;
	u64 last_ip = e->c.last_ip, x;
	unsigned int n, step, done;
	u32 handle = e->c.handle, next;

	while (end - p >= AHEAD) {
		step = vmpt_flow_steps[*p];
		if (step == VMPT_FLOW_RUN) {
			if (!handle)
				break;
			x = vmpt_load64(p);
			n = run_length(x);
			x &= vmpt_mask64(8 * n);
			next = vmpt_flow_memo_take(e, handle, x, hash, blocks, stack);
			if (__builtin_expect(!next, 0)) {
				e->c.handle = handle;
				done = vmpt_flow_walk(e, x);
				if (done < vmpt_flow_bits(x)) {
					e->c.last_ip = last_ip;
					run_stopped(e, (u64)(p - e->data), x, done);
					return;
				}
				next = e->c.handle;
			}
			handle = next;
			p += n;
		} else if ((step & 0xf0) == VMPT_FLOW_SKIP) {
			p += step & 0x0f;
			continue;
		} else if (step == VMPT_FLOW_TIP) {
			if (!(handle & HANDLE_TIP) || !spaced)
				break;
			last_ip = ip_of(p, last_ip);
			p += vmpt_flow_ips[*p >> 5].size;
			if (stack && pops && handle & HANDLE_RET)
				vmpt_flow_pop(e);
			handle = enter(e, handle, last_ip & wrap, hash, blocks, stack);
		} else if (step == VMPT_FLOW_PGD) {
			if (!handle)
				break;
			x = (u64)(p - e->data);
			last_ip = ip_of(p, last_ip);
			p += vmpt_flow_ips[*p >> 5].size;
			e->c.handle = handle;
			e->c.last_ip = last_ip;
			e->c.at = (u64)(p - e->data);
			vmpt_flow_pgd(e, x, true);
			handle = 0;
		} else if (step == VMPT_FLOW_PGE) {
			if (handle || !spaced)
				break;
			last_ip = ip_of(p, last_ip);
			p += vmpt_flow_ips[*p >> 5].size;
			vmpt_flow_stack_clear(&e->s);
			handle = enter(e, 0, last_ip & wrap, hash, blocks, stack);
			e->c.handle = handle;
			e->c.place = RUNNING;
			e->c.at = (u64)(p - e->data);
			e->c.last_ip = last_ip;
			vmpt_flow_stack_from(e);
		} else if (step == VMPT_FLOW_CYC) {
			/* Other bytes than the first go on while bit 0 is 1. */
			if (*p++ & 4)
				while (*p++ & 1)
					;
			continue;
		} else {
			break;
		}
		if (__builtin_expect(enough(e) || e->error, 0))
			break;
	}
	e->c.handle = handle;
	e->c.at = (u64)(p - e->data);
	e->c.last_ip = last_ip;
}

static void run_loop(struct engine *e)
{
	switch (e->hash << 2 | e->blocks << 1 | e->stack) {
	case 0:
		loop(e, false, false, false);
		break;
	case 1:
		loop(e, false, false, true);
		break;
	case 2:
		loop(e, false, true, false);
		break;
	case 3:
		loop(e, false, true, true);
		break;
	case 4:
		loop(e, true, false, false);
		break;
	case 5:
		loop(e, true, false, true);
		break;
	case 6:
		loop(e, true, true, false);
		break;
	case 7:
		loop(e, true, true, true);
		break;
	}
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
