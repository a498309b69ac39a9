// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What wrote a raw trace: Intel PT or RTIT. Only their PSBs show it (SDM 3 33.4.2.17; RTIT
 * Programming Reference 4.2.1). The 16 bytes of PT's prove themselves; the 9 of RTIT's, C0H and
 * eight zeros, are in most programs and page images, so RTIT needs more:
 * - from such a PSB on, packets of RTIT follow each other without an error over another PSB, as far
 *   apart as 4.2.1 allows, or to the end of the file, and not only TNTs, as which text can be read;
 * - or the file begins with the PSB, and some packets follow without an error;
 * - no PSB of PT is anywhere in the file.
 * What proves to be neither is taken for PT, or for what the trace's other files are.
 */
#include "decoder/rtit/rtit.h"
#include "decoder/pt/pt.h"
#include "decoder/trace/trace.h"

/* RTIT_LIMIT_MASK allows no larger output (Table 13). */
#define WINDOW (4ULL << 20)
/* PSBs are 16 KiB apart at most (4.2.1), with the packet that exceeds it. */
#define PSB_APART ((16ULL << 10) + 32)
/* Packets after the first PSB, without PSBs; up to the end; of a file that begins with it, too. */
#define PROOF	       16
#define PROOF_TO_END   3
#define PROOF_OF_WHOLE 1

/*
 * Walk from the PSB at *@at. True: it is RTIT. Else *@at is where to look for the next PSB: the
 * packet before the error may have taken bytes of it.
 */
static bool proves(const u8 *data, u64 size, bool cycle_acc, u64 *at)
{
	u64 start = *at, next = start, psb = start;
	unsigned int packets = 0, psbs = 0, tnts = 0;
	struct vmpt_rtit_packet pkt;
	int ret;

	while (packets < PROOF || (psbs < 2 && start) || tnts == packets) {
		ret = next - psb > PSB_APART
			      ? -VMPT_E_PSB
			      : vmpt_rtit_decode(&pkt, data + next, size - next, cycle_acc);
		if (ret) {
			*at = *at == start ? start + 1 : *at;
			return ret == -VMPT_E_TRUNCATED && tnts < packets &&
			       packets >= (start ? PROOF_TO_END : PROOF_OF_WHOLE);
		}
		*at = next;
		if (pkt.kind == VMPT_RTIT_PSB) {
			psb = next;
			psbs++;
		} else {
			packets++;
			tnts += pkt.kind == VMPT_RTIT_TNT;
		}
		next += pkt.size;
	}
	return true;
}

static bool is_rtit(const u8 *data, u64 size, bool cycle_acc)
{
	u64 end = size < WINDOW ? size : WINDOW;
	u64 at = vmpt_rtit_psb_find(data, 0, end);

	for (; at < end; at = vmpt_rtit_psb_find(data, at, end))
		if (proves(data, size, cycle_acc, &at))
			return true;
	return false;
}

int vmpt_isa_detect(const u8 *data, u64 size)
{
	u64 end = size < WINDOW ? size : WINDOW;

	if (vmpt_psb_find(data, 0, end) < end)
		return VMPT_ISA_PT;
	if (!is_rtit(data, size, false) && !is_rtit(data, size, true))
		return -1;
	return vmpt_psb_find(data, 0, size) < size ? VMPT_ISA_PT : VMPT_ISA_RTIT;
}
