/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When each byte of a processor's trace was made, on the host's TSC: the file that tests compare a
 * decoder's times with. The Bochs PC writes it (docs/bochs/truth.md). After TIMES_MAGIC it is a
 * stream of records, each a byte of enum times_record and its numbers, unsigned LEB128:
 *
 *	AT BACK TICKS	the TSC advances by TICKS, or goes back by TICKS if BACK is 1
 *	MADE BYTES	BYTES more bytes came out of the trace unit, all made at this TSC
 *	LOST BYTES	the last BYTES of those bytes never reached memory
 *	ENTRY VMCS OFFSET MULTIPLIER
 *			a VM entry at this TSC, to the guest of that VMCS; its packets come next.
 *			OFFSET is added to the TSC there, after it was multiplied by MULTIPLIER
 *			(2^48: by one); both 64 bits
 *	EXIT VMCS REASON
 *			a VM exit; its packets come next
 *	CTL VALUE	IA32_RTIT_CTL is this from here on
 *
 * A TNT is made when its first branch is. Position and TSC begin at 0. A guest's bytes are included
 * if they come out of the same unit.
 */
#ifndef VMPT_MODEL_TIMES_FORMAT_H
#define VMPT_MODEL_TIMES_FORMAT_H

#define TIMES_MAGIC "VMPTTIM1"

enum times_record {
	TIMES_AT = 1,
	TIMES_MADE,
	TIMES_LOST,
	TIMES_ENTRY,
	TIMES_EXIT,
	TIMES_CTL,
	TIMES_RECORDS
};

#endif
