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

/* A node by its IP, and what entering it does. */
static inline __attribute__((always_inline)) bool enter(struct engine *e, u64 ip, bool hash,
							bool blocks, bool stack)
{
	u32 handle = vmpt_flow_ip_find(e, e->c.space, ip), id;

	if (__builtin_expect(!handle || (stack && handle & HANDLE_PUSH), 0)) {
		if (hash)
			vmpt_flow_leave_whole(e);
		return !vmpt_flow_enter(e, ip);
	}
	if (hash && e->c.handle) {
		struct hashes h = e->node_hashes[e->c.handle >> HANDLE_SHIFT];

		e->h.hash = e->h.hash * h.pow + h.hash;
		e->h.pow *= h.pow;
	}
	id = handle >> HANDLE_SHIFT;
	e->node_hits[id] += e->weight;
	if (blocks && !e->quiet)
		vmpt_flow_log(e, id);
	e->c.handle = handle;
	return true;
}

static inline __attribute__((always_inline)) void loop(struct engine *e, const bool hash,
						       const bool blocks, const bool stack)
{
	const u8 *p = e->data + e->c.at, *end = e->data + e->stop;
	const u64 wrap = e->c.exec == 64 ? ~0ULL : 0xffffffffULL;
	const bool pops = e->options.returns != VMPT_FLOW_RETURNS_LIBIPT;
	u64 last_ip = e->c.last_ip, x, ip;
	const struct vmpt_flow_ip *form;
	unsigned int n, step;

	while (end - p >= AHEAD) {
		step = vmpt_flow_steps[*p];
		switch (step & 0xf0) {
		case VMPT_FLOW_RUN:
			x = vmpt_load64(p);
			n = run_length(x);
			x &= vmpt_mask64(8 * n);
			if (!e->c.handle)
				goto out;
			if (__builtin_expect(!vmpt_flow_memo_take(e, x, hash, blocks, stack), 0)) {
				unsigned int done = vmpt_flow_walk(e, x);

				if (done < vmpt_flow_bits(x)) {
					e->c.last_ip = last_ip;
					run_stopped(e, (u64)(p - e->data), x, done);
					return;
				}
				if (enough(e)) {
					p += n;
					goto out;
				}
			}
			p += n;
			break;
		case VMPT_FLOW_SKIP:
			p += step & 0x0f;
			continue;
		case VMPT_FLOW_CYC:
			/* Other bytes than the first go on while bit 0 is 1. */
			if (*p++ & 4)
				while (*p++ & 1)
					;
			continue;
		case VMPT_FLOW_TIP:
			if (!(e->c.handle & HANDLE_TIP))
				goto out;
			form = &vmpt_flow_ips[*p >> 5];
			ip = (vmpt_load64(p + 1) & form->mask) | (last_ip & form->keep);
			ip = (u64)((s64)(ip << form->sign) >> form->sign);
			if (stack && pops && e->c.handle & HANDLE_RET)
				vmpt_flow_pop(e);
			p += form->size;
			last_ip = ip;
			if (!enter(e, ip & wrap, hash, blocks, stack))
				goto out;
			break;
		case VMPT_FLOW_PGD:
			if (!(e->c.handle & (HANDLE_TIP | HANDLE_COND)) ||
			    e->c.handle & HANDLE_MULTI)
				goto out;
			form = &vmpt_flow_ips[*p >> 5];
			ip = (vmpt_load64(p + 1) & form->mask) | (last_ip & form->keep);
			last_ip = (u64)((s64)(ip << form->sign) >> form->sign);
			p += form->size;
			vmpt_flow_leave_whole(e);
			e->c.place = DISABLED;
			break;
		default:
			goto out;
		}
		if (blocks && e->log_count + UNITS_LEFT > e->log_room && !e->quiet)
			break;
	}
out:
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
		if (!e->c.pending && e->c.space != NONE && !e->options.by_packet)
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
