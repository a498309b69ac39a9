// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What wrote a raw trace: Intel PT or RTIT. Only the pattern of their PSBs shows it
 * (SDM 3 33.4.2.17; RTIT Programming Reference 4.2.1), so the first one decides.
 */
#include "decoder/rtit/rtit.h"
#include "decoder/pt/pt.h"
#include "decoder/trace/trace.h"

/* RTIT_LIMIT_MASK allows no larger output (Table 13), and PSBs are 16 KiB apart at most. */
#define WINDOW (4ULL << 20)
/* Number of packets after an RTIT PSB that must be valid. */
#define RTIT_PROOF 16

/* Whether RTIT_PROOF packets of RTIT are at @data, or with @is_end fewer up to the data's end. */
static bool packets_follow(const u8 *data, u64 size, bool is_end, bool cycle_acc)
{
	struct vmpt_rtit_packet pkt;
	unsigned int i;
	int ret;

	for (i = 0; i < RTIT_PROOF; i++) {
		ret = vmpt_rtit_decode(&pkt, data, size, cycle_acc);
		if (ret)
			return is_end && ret == -VMPT_E_TRUNCATED;
		data += pkt.size;
		size -= pkt.size;
	}
	return true;
}

/*
 * The 9 bytes of RTIT's PSB occur by chance in PT, whose padding is zeros too: a payload that
 * ends in C0H and eight PADs. So one is accepted only if RTIT packets follow (a PSB of PT does not
 * count, though all its bytes can be read as TNTs and FUPs). The 16 bytes of PT's PSB need no
 * such check.
 */
int vmpt_isa_detect(const u8 *data, u64 size)
{
	u64 end = size < WINDOW ? size : WINDOW;
	u64 pt = vmpt_psb_find(data, 0, end);
	u64 at = vmpt_rtit_psb_find(data, 0, end), after, limit = pt < end ? pt : size;
	bool seen = at < end;

	for (; at < pt; at = vmpt_rtit_psb_find(data, at + 1, pt)) {
		after = at + VMPT_RTIT_PSB_SIZE;
		if (packets_follow(data + after, limit - after, pt == end, false) ||
		    packets_follow(data + after, limit - after, pt == end, true))
			return VMPT_ISA_RTIT;
	}
	if (pt < end)
		return VMPT_ISA_PT;
	return seen ? VMPT_ISA_RTIT : -1;
}
