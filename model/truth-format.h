/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What was executed, independent of all packets: the file that tests compare a decoded trace
 * with. The QEMU plugin and the Bochs PC write it. Little-endian 32-bit words, to be read as a
 * stream:
 *
 *	"VMPT" "TRU1"			the beginning, 8 bytes
 *	ID (< 0xf0000000)		block ID was executed, all of its instructions retired
 *	DEFINE ID IP.lo IP.hi COUNT SIZE lengths bytes
 *					block ID: COUNT instructions from linear address IP on.
 *					COUNT lengths, a byte each, then the SIZE bytes of their
 *					code; both together padded with 0 to a whole word. An ID
 *					may be redefined: the new meaning holds from there on
 *	PART ID N			only the first N instructions of block ID retired
 *	EVENT FROM.lo FROM.hi TO.lo TO.hi
 *					an interrupt or exception was delivered: the instruction
 *					at linear address FROM has not retired, execution went on
 *					at TO
 *	BEGIN IP.lo IP.hi		a run begins (host view and guests: VM entry)
 *	END IP.lo IP.hi			a run ends; the instruction at IP has not retired. IP 0: all
 *					that began have
 *	STATE FLAGS IP.lo IP.hi CTL.lo CTL.hi CR3.lo CR3.hi EPTP.lo EPTP.hi
 *					the state from the instruction at IP on: flags
 *					TRUTH_CPL …, IA32_RTIT_CTL as software wrote it, CR3, and
 *					the EPT pointer, 0 without EPT. Not all files have it
 *
 *	RANGE N A.lo A.hi B.lo B.hi	IA32_RTIT_ADDRn_A and _B of range N (0 to 3) from the next
 *STATE on; 0 before. The QEMU plugin's guest view has it
 *
 *	TIME FLAGS TSC.lo TSC.hi CR3.lo CR3.hi
 *					what follows was not executed before the host's TSC, and up
 *					to the next one less than TRUTH_TIME_MAX ticks after it; CR3
 *					and FLAGS of these blocks. The QEMU plugin's host view has
 *					it with a code stream
 *
 *	SP RSP.lo RSP.hi		RSP (ESP, SP) where what follows begins. Written after CALLs,
 *					RETs, far transfers, events and blocks that load RSP, and, in
 *					64-bit mode, before events. The QEMU plugin has it with
 *					truth-sp=1
 *
 * Each iteration of a REP instruction may come as a block of its own. A block word is written
 * when it is known how far the block executed: when the next one begins or an event comes. "From",
 * "to" and IP are linear addresses at run time.
 */
#ifndef VMPT_MODEL_TRUTH_FORMAT_H
#define VMPT_MODEL_TRUTH_FORMAT_H

#define TRUTH_MAGIC "VMPTTRU1"

enum truth_word {
	TRUTH_DEFINE = 0xf0000001,
	TRUTH_PART,
	TRUTH_EVENT,
	TRUTH_BEGIN,
	TRUTH_END,
	TRUTH_STATE,
	TRUTH_RANGE,
	TRUTH_TIME,
	TRUTH_SP,
};

#define TRUTH_RANGES   4
#define TRUTH_TIME_MAX 1000

/* FLAGS */
enum truth_flag {
	TRUTH_CPL = 3, /* two bits */
	TRUTH_PAGING = 4,
	TRUTH_PAE = 8,
	TRUTH_LONG = 16, /* IA32_EFER.LMA */
	TRUTH_CS_L = 32,
	TRUTH_CS_D = 64,
	TRUTH_LA57 = 128,
};

#endif
