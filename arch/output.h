/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The output position of PT (SDM 3 33.2.7): where the next byte goes, single range or
 * ToPA, and what happens at a region's end. The processor's stores (model/) and a VMM
 * that inserts a packet (vmm-lib/) go through the same code.
 *
 * Defined points where the manual leaves the timing open (33.3.10, 33.2.7.2):
 * - An error is signalled when the faulty entry becomes current: at the first use after
 *   TraceEn is set, or with the byte that fills the region before it.
 * - A region's end is handled with its last byte: STOP, else INT, then the next entry.
 *   With STOP and INT both are signalled. After STOP OutputOffset is the region's size.
 * - A processor with one output entry signals INT with the byte that leaves no more than
 *   VMPT_OUTPUT_EARLY bytes, and not again when the region is full.
 * - An END entry found current at the first use is followed, with OutputOffset 0.
 *
 * Work is bounded: at most two entries are read at load and for the last bytes of a
 * region, and a region has 4 KiB at least, for entry 0 of a table is never END.
 *
 * The entry behind a region is read before the region's last bytes are stored. So the
 * MSRs hold a position to go on from at any time, also when a callback asks for a retry,
 * and a struct vmpt_output can be made anew there.
 */
#ifndef VMPT_ARCH_OUTPUT_H
#define VMPT_ARCH_OUTPUT_H

#include "arch/pt-regs.h"
#include "arch/topa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes before a region's end: see above. */
#define VMPT_OUTPUT_EARLY 128

/* What a memory callback may return besides 0 and a negative enum vmpt_error. */
#define VMPT_OUTPUT_DROPPED 1 /* write: these bytes vanish, output goes on (Table 33-5) */
#define VMPT_OUTPUT_FAULT   2 /* an operational error */

/*
 * Physical memory. A negative return stops the output there: nothing of this access
 * counts, the position stays, and the call can be repeated (an EPT violation).
 */
struct vmpt_output_memory {
	/* Read the ToPA entry at @pa, 8-byte aligned, in one access. */
	int (*read_entry)(void *opaque, u64 pa, u64 *entry);
	/* Write @len bytes, all inside one region and one 4-KiB page. */
	int (*write)(void *opaque, u64 pa, const u8 *bytes, size_t len);
	void *opaque;
};

/* What happened, added up until the caller clears it. */
#define VMPT_OUTPUT_INT	    0x1 /* a region with INT was filled */
#define VMPT_OUTPUT_STOP    0x2 /* STATUS.Stopped was set */
#define VMPT_OUTPUT_ERROR   0x4 /* STATUS.Error was set, see why */
#define VMPT_OUTPUT_WRAPPED 0x8 /* single range: went on at the base */

/* An output and its position. */
struct vmpt_output {
	const struct vmpt_pt_rules *rules;
	struct vmpt_pt_regs *regs; /* CTL is read; STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS change */
	const struct vmpt_output_memory *memory;
	u64 region, size, entry; /* the current region, if loaded; entry is 0 for single range */
	u64 lost;		 /* bytes that came after STOP or an error */
	u64 dropped;		 /* bytes of writes that were VMPT_OUTPUT_DROPPED */
	u64 reads;		 /* entries read, for tests of the bound */
	u32 events;		 /* VMPT_OUTPUT_INT … */
	u32 ints;		 /* how many INT regions were filled */
	u8 why;			 /* enum vmpt_output_error of the last error */
	bool loaded;
};

/* Nothing is read yet. The pointers stay the caller's. */
void vmpt_output_init(struct vmpt_output *out, const struct vmpt_pt_rules *rules,
		      struct vmpt_pt_regs *regs, const struct vmpt_output_memory *memory);

/* Forget the current region: the MSRs, the table or the memory behind it changed. */
static inline void vmpt_output_unload(struct vmpt_output *out)
{
	out->loaded = false;
}

/*
 * Check the configuration and load the current region, as the processor does when
 * TraceEn is set. 0: output has a place to go or STATUS.Error is now set (see events);
 * negative: what the callback returned, call again. With Stopped or Error in STATUS
 * nothing is looked at: the position behind a STOP is no error yet (33.2.7.2).
 */
int vmpt_output_load(struct vmpt_output *out);

/*
 * Store @len bytes. 0: all are dealt with; those after STOP or an error are counted in
 * lost. Negative: what the callback returned; go on later with the bytes from *done.
 * Does not look at TraceEn and does not count PacketByteCnt. @done may not be NULL.
 */
int vmpt_output_write(struct vmpt_output *out, const u8 *bytes, size_t len, size_t *done);

/*
 * Where the first byte goes behind the page that the next byte goes to: *@pa, in the same
 * region or in the next entry's. 0; 1: nowhere, for output ends there (STOP, an error to come)
 * or is not loaded; negative: what the callback returned. Changes nothing; at most two entries
 * are read. For a processor that translates addresses before it needs them.
 */
int vmpt_output_next(struct vmpt_output *out, u64 *pa);

#ifdef __cplusplus
}
#endif

#endif
