/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rewriting of TSC packets in the output of a guest whose RDTSC is emulated (SDM 3 33.5.2.3), and
 * the side record that describes a vCPU's clock to a host's decoder (33.5.2.1, 33.8.3.3).
 */
#ifndef VMPT_VMM_TSC_H
#define VMPT_VMM_TSC_H

#include "arch/pt-packet.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* guest TSC = ((TSC in the trace × multiplier) >> 48) + offset, mod 2^56 in the packet */
struct vmpt_tsc_change {
	u64 multiplier; /* 48 bits of fraction; 1ULL << 48 leaves the rate as it is */
	u64 offset;	/* two's complement */
	/*
	 * Bits 63:56 of the trace's TSC at the start of the range; packets lack them. While calls
	 * pass the same value, later wraps of the 56 bits are counted as they are seen; a new value
	 * restarts the count.
	 */
	u8 high;
};

/* Largest count in TMA.FastCounter. */
#define VMPT_FAST_COUNTER_MAX 0x1ff

/*
 * State of a rewriter between two pieces of one output. All zero: at a packet's start, outside a
 * block. A packet that is cut by the end of a piece is kept in @cut; its bytes were left unchanged,
 * and the caller patches them if @patch says so. While @lost is set, @cut_size is the number of
 * last bytes that may belong to a PSB, which were left unchanged too, and @cut is not used.
 */
struct vmpt_tsc_scan {
	u8 cut[VMPT_PT_SIZE_MAX];
	u8 cut_size;			 /* bytes seen of a cut packet */
	u8 block;			 /* block context (33.4.1.1) */
	u8 lost;			 /* not at a packet's start: search for a PSB; 2: marked */
	u8 patched;			 /* of the last call: leading bytes of @cut that changed */
	u8 patch[VMPT_PT_SIZE_MAX];	 /* the new bytes for them, in stream order */
	u8 high;			 /* change->high of the last call … */
	u8 wrapped;			 /* … and how often the 56 bits wrapped under it */
	u64 last;			 /* last TSC seen, 56 bits; 0: none yet */
	u64 packets, tscs, tmas, errors; /* counted since the start */
	u64 lost_bytes;			 /* overwritten; not part of a saved state */
};

/*
 * No list of packets is ever complete: processors get new ones. Where the rewriter meets a byte
 * that begins no packet it knows, it cannot tell where the next TSC is, and an unadjusted one would
 * show the host's time. So everything from that byte on becomes PAD (33.4.2.20) up to the next PSB,
 * and the first of these bytes VMPT_TSC_LOST_MARK: a FUP with IPBytes 111b, which Table 33-18
 * reserves. A guest's decoder reports an error there and resumes at that PSB, whether or not it
 * knows the packet that the rewriter did not know.
 */
#define VMPT_TSC_LOST_MARK 0xfd

/*
 * Rewrite the TSC and TMA packets in @buf, @len bytes of the output that follow those of the last
 * call. Payloads of other packets are never changed; bytes that are no packet are overwritten up to
 * the next PSB and counted in @scan->lost_bytes, see VMPT_TSC_LOST_MARK. When a packet that began
 * in the last piece is complete: its part in this piece is written here, its earlier part is in
 * @scan->patch, @scan->patched bytes of it, for the caller to write back; the same for bytes at the
 * last piece's end that turn out to be no packet or PSB. Each byte of @buf is read once or twice.
 */
void vmpt_tsc_rewrite(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		      size_t len);

/* What a host's decoder must know about one vCPU. One JSON object per line. */
struct vmpt_record {
	/* UTF-8, any characters, escaped as JSON asks; a byte that is not UTF-8 becomes U+FFFD */
	const char *vm;
	u32 vcpu;
	u64 vmcs; /* VMCS pointer, 4-KiB aligned */
	u64 tsc_offset;
	u64 tsc_multiplier; /* 48 bits of fraction */
	u64 since;	    /* host TSC from which this is valid */
};

/*
 * Write @record as one line with its newline, NUL-terminated and cut at @len:
 * {"vm":"name","vcpu":0,"vmcs":"0x12f7a4000","tsc_offset":"0x…","tsc_multiplier":"0x…",
 * "since":"0x…"}. Numbers of 64 bits are strings in hex: JSON readers keep 53 bits.
 * Returns the length it needs without the NUL.
 */
size_t vmpt_record_print(const struct vmpt_record *record, char *buf, size_t len);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
