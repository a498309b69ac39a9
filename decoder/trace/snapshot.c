// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Snapshots of a ring buffer: a snapshot may start inside the one before it. This is
 * found by content; offsets are only a hint, since perf counts them modulo the size of
 * the buffer.
 */
#include "decoder/pt/pt.h"
#include "decoder/trace/trace.h"

#define PADDING	   7	/* an AUXTRACE buffer is padded with zeros to 8 bytes */
#define BLOCK	   4096 /* bytes compared at once */
#define PSB_SIZE   16
#define PSB_PLUS   512 /* no PSB+ is longer */
#define PROOF_SIZE 256 /* bytes that must agree where there is no TSC */
/* Work limit: bytes compared for each byte of the two snapshots. */
#define BUDGET 16

/*
 * Whether @b starts with all of @a from @start on, padding excepted. @budget is
 * lowered by the bytes compared.
 */
static bool matches(const u8 *a, u64 a_size, u64 start, const u8 *b, u64 b_size, u64 *budget,
		    struct vmpt_overlap *overlap)
{
	u64 len = a_size - start, n = len < b_size ? len : b_size, same = 0;

	while (same < n) {
		u64 step = n - same < BLOCK ? n - same : BLOCK;

		*budget -= *budget < step ? *budget : step;
		if (memcmp(a + start + same, b + same, step))
			break;
		same += step;
	}
	/* In the block that differs */
	while (same < n && a[start + same] == b[same])
		same++;
	overlap->drop = same;
	overlap->trim = len - same;
	if (overlap->trim > PADDING)
		return false;
	for (; same < len; same++)
		if (a[start + same])
			return false;
	return true;
}

/*
 * Number of bytes of @b, whose first PSB is at @psb, that must agree to rule out chance:
 * those up to the TSC of its PSB+, or else PROOF_SIZE.
 */
static u64 proof_size(const u8 *b, u64 b_size, u64 psb)
{
	u64 at = psb, end = b_size - psb < PSB_PLUS ? b_size : psb + PSB_PLUS;
	struct vmpt_pt_packet pkt;

	while (at < end && !vmpt_pt_decode(&pkt, b + at, end - at, 0)) {
		at += pkt.size;
		if (pkt.kind == VMPT_PT_TSC)
			return at;
		if (pkt.kind == VMPT_PT_PSBEND)
			break;
	}
	return psb + PROOF_SIZE;
}

bool vmpt_snapshot_overlap(const u8 *a, u64 a_size, const u8 *b, u64 b_size, u64 hint,
			   struct vmpt_overlap *overlap)
{
	u64 psb, proof, at, budget = BUDGET * (a_size + b_size);

	if (hint > PADDING && hint <= a_size && hint <= b_size + PADDING &&
	    matches(a, a_size, a_size - hint, b, b_size, &budget, overlap))
		return true;
	psb = vmpt_psb_find(b, 0, b_size);
	if (psb == b_size || psb > a_size)
		return false;
	proof = proof_size(b, b_size, psb);
	/* @b does not end inside @a: @a starts to repeat there at the earliest. */
	at = psb;
	if (a_size > b_size + PADDING)
		at = a_size - b_size - PADDING + psb;
	/* The first PSB of @b is one of those of @a; the longest overlap is tried first. */
	for (; budget; at++) {
		at = vmpt_psb_find(a, at, a_size);
		if (at == a_size)
			return false;
		if (matches(a, a_size, at - psb, b, b_size, &budget, overlap) &&
		    overlap->drop >= proof)
			return true;
	}
	return false;
}
