// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How far to advance by a packet's first two bytes (SDM 3 33.4.2, Tables 33-16 to 33-51), as scan.h
 * describes. Written by hand, not generated from arch/pt-packet-table.c, because a kernel builds
 * it; a test compares the two for all pairs of bytes.
 */
#include "vmm-lib/tsc/scan.h"

enum row {
	ONE,	/* a packet of one byte, and the next one if its first byte determines its size */
	SLOW,	/* TSC, or no packet */
	CONST2, /* MTC */
	CONST3, /* TIP, TIP.PGE, TIP.PGD, FUP with 2, 4, 6 or 8 bytes of IP */
	CONST5,
	CONST7,
	CONST9,
	CYC,
	MODE,
	ESCAPE,
	TRIG,
	ROWS
};

#define EVERY(f, b)   f(b), f((b) + 1), f((b) + 2), f((b) + 3)
#define EVERY16(f, b) EVERY(f, b), EVERY(f, (b) + 4), EVERY(f, (b) + 8), EVERY(f, (b) + 12)
#define EVERY64(f, b) \
	EVERY16(f, b), EVERY16(f, (b) + 16), EVERY16(f, (b) + 32), EVERY16(f, (b) + 48)
#define ALL(f) EVERY64(f, 0), EVERY64(f, 64), EVERY64(f, 128), EVERY64(f, 192)

/* TNT-8 and PAD (33.4.2.1, 33.4.2.20), and CYC without EXP (33.4.2.14) */
#define IS_ONE(b) ((!((b)&1) && (b) != VMPT_PT_ESCAPE) || ((b)&7) == 3)
#define IS_IP(b) \
	(((b)&0x1f) == 0x0d || ((b)&0x1f) == 0x11 || ((b)&0x1f) == 0x01 || ((b)&0x1f) == 0x1d)

/* IPBytes, Table 33-18 */
#define IP_ROW(n)                        \
	((n) == 0		? ONE    \
	 : (n) == 1		? CONST3 \
	 : (n) == 2		? CONST5 \
	 : (n) == 3 || (n) == 4 ? CONST7 \
	 : (n) == 6		? CONST9 \
				: SLOW)
#define ROW(b)                                             \
	(256 * (IS_ONE(b)		? ONE              \
		: IS_IP(b)		? IP_ROW((b) >> 5) \
		: (b) == 0x59		? CONST2           \
		: ((b)&7) == 7		? CYC              \
		: (b) == 0x99		? MODE             \
		: (b) == VMPT_PT_ESCAPE ? ESCAPE           \
		: (b) == 0xd9		? TRIG             \
					: SLOW))

const u16 vmpt_tsc_row[256] = { ALL(ROW) };

/* The second of two packets. */
#define IP_SECOND(n) \
	((n) == 0 ? 1 : (n) == 1 ? 3 : (n) == 2 ? 5 : (n) == 3 || (n) == 4 ? 7 : (n) == 6 ? 9 : 0)
#define SECOND(b) (IS_ONE(b) ? 1 : IS_IP(b) ? IP_SECOND((b) >> 5) : (b) == 0x59 ? 2 : 0)

/* One packet of @n bytes; 0: none. */
#define P(n) ((n) | ((n) ? VMPT_TSC_PACKET : 0))

#define OF_ONE(b) (P(1) + P(SECOND(b)))
#define NONE(b)	  0
#define SIZE2(b)  P(2)
#define SIZE3(b)  P(3)
#define SIZE5(b)  P(5)
#define SIZE7(b)  P(7)
#define SIZE9(b)  P(9)
#define OF_CYC(b) ((b)&1 ? 0 : P(2))
/* Leaf 0 or 1 (33.4.2.8) */
#define OF_MODE(b) ((b)&0xc0 ? 0 : P(2))
/*
 * TNT-64, PIP, TraceStop, CBR, VMCS, OVF, PSBEND; PTW of 4 and of 8 bytes, EXSTOP; MWAIT, PWRE,
 * PWRX; BEP, CFE, EVD. Not here: TMA, PSB, MNT, BBP
 */
#define ESCAPED(b)                                        \
	((b) == 0xa3 || (b) == 0x43		     ? 8  \
	 : (b) == 0x83 || (b) == 0xf3 || (b) == 0x23 ? 2  \
	 : (b) == 0x03				     ? 4  \
	 : (b) == 0xc8				     ? 7  \
	 : ((b)&0x7f) == 0x12			     ? 6  \
	 : ((b)&0x7f) == 0x32			     ? 10 \
	 : ((b)&0x7f) == 0x62 || ((b)&0x7f) == 0x33  ? 2  \
	 : (b) == 0xc2				     ? 10 \
	 : (b) == 0x22				     ? 4  \
	 : (b) == 0xa2				     ? 7  \
	 : (b) == 0x13				     ? 4  \
	 : (b) == 0x53				     ? 11 \
						     : 0)

#define OF_ESCAPE(b) P(ESCAPED(b))
/* ICNTV: see the packet's row in arch/pt-packet-table.c */
#define OF_TRIG(b) ((b)&0x40 ? P(5) : P(3))

/* In the order of enum row. */
const u8 vmpt_tsc_step[ROWS * 256] = {
	ALL(OF_ONE), ALL(NONE),	  ALL(SIZE2),	ALL(SIZE3),	ALL(SIZE5),   ALL(SIZE7),
	ALL(SIZE9),  ALL(OF_CYC), ALL(OF_MODE), ALL(OF_ESCAPE), ALL(OF_TRIG),
};
