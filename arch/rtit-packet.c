// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Packets of RTIT: the table (Figure 2, 4.2), decode, encode, print, LIP compression (Table 18). */
#include "arch/rtit-packet.h"
#include "arch/text.h"

#define F(n, b, w, cod, fmt)                                                      \
	{                                                                         \
		.name = (n), .bit = (b), .width = (w), .coding = VMPT_RTIT_##cod, \
		.format = VMPT_RTIT_##fmt,                                        \
	}

/* TIP and the FUPs differ in the event, bits 5:3. */
#define LIP_PACKET(n, t, event, sec)                                                               \
	{                                                                                          \
		.name = (n), .title = (t), .header = 0x80 | (event) << 3, .mask = 0xf8, .size = 1, \
		.classes = VMPT_RTIT_HAS_LIP | VMPT_RTIT_CYCLED, .fields = 3,                      \
		.field = { F("cnt", 0, 2, PLAIN, DEC), F("zext", 2, 1, PLAIN, FLAG),               \
			   F("lip", 8, 48, LIP, HEX) },                                            \
		.section = (sec)                                                                   \
	}

const struct vmpt_rtit_desc vmpt_rtit_table[VMPT_RTIT_KINDS] = {
	[VMPT_RTIT_TNT] = {
		.name = "TNT", .title = "Taken Not Taken", .section = "4.2.2",
		.header = 0x00, .mask = 0x80, .size = 1, .fields = 2,
		.field = { F("bits", 0, 7, STOP_BIT, TAKEN), F("count", 0, 7, COUNT, DEC) },
	},
	[VMPT_RTIT_PGE] = LIP_PACKET("FUP.PGE", "Packet Generation Enable", 0, "4.2.7"),
	[VMPT_RTIT_PGD] = LIP_PACKET("FUP.PGD", "Packet Generation Disable", 1, "4.2.8"),
	[VMPT_RTIT_BUFF_OVF] = LIP_PACKET("FUP.BuffOvf", "Buffer Overflow", 2, "4.2.5"),
	[VMPT_RTIT_PCC] = LIP_PACKET("FUP.PCC", "Periodic Cycle Count", 3, "4.2.6"),
	[VMPT_RTIT_TIP] = LIP_PACKET("TIP", "Target IP", 6, "4.2.3"),
	[VMPT_RTIT_FAR] = LIP_PACKET("FUP.Far", "Far Transfer", 7, "4.2.9"),
	[VMPT_RTIT_PSB] = {
		.name = "PSB", .title = "Packet Stream Boundary", .section = "4.2.1",
		.header = 0xc0, .mask = 0xff, .size = VMPT_RTIT_PSB_SIZE,
	},
	[VMPT_RTIT_TRACESTOP] = {
		.name = "TraceSTOP", .title = "Trace Stop", .section = "4.2.11",
		.header = 0xc1, .mask = 0xff, .size = 1,
	},
	[VMPT_RTIT_PIP] = {
		.name = "PIP", .title = "Paging Information", .section = "4.2.10",
		.header = 0xc2, .mask = 0xfe, .size = 6, .classes = VMPT_RTIT_CYCLED,
		.fields = 2,
		.field = { F("pg", 0, 1, PLAIN, FLAG), F("cr3", 8, 40, PLAIN, HEX) },
	},
	[VMPT_RTIT_MTC] = {
		.name = "MTC", .title = "Mini Time Counter", .section = "4.2.12",
		.header = 0xc4, .mask = 0xfc, .size = 2,
		.classes = VMPT_RTIT_CYCLED | VMPT_RTIT_TIMING, .fields = 2,
		.field = { F("rng", 0, 2, PLAIN, DEC), F("tsc", 8, 8, PLAIN, HEX) },
	},
	[VMPT_RTIT_STS] = {
		.name = "STS", .title = "Super Time Sync", .section = "4.2.13",
		.header = 0xd0, .mask = 0xf0, .size = 7,
		.classes = VMPT_RTIT_CYCLED | VMPT_RTIT_TIMING, .fields = 3,
		.field = { F("acbr", 0, 6, ACBR, DEC), F("ecbr", 8, 6, PLAIN, DEC),
			   F("tsc", 16, 40, PLAIN, HEX) },
	},
};

const char *vmpt_rtit_name(unsigned int kind)
{
	return kind < VMPT_RTIT_KINDS ? vmpt_rtit_table[kind].name : "?";
}

/* ---- decode ---- */

/* Little-endian, of @n bytes that may be read; bytes after the first 8 are ignored. */
static inline u64 load(const u8 *p, size_t n)
{
	u64 v = 0;
	size_t i;

	if (n >= 8) {
		memcpy(&v, p, 8);
		return v;
	}
	for (i = 0; i < n; i++)
		v |= (u64)p[i] << 8 * i;
	return v;
}

#define NO_KIND VMPT_RTIT_KINDS

/*
 * The kind of each header: the inverse of vmpt_rtit_table's headers and masks. A TNT whose leading
 * one is bit 0 has no branch and is invalid.
 */
static const u8 kinds[256] = {
	[0x00 ... 0x01] = NO_KIND,
	[0x02 ... 0x7f] = VMPT_RTIT_TNT,
	[0x80 ... 0x87] = VMPT_RTIT_PGE,
	[0x88 ... 0x8f] = VMPT_RTIT_PGD,
	[0x90 ... 0x97] = VMPT_RTIT_BUFF_OVF,
	[0x98 ... 0x9f] = VMPT_RTIT_PCC,
	[0xa0 ... 0xaf] = NO_KIND,
	[0xb0 ... 0xb7] = VMPT_RTIT_TIP,
	[0xb8 ... 0xbf] = VMPT_RTIT_FAR,
	[0xc0] = VMPT_RTIT_PSB,
	[0xc1] = VMPT_RTIT_TRACESTOP,
	[0xc2 ... 0xc3] = VMPT_RTIT_PIP,
	[0xc4 ... 0xc7] = VMPT_RTIT_MTC,
	[0xc8 ... 0xcf] = NO_KIND,
	[0xd0 ... 0xdf] = VMPT_RTIT_STS,
	[0xe0 ... 0xff] = NO_KIND,
};

/* A packet without its cycle count: its bytes, or an error. */

static inline int get_tnt(struct vmpt_rtit_packet *pkt, const u8 *buf)
{
	unsigned int top = 31 - (unsigned int)__builtin_clz(buf[0]);

	pkt->val[0] = buf[0] & ((1u << top) - 1);
	pkt->val[1] = top;
	pkt->val[2] = 0;
	return 1;
}

static inline int get_lip(struct vmpt_rtit_packet *pkt, const u8 *buf, size_t len)
{
	u64 raw = load(buf, len);
	unsigned int cnt = raw & 3, size = vmpt_rtit_lip_size(cnt);

	if (cnt == 3)
		return -VMPT_E_IPBYTES;
	if (size >= len)
		return -VMPT_E_TRUNCATED;
	pkt->val[0] = cnt;
	pkt->val[1] = raw >> 2 & 1;
	pkt->val[2] = raw >> 8 & ((1ULL << 8 * size) - 1);
	return (int)size + 1;
}

static bool psb_whole(const u8 *buf, size_t len)
{
	return len < VMPT_RTIT_PSB_SIZE ? !load(buf + 1, len - 1) : !load(buf + 1, 8);
}

static inline u64 get_field(const struct vmpt_rtit_field *f, u64 raw)
{
	if (f->coding == VMPT_RTIT_ACBR)
		return (raw & 0xf) << 2 | (raw >> 14 & 3);
	return raw >> f->bit & ((1ULL << f->width) - 1);
}

/* All others: by the table. */
static int get_other(struct vmpt_rtit_packet *pkt, const u8 *buf, size_t len)
{
	const struct vmpt_rtit_desc *d = &vmpt_rtit_table[pkt->kind];
	u64 raw = load(buf, len);
	unsigned int i;

	if (pkt->kind == VMPT_RTIT_PSB && !psb_whole(buf, len))
		return -VMPT_E_PSB;
	if (d->size > len)
		return -VMPT_E_TRUNCATED;
	pkt->val[0] = 0;
	pkt->val[1] = 0;
	pkt->val[2] = 0;
	for (i = 0; i < d->fields; i++)
		pkt->val[i] = get_field(&d->field[i], raw);
	return d->size;
}

/* Whether a cycle count follows @pkt in cycle accurate mode (4.2.15). */
static inline bool is_cycled(const struct vmpt_rtit_packet *pkt)
{
	if (pkt->kind == VMPT_RTIT_TNT)
		return pkt->tnt.count == VMPT_RTIT_TNT_FULL;
	return vmpt_rtit_table[pkt->kind].classes & VMPT_RTIT_CYCLED;
}

/* The cycle count at @buf: its bytes, or an error. */
static int get_cycles(const u8 *buf, size_t len, u32 *cycles)
{
	unsigned int n;

	if (!len)
		return -VMPT_E_TRUNCATED;
	n = buf[0] & 3;
	if (!n)
		return -VMPT_E_CCNT;
	if (len < n)
		return -VMPT_E_TRUNCATED;
	*cycles = buf[0] >> 2;
	if (n > 1)
		*cycles |= (u32)buf[1] << 6;
	if (n > 2)
		*cycles |= (u32)buf[2] << 14;
	return (int)n;
}

int vmpt_rtit_decode(struct vmpt_rtit_packet *pkt, const u8 *buf, size_t len, bool cycle_acc)
{
	int size, cycles;
	u8 kind;

	if (!len)
		return -VMPT_E_TRUNCATED;
	kind = kinds[buf[0]];
	if (kind == NO_KIND)
		return -VMPT_E_OPCODE;
	pkt->kind = kind;
	pkt->flags = 0;
	pkt->cycles = 0;
	if (kind == VMPT_RTIT_TNT)
		size = get_tnt(pkt, buf);
	else if (kind < VMPT_RTIT_PSB)
		size = get_lip(pkt, buf, len);
	else
		size = get_other(pkt, buf, len);
	if (size < 0)
		return size;
	if (cycle_acc && is_cycled(pkt)) {
		cycles = get_cycles(buf + size, len - (size_t)size, &pkt->cycles);
		if (cycles < 0)
			return cycles;
		size += cycles;
		pkt->flags = VMPT_RTIT_CYCLES;
	}
	pkt->size = (u8)size;
	return 0;
}

/* ---- encode ---- */

static bool fits(const struct vmpt_rtit_packet *pkt)
{
	const struct vmpt_rtit_desc *d = &vmpt_rtit_table[pkt->kind];
	unsigned int i;

	if (pkt->kind == VMPT_RTIT_TNT)
		return pkt->tnt.count && pkt->tnt.count <= VMPT_RTIT_TNT_FULL &&
		       !(pkt->tnt.bits >> pkt->tnt.count);
	for (i = 0; i < d->fields; i++)
		if (pkt->val[i] & ~vmpt_mask64(d->field[i].width))
			return false;
	if (d->classes & VMPT_RTIT_HAS_LIP)
		return pkt->ip.cnt < 3 &&
		       !(pkt->ip.lip &
			 ~vmpt_mask64(8 * vmpt_rtit_lip_size((unsigned int)pkt->ip.cnt)));
	return true;
}

/* The fields in their places. */
static u64 put_fields(const struct vmpt_rtit_desc *d, const u64 *val)
{
	u64 raw = d->header;
	unsigned int i;

	for (i = 0; i < d->fields; i++) {
		if (d->field[i].coding == VMPT_RTIT_ACBR)
			raw |= val[i] >> 2 | (val[i] & 3) << 14;
		else
			raw |= val[i] << d->field[i].bit;
	}
	return raw;
}

int vmpt_rtit_encode(struct vmpt_rtit_packet *pkt, u8 *buf, size_t len)
{
	const struct vmpt_rtit_desc *d;
	unsigned int i, size, cycles = 0;
	u64 raw;

	if (pkt->kind >= VMPT_RTIT_KINDS || !fits(pkt))
		return -VMPT_E_INVAL;
	d = &vmpt_rtit_table[pkt->kind];
	size = d->size;
	if (d->classes & VMPT_RTIT_HAS_LIP)
		size += vmpt_rtit_lip_size((unsigned int)pkt->ip.cnt);
	if (pkt->flags & VMPT_RTIT_CYCLES) {
		if (!is_cycled(pkt) || pkt->cycles > VMPT_RTIT_CYCLE_MAX)
			return -VMPT_E_INVAL;
		cycles = vmpt_rtit_cycle_size(pkt->cycles);
	}
	if (size + cycles > len)
		return -VMPT_E_SPACE;
	raw = pkt->kind == VMPT_RTIT_TNT ? 1u << pkt->tnt.count | pkt->tnt.bits
					 : put_fields(d, pkt->val);
	for (i = 0; i < size; i++)
		buf[i] = (u8)(i < 8 ? raw >> 8 * i : 0);
	if (cycles)
		vmpt_rtit_put_bytes(buf + size, (u64)pkt->cycles << 2 | cycles, cycles);
	pkt->size = (u8)(size + cycles);
	return pkt->size;
}

/* ---- print ---- */

static void print_field(struct text *t, const struct vmpt_rtit_field *f, u64 v, u64 count)
{
	if (f->coding == VMPT_RTIT_COUNT || (f->format == VMPT_RTIT_FLAG && !v))
		return;
	put_char(t, ' ');
	if (f->format == VMPT_RTIT_TAKEN) {
		while (count--)
			put_char(t, v >> count & 1 ? 'T' : 'N');
		return;
	}
	put_str(t, f->name);
	if (f->format == VMPT_RTIT_FLAG)
		return;
	put_str(t, f->format == VMPT_RTIT_HEX ? "=0x" : "=");
	put_number(t, v, f->format == VMPT_RTIT_HEX ? 16 : 10, 1);
}

size_t vmpt_rtit_print(const struct vmpt_rtit_packet *pkt, char *buf, size_t len)
{
	struct text t = { .buf = buf, .len = len };
	const struct vmpt_rtit_desc *d;
	unsigned int i;

	put_str(&t, vmpt_rtit_name(pkt->kind));
	if (pkt->kind >= VMPT_RTIT_KINDS)
		return finish(&t);
	d = &vmpt_rtit_table[pkt->kind];
	for (i = 0; i < d->fields; i++)
		print_field(&t, &d->field[i], pkt->val[i], pkt->val[1]);
	if (pkt->flags & VMPT_RTIT_CYCLES) {
		put_str(&t, " +");
		put_number(&t, pkt->cycles, 10, 1);
	}
	return finish(&t);
}

/* ---- LIP compression ---- */

void vmpt_rtit_lip_compress(struct vmpt_rtit_last_lip *last, u64 lip, struct vmpt_rtit_packet *pkt)
{
	bool high = last->valid && !((last->lip ^ lip) >> 32 & 0xffff);
	bool mid = last->valid && !((last->lip ^ lip) >> 16 & 0xffff);
	bool high0 = !(lip >> 32 & 0xffff), mid0 = !(lip >> 16 & 0xffff);

	/* Zero extension takes precedence over Last LIP (4.2.3.1). */
	pkt->ip.zext = high0 && (mid0 || !(high && mid));
	pkt->ip.cnt = (high0 && mid0) || (high && mid) ? 0 : high0 || high ? 1 : 2;
	pkt->ip.lip = lip & vmpt_mask64(8 * vmpt_rtit_lip_size((unsigned int)pkt->ip.cnt));
	last->lip = lip & vmpt_mask64(VMPT_RTIT_LIP_BITS);
	last->valid = true;
}

bool vmpt_rtit_lip_expand(struct vmpt_rtit_last_lip *last, const struct vmpt_rtit_packet *pkt,
			  u64 *lip)
{
	u64 sent = vmpt_mask64(8 * vmpt_rtit_lip_size((unsigned int)pkt->ip.cnt));

	*lip = pkt->ip.lip & sent;
	if (!pkt->ip.zext && pkt->ip.cnt < 2) {
		if (!last->valid)
			return false;
		*lip |= last->lip & ~sent & vmpt_mask64(VMPT_RTIT_LIP_BITS);
	}
	last->lip = *lip;
	last->valid = true;
	return true;
}
