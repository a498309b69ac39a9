/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the lookup tables of the fast loops, keyed by the first two
 * bytes of a packet and made from vmpt_pt_table at build time (fast-table-gen.c). One
 * lookup replaces all branches on the packet's kind.
 */
#ifndef VMPT_DECODER_FAST_TABLE_H
#define VMPT_DECODER_FAST_TABLE_H

#include "decoder/pt/source.h"

/* Bytes that must be readable after a packet's end. */
#define VMPT_FAST_GUARD 64

/*
 * For the index. An entry is the number of bytes to advance, with VMPT_STEP_TOKEN if stage 2
 * must process the packet at the key, or 0 if two bytes do not determine the length.
 * If the first packet has one byte, the second's length follows from its first byte
 * and the second is no token, the entry steps over both.
 */
#define VMPT_STEP_TOKEN 0x80
#define VMPT_STEP_SIZE	0x1f

/* Keys of vmpt_index_table.kind: the first byte, or after 02H 256 + the second. */
#define VMPT_KIND_KEYS 512
#define VMPT_KIND_NONE VMPT_PT_KINDS
/*
 * With a kind: no token; and two bytes are not all of the header. A branch on the kind would often
 * be mispredicted: stage 2 lists such packets, and checks them every VMPT_CHECK_EVERY tokens.
 */
#define VMPT_KIND_SILENT 0x40
#define VMPT_KIND_LONG	 0x80
#define VMPT_CHECK_EVERY 64

struct vmpt_index_table {
	u8 step[65536];		 /* by vmpt_load16() */
	u8 kind[VMPT_KIND_KEYS]; /* enum vmpt_pt_kind, VMPT_KIND_*; for MODE the kind of leaf 0 */
};

static inline unsigned int vmpt_kind_key(const u8 *p)
{
	return p[0] == VMPT_PT_ESCAPE ? 256u + p[1] : p[0];
}

/*
 * How to make a packet's item without a branch (packets.c). With 8 bytes of the packet, the
 * payload is ((bytes & mask) + (bytes & twice)) >> shift, sign-extended, and bits of Last IP.
 */
struct vmpt_row {
	u64 mask, twice;
	u64 sign; /* the payload's sign bit; 0: it has none */
	u64 keep; /* payload bits from Last IP */
	u64 meta; /* the item's second half: size, kind, aux */
	u8 from;  /* first of the 8 bytes in the packet */
	u8 shift;
	u8 size;    /* 0: one of the first rows below */
	bool is_ip; /* the payload becomes Last IP */
	bool token; /* it makes a token */
	u8 rare;    /* VMPT_RARE_* */
	bool plain; /* neither an IP, a token nor rare */
	u8 pad[17];
};

/* It has no size, or no such payload. A CYC of one or two bytes: only these use twice and shift. */
#define VMPT_RARE_KIND 1
#define VMPT_RARE_CYC  2

/* Rows without a packet of a size known to the table, or that need more than a row has */
#define VMPT_ROW_RUN  0 /* TNT-8 and PAD: nothing is stored */
#define VMPT_ROW_LOSS 1 /* followed by the bytes and the error */
#define VMPT_ROW_CYC  2 /* a CYC of three bytes or more */
#define VMPT_ROW_EVD  3 /* its aux is after the two bytes */
/* BIP by its ID; like CYC and EVD it has more than two bytes */
#define VMPT_ROW_BIP4	 4
#define VMPT_ROW_BIP8	 36
#define VMPT_ROW_DYNAMIC 68
#define VMPT_ROWS	 160

/*
 * For items. An entry is the row << 8, VMPT_STEP_TOKEN unless the row is
 * VMPT_ROW_RUN, and the bytes to advance, or 0. Here no step goes over two packets.
 */
struct vmpt_packet_table {
	u16 step[65536]; /* by vmpt_packet_key() */
	struct vmpt_row rows[VMPT_ROWS] __attribute__((aligned(64)));
};

/* The first byte is the high one: the entries of one kind share few cache lines. */
static inline unsigned int vmpt_packet_key(const u8 *p)
{
	return __builtin_bswap16(vmpt_load16(p));
}

extern const struct vmpt_index_table vmpt_index_table;
extern const struct vmpt_packet_table vmpt_packet_table;
/* vmpt_packet_table.step for vmpt_source_time_only(): other packets are skipped like runs. */
extern const u16 vmpt_time_steps[65536];

/* Fill the tables. For fast-table-gen.c only. */
void vmpt_index_table_init(struct vmpt_index_table *table);
void vmpt_packet_table_init(struct vmpt_packet_table *table);
void vmpt_time_steps_init(u16 *steps, const struct vmpt_packet_table *table);

/* Whether the rest of the header of the packet at @p is wrong: a PSB's, or an MNT's. */
static inline bool vmpt_header_wrong(const u8 *p)
{
	u64 want = 0x8202820282028202ULL;

	if (__builtin_expect(p[1] == vmpt_pt_table[VMPT_PT_PSB].header[1], 1))
		return (vmpt_load64(p) ^ want) | (vmpt_load64(p + 8) ^ want);
	return p[2] != vmpt_pt_table[VMPT_PT_MNT].header[2];
}

/* The number of the first @n @tokens, whose losses have two words, that are before @offset. */
static inline size_t vmpt_tokens_before(const u64 *tokens, size_t n, u64 offset)
{
	size_t i = 0;

	while (i < n && vmpt_token_offset(tokens[i]) < offset)
		i += vmpt_token_kind(tokens[i]) == VMPT_TOKEN_LOSS ? 2 : 1;
	return i;
}

#endif
