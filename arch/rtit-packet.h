/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Packets of RTIT, the Real Time Instruction Trace of the 2013-15 Atoms (RTIT Programming
 * Reference, March 2015, chapter 4): one table describes every kind; encoding, decoding and
 * printing a packet follow from it. Freestanding, no state.
 *
 * Rules:
 * - In cycle accurate mode (RTIT_CTL.Cycle_Acc) a cycle count of 1 to 3 bytes follows full TNTs,
 *   TIPs, FUPs, PIPs, MTCs and STSs (4.2.15): it is part of the packet here. The bytes do not show
 *   the mode: the caller passes it.
 * - Reserved headers and encodings leave the length unknown: an error (Figure 2).
 * - A LIP has 48 bits; Table 18 says how it is rebuilt.
 */
#ifndef VMPT_ARCH_RTIT_PACKET_H
#define VMPT_ARCH_RTIT_PACKET_H

#include "arch/error.h"
#include "arch/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of Figure 2. */
enum vmpt_rtit_kind {
	VMPT_RTIT_TNT,
	VMPT_RTIT_PGE,
	VMPT_RTIT_PGD,
	VMPT_RTIT_BUFF_OVF,
	VMPT_RTIT_PCC,
	VMPT_RTIT_TIP,
	VMPT_RTIT_FAR,
	VMPT_RTIT_PSB,
	VMPT_RTIT_TRACESTOP,
	VMPT_RTIT_PIP,
	VMPT_RTIT_MTC,
	VMPT_RTIT_STS,
	VMPT_RTIT_KINDS
};

#define VMPT_RTIT_VALUES    3	      /* most fields of a packet */
#define VMPT_RTIT_PSB_SIZE  9	      /* bytes of a PSB (4.2.1) */
#define VMPT_RTIT_TNT_FULL  6	      /* branches of a full TNT (4.2.2) */
#define VMPT_RTIT_CYCLE_MAX 0x3fffffu /* RTIT_CNTP has 22 bits */
/* The longest packet: a TIP, FUP or STS of 7 bytes with 3 bytes of cycles; a PSB has 9. */
#define VMPT_RTIT_SIZE_MAX 10
#define VMPT_RTIT_LIP_BITS 48 /* bits of a LIP (4.2.3.1) */
#define VMPT_RTIT_ERRATA   7  /* of Appendix E, numbered from 1 */

/* Flags of a decoded packet */
#define VMPT_RTIT_CYCLES 0x01 /* a cycle count follows it */

/* One decoded packet; members are named as in the manual. */
struct vmpt_rtit_packet {
	u8 kind; /* enum vmpt_rtit_kind */
	u8 size; /* bytes with the cycle count, set by decode and encode */
	u8 flags;
	u32 cycles; /* RTIT_CNTP, 22 bits; if VMPT_RTIT_CYCLES */
	union {
		u64 val[VMPT_RTIT_VALUES];
		/* Bit count - 1 of bits is the oldest branch; count is 1 to 6. */
		struct {
			u64 bits, count;
		} tnt;
		/* TIP and FUPs: lip is the payload as sent, of 2, 4 or 6 bytes for cnt 0 to 2. */
		struct {
			u64 cnt, zext, lip;
		} ip;
		struct {
			u64 pg, cr3;
		} pip; /* CR0.PG; CR3[39:0] */
		struct {
			u64 rng, tsc;
		} mtc;
		struct {
			u64 acbr, ecbr, tsc;
		} sts; /* actual and effective core/bus ratio; hardware TSC[39:0] */
	};
};

/* How a field's bits become its value. */
enum vmpt_rtit_coding {
	VMPT_RTIT_PLAIN,
	VMPT_RTIT_STOP_BIT, /* TNT: the bits below the highest one bit */
	VMPT_RTIT_COUNT,    /* TNT: the number of those bits; not printed */
	VMPT_RTIT_LIP,	    /* as many bytes as CNT says */
	VMPT_RTIT_ACBR,	    /* bits 5:2 in byte 0, 1:0 in bits 7:6 of byte 1 */
};

/* How a field is printed. */
enum vmpt_rtit_format {
	VMPT_RTIT_HEX,
	VMPT_RTIT_DEC,
	VMPT_RTIT_FLAG,	 /* its name when it is 1 */
	VMPT_RTIT_TAKEN, /* T and N, the oldest first */
};

/* A field of a packet: where its bits are, how they are read and printed. */
struct vmpt_rtit_field {
	const char *name;
	u8 bit;	  /* lowest bit, counted from bit 0 of byte 0 */
	u8 width; /* bits on the wire */
	u8 coding, format;
};

/* Classes of packets. */
#define VMPT_RTIT_HAS_LIP 0x01
#define VMPT_RTIT_CYCLED  0x02 /* a cycle count follows in cycle accurate mode (4.2.15) */
#define VMPT_RTIT_TIMING  0x04 /* MTC, STS */

/* A kind of packet: a row of vmpt_rtit_table. */
struct vmpt_rtit_desc {
	const char *name;  /* as in the manual: "FUP.PGE" */
	const char *title; /* "Packet Generation Enable" */
	u8 header, mask;
	u8 size; /* bytes without the cycle count; with a LIP: without it */
	u8 classes;
	u8 fields;
	struct vmpt_rtit_field field[VMPT_RTIT_VALUES];
	const char *section; /* of the manual */
};

/* The table itself, by enum vmpt_rtit_kind. */
extern const struct vmpt_rtit_desc vmpt_rtit_table[VMPT_RTIT_KINDS];

/* The name of a kind, "?" if there is none. Static memory. */
#pragma GCC visibility push(default)
const char *vmpt_rtit_name(unsigned int kind);
#pragma GCC visibility pop

/*
 * Decode the packet at @buf, of which @len bytes may be read. @cycle_acc: RTIT_CTL.Cycle_Acc was
 * 1. 0 and @pkt, or -VMPT_E_TRUNCATED, -VMPT_E_OPCODE (reserved headers, TNT without a branch),
 * -VMPT_E_IPBYTES (CNT 11b), -VMPT_E_PSB, -VMPT_E_CCNT (CCNT 00b). @pkt is then undefined.
 */
int vmpt_rtit_decode(struct vmpt_rtit_packet *pkt, const u8 *buf, size_t len, bool cycle_acc);

/*
 * Write @pkt to @buf of @len bytes; kind, flags and values are read, size is set. Returns the size,
 * -VMPT_E_INVAL if a value does not fit its field or the packet cannot have cycles, -VMPT_E_SPACE.
 */
int vmpt_rtit_encode(struct vmpt_rtit_packet *pkt, u8 *buf, size_t len);

/*
 * Print as text, "TIP cnt=1 zext lip=0x401000 +12"; truncated to @len, NUL-terminated. Returns the
 * length needed without the NUL.
 */
#pragma GCC visibility push(default)
size_t vmpt_rtit_print(const struct vmpt_rtit_packet *pkt, char *buf, size_t len);
#pragma GCC visibility pop

/* ---- parts of packets ---- */

/* Bytes of a LIP for CNT 0 to 2 (Table 18). */
static inline unsigned int vmpt_rtit_lip_size(unsigned int cnt)
{
	return 2 + 2 * cnt;
}

/* Store the @n low bytes of @v, little-endian like all fields of RTIT. */
static inline void vmpt_rtit_put_bytes(u8 *to, u64 v, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		to[i] = (u8)(v >> 8 * i);
}

/* Bytes of a cycle count (4.2.14). */
static inline unsigned int vmpt_rtit_cycle_size(u32 cycles)
{
	return !(cycles >> 6) ? 1 : !(cycles >> 14) ? 2 : 3;
}

/* Store a cycle count of 22 bits at @to, where 3 bytes may be written; returns its size. */
static inline unsigned int vmpt_rtit_put_cycles(u8 *to, u32 cycles)
{
	unsigned int n = vmpt_rtit_cycle_size(cycles);

	vmpt_rtit_put_bytes(to, (u64)cycles << 2 | n, 3);
	return n;
}

/* ---- LIP compression (4.2.3.1, Table 18) ---- */

/* RTIT_LAST_LIP, which does not keep the low 16 bits of the LIP (Table 9). */
struct vmpt_rtit_last_lip {
	u64 lip; /* only bits 47:16 matter */
	bool valid;
};

/* Set @pkt's cnt, zext and lip for @lip, and @last to @lip. */
void vmpt_rtit_lip_compress(struct vmpt_rtit_last_lip *last, u64 lip, struct vmpt_rtit_packet *pkt);

/*
 * Set *lip and @last to the LIP of @pkt, a packet that has one. False: it needs bits of Last LIP,
 * which is not valid; *lip then has the bits that were sent, and @last is unchanged.
 */
bool vmpt_rtit_lip_expand(struct vmpt_rtit_last_lip *last, const struct vmpt_rtit_packet *pkt,
			  u64 *lip);

#ifdef __cplusplus
}
#endif

#endif
