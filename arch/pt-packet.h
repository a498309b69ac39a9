/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Packets of Intel PT (SDM 3 33.4.2): one table describes every kind; encoding, decoding and
 * printing a packet follow from it, and so do the decoder's fast tables. Freestanding: no
 * allocation, no libc beyond memcpy, no state.
 *
 * Rules:
 * - bits shown as reserved are ignored by decode and written 0 by encode
 *   (33.4.2: they "are not guaranteed to be 0");
 * - a reserved encoding that leaves the length unknown is an error;
 * - a reserved value in a packet of known length is decoded as it stands and
 *   flagged VMPT_PT_RESERVED;
 * - TRIG is newer than this manual and second-hand, see its row in the table;
 * - a header byte whose low three bits are 100b is a BIP inside a packet block
 *   and a short TNT outside (33.4.1.1): the caller carries the block context.
 */
#ifndef VMPT_ARCH_PT_PACKET_H
#define VMPT_ARCH_PT_PACKET_H

#include "arch/error.h"
#include "arch/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds with a one-byte header first, then those after the escape byte 02H. */
enum vmpt_pt_kind {
	VMPT_PT_PAD,
	VMPT_PT_BIP,
	VMPT_PT_TNT_8,
	VMPT_PT_TIP,
	VMPT_PT_TIP_PGE,
	VMPT_PT_TIP_PGD,
	VMPT_PT_FUP,
	VMPT_PT_CYC,
	VMPT_PT_MTC,
	VMPT_PT_TSC,
	VMPT_PT_MODE_EXEC,
	VMPT_PT_MODE_TSX,
	VMPT_PT_TRIG,
	/* 02H … */
	VMPT_PT_TNT_64,
	VMPT_PT_PIP,
	VMPT_PT_TRACESTOP,
	VMPT_PT_CBR,
	VMPT_PT_TMA,
	VMPT_PT_VMCS,
	VMPT_PT_OVF,
	VMPT_PT_PSB,
	VMPT_PT_PSBEND,
	VMPT_PT_MNT,
	VMPT_PT_PTW,
	VMPT_PT_EXSTOP,
	VMPT_PT_MWAIT,
	VMPT_PT_PWRE,
	VMPT_PT_PWRX,
	VMPT_PT_BBP,
	VMPT_PT_BEP,
	VMPT_PT_CFE,
	VMPT_PT_EVD,
	VMPT_PT_KINDS
};

/* The first kind whose header begins with the escape byte, and that byte. */
#define VMPT_PT_FIRST_ESCAPED VMPT_PT_TNT_64
#define VMPT_PT_ESCAPE	      0x02
/* The longest packet: PSB. A CYC of 64 bits has 10 bytes. */
#define VMPT_PT_SIZE_MAX 16
#define VMPT_PT_CYC_MAX	 10
/* Most fields of a packet. */
#define VMPT_PT_VALUES 5
/* All ones on the wire: no current VMCS (33.4.2.15). */
#define VMPT_PT_VMCS_NONE 0xffffffffff000ULL

/* Flags of a decoded packet */
#define VMPT_PT_RESERVED 0x01 /* holds a reserved value, decoded as it stands */

/* CFE types (Table 33-50) */
enum vmpt_pt_cfe {
	VMPT_CFE_INTR = 0x01,
	VMPT_CFE_IRET = 0x02,
	VMPT_CFE_SMI = 0x03,
	VMPT_CFE_RSM = 0x04,
	VMPT_CFE_SIPI = 0x05,
	VMPT_CFE_INIT = 0x06,
	VMPT_CFE_VMENTRY = 0x07,
	VMPT_CFE_VMEXIT = 0x08,
	VMPT_CFE_VMEXIT_INTR = 0x09,
	VMPT_CFE_SHUTDOWN = 0x0a,
	VMPT_CFE_UINTR = 0x0c,
	VMPT_CFE_UIRET = 0x0d,
};

/* EVD types (Table 33-51) */
enum vmpt_pt_evd {
	VMPT_EVD_PFA = 0,
	VMPT_EVD_VMXQ = 1,
	VMPT_EVD_VMXR = 2,
};

/*
 * One decoded packet. @kind selects the member of the union; the members have the manual's names.
 * @val has the same values in the order of the table's fields.
 */
struct vmpt_pt_packet {
	u8 kind;  /* enum vmpt_pt_kind */
	u8 size;  /* bytes on the wire, set by decode and encode */
	u8 flags; /* VMPT_PT_RESERVED */
	union {
		u64 val[VMPT_PT_VALUES];
		/* Bit count - 1 of bits is the oldest branch; count is 1 to 6 or 1 to 47. */
		struct {
			u64 bits, count;
		} tnt;
		/* TIP, TIP.PGE, TIP.PGD, FUP: ip is the payload as sent, not rebuilt. */
		struct {
			u64 ipbytes, ip;
		} ip;
		struct {
			u64 cr3, nr;
		} pip; /* cr3: bits 51:5 in place */
		struct {
			u64 cs_l, cs_d, rflags_if;
		} exec;
		struct {
			u64 intx, txabort;
		} tsx;
		struct {
			u64 ratio;
		} cbr;
		struct {
			u64 tsc;
		} tsc; /* 56 bits */
		struct {
			u64 ctc;
		} mtc;
		struct {
			u64 ctc, fast_counter;
		} tma; /* 16 and 9 bits */
		struct {
			u64 cycles;
		} cyc;
		struct {
			u64 pointer;
		} vmcs; /* bits 51:12 in place */
		struct {
			u64 payload;
		} mnt;
		struct {
			u64 payload_bytes, ip, payload;
		} ptw; /* payload_bytes: 0 = 4 bytes, 1 = 8 */
		struct {
			u64 ip;
		} exstop;
		struct {
			u64 hints, ext;
		} mwait;
		struct {
			u64 hw, state, sub_state;
		} pwre;
		struct {
			u64 last, deepest, wake_reason;
		} pwrx;
		struct {
			u64 sz, type;
		} bbp; /* sz: 0 = 8-byte items, 1 = 4 */
		struct {
			u64 id, payload;
		} bip;
		struct {
			u64 ip;
		} bep;
		struct {
			u64 ip, type, vector;
		} cfe;
		struct {
			u64 type, payload;
		} evd;
		/* ip: a FUP follows; mult: more triggers fired; icnt: only with icntv. */
		struct {
			u64 ip, icntv, mult, trbv, icnt;
		} trig;
	};
};

/* How a kind's length is found. */
enum vmpt_pt_size_rule {
	VMPT_PT_SIZE_FIXED,
	VMPT_PT_SIZE_IP,   /* 1 + what IPBytes says (Table 33-18) */
	VMPT_PT_SIZE_PTW,  /* 2 + 4 or 8 (Table 33-40) */
	VMPT_PT_SIZE_CYC,  /* continues while EXP is 1 (Table 33-33) */
	VMPT_PT_SIZE_BIP,  /* 1 + 4 or 8, by the BBP (Table 33-46) */
	VMPT_PT_SIZE_TRIG, /* 3, with ICNTV 5 */
};

/* How a field's bits become its value. */
enum vmpt_pt_coding {
	VMPT_PT_PLAIN,
	VMPT_PT_STOP_BIT, /* TNT: the bits below the highest one bit */
	VMPT_PT_COUNT,	  /* TNT: the number of those bits; not printed */
	VMPT_PT_IP,	  /* as many bytes as IPBytes says */
	VMPT_PT_CYCLES,	  /* 5 bits, then 7 per byte */
	VMPT_PT_ITEM,	  /* 0, 2, 4 or 8 bytes, as the packet's size says */
};

/* How a field is printed. */
enum vmpt_pt_format {
	VMPT_PT_HEX,
	VMPT_PT_DEC,
	VMPT_PT_FLAG,	/* its name when it is 1 */
	VMPT_PT_BINARY, /* IPBytes: 011b */
	VMPT_PT_TAKEN,	/* TNT: T and N, the oldest first */
	VMPT_PT_NAMED,	/* hex, and the value's name in the manual if it has one */
};

/* A field of a packet: where its bits are, how they are read and printed. */
struct vmpt_pt_field {
	const char *name;
	u8 bit;	   /* lowest bit, counted from bit 0 of byte 0 */
	u8 width;  /* bits on the wire; for VMPT_PT_IP and _ITEM the largest */
	u8 shift;  /* value = bits << shift */
	u8 coding; /* enum vmpt_pt_coding */
	u8 format; /* enum vmpt_pt_format */
};

/* Classes of packets. */
#define VMPT_PT_TIMING	   0x01 /* TSC, TMA, MTC, CYC, CBR: may stand anywhere (33.4.1) */
#define VMPT_PT_ENDS_BLOCK 0x02 /* Table 33-15, and OVF and BEP */
#define VMPT_PT_IN_PSB	   0x04 /* may stand between PSB and PSBEND (33.3.7) */
#define VMPT_PT_GROUP	   0x08 /* PIP, VMCS, MODE.Exec: middle packets of Table 33-14 */
#define VMPT_PT_HAS_IP	   0x10 /* an IP payload: TIP, TIP.PGE, TIP.PGD, FUP */
#define VMPT_PT_TIME_BREAK 0x20 /* where time may stop, go on again or be lost: tracing, sleep */

/* A kind of packet: a row of vmpt_pt_table. */
struct vmpt_pt_desc {
	const char *name;  /* as in the manual: "TIP.PGE" */
	const char *title; /* "Packet Generation Enable" */
	u8 header[3], mask[3];
	u8 header_size; /* bytes of header[] that count */
	u8 size_rule;	/* enum vmpt_pt_size_rule */
	u8 size;	/* bytes if fixed, else the minimum */
	u8 classes;	/* VMPT_PT_TIMING … */
	u8 fields;
	struct vmpt_pt_field field[VMPT_PT_VALUES];
	const char *table; /* of the manual: "33-20"; NULL: not in this version of it */
};

/* The table itself, by enum vmpt_pt_kind. */
extern const struct vmpt_pt_desc vmpt_pt_table[VMPT_PT_KINDS];

/* The name of a kind, "?" if there is none. Static memory. */
#pragma GCC visibility push(default)
const char *vmpt_pt_name(unsigned int kind);
#pragma GCC visibility pop

/* The name of a CFE, EVD, BBP type or of a BIP item; NULL if reserved. Tables 33-45, 33-47, 33-50,
 * 33-51 */
const char *vmpt_pt_value_name(const struct vmpt_pt_packet *pkt, unsigned int bbp_type);

/*
 * Block context (33.4.1.1): 0 outside a packet block, inside it the BBP's size and type. The caller
 * keeps it from packet to packet.
 */
#define VMPT_PT_BLOCK(sz, type) (0x40u | ((sz)&1u) << 5 | ((type)&0x1fu))

/* The BBP's type in a block context, 0 to 31. */
static inline unsigned int vmpt_pt_block_type(unsigned int block)
{
	return block & 0x1f;
}

/* Payload bytes of the block's items: 4 or 8. */
static inline unsigned int vmpt_pt_block_item_size(unsigned int block)
{
	return block & 0x20 ? 4 : 8;
}

/*
 * Decode the packet at @buf, of which @len bytes may be read. @block: the block context. Returns 0
 * and fills @pkt, or -VMPT_E_TRUNCATED, _OPCODE, _IPBYTES, _PTW_SIZE, _MODE_LEAF, _PSB, _CYC; @pkt
 * is then undefined. Reads at most VMPT_PT_SIZE_MAX bytes.
 */
int vmpt_pt_decode(struct vmpt_pt_packet *pkt, const u8 *buf, size_t len, unsigned int block);

/* The block context after @pkt; @block is the one before it. */
unsigned int vmpt_pt_block_after(const struct vmpt_pt_packet *pkt, unsigned int block);

/*
 * Write @pkt to @buf of @len bytes. Kind and values are read, size is set.
 * @block as for decode, needed for BIP only.
 * Returns the size in bytes, -VMPT_E_INVAL if a value does not fit its field or
 * is a reserved encoding, -VMPT_E_SPACE if @len is too small.
 */
int vmpt_pt_encode(struct vmpt_pt_packet *pkt, u8 *buf, size_t len, unsigned int block);

/*
 * Print @pkt as text, "PIP cr3=0x1628b000 nr", NUL-terminated and truncated to @len. Returns the
 * length it needs without the NUL.
 */
#pragma GCC visibility push(default)
size_t vmpt_pt_print(const struct vmpt_pt_packet *pkt, char *buf, size_t len);
#pragma GCC visibility pop

/*
 * Print what is wrong at @bytes, of which @n can be read, with the bytes themselves: "unknown
 * opcode 02 7f", "reserved IPBytes 101b in ad (TIP)". @err is what vmpt_pt_decode() returned.
 * Truncated and terminated as above.
 */
size_t vmpt_pt_print_error(int err, const u8 *bytes, size_t n, char *buf, size_t len);

/* Payload bytes of IPBytes 0 to 7 (Table 33-18); 255 for the reserved 101b and 111b. */
unsigned int vmpt_pt_ip_size(unsigned int ipbytes);

/*
 * Rebuild the full IP of a packet from Last IP (Table 33-18). With IPBytes 000b the IP is out of
 * context and Last IP is returned unchanged.
 */
u64 vmpt_pt_ip_expand(u64 last_ip, unsigned int ipbytes, u64 payload);

/* The IPBytes with the fewest bytes from which @ip can be rebuilt with @last_ip. */
unsigned int vmpt_pt_ip_compress(u64 last_ip, u64 ip);

/* The IPBytes for @ip without Last IP: 011b if sign extension yields it, else 110b. */
unsigned int vmpt_pt_ip_full(u64 ip);

/* IP payload bits of @ip under @ipbytes, ready for vmpt_pt_encode(). */
u64 vmpt_pt_ip_payload(u64 ip, unsigned int ipbytes);

#ifdef __cplusplus
}
#endif

#endif
