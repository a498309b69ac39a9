// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decode and encode one packet of Intel PT, driven by the table in pt-packet-table.c, and IP
 * compression (SDM 3 33.4.2.2, Table 33-18).
 */
#include "arch/pt-packet.h"

const char *vmpt_pt_name(unsigned int kind)
{
	return kind < VMPT_PT_KINDS ? vmpt_pt_table[kind].name : "?";
}

/* ---- IP compression, Table 33-18 ---- */

unsigned int vmpt_pt_ip_size(unsigned int ipbytes)
{
	static const u8 size[8] = { 0, 2, 4, 6, 6, 255, 8, 255 };

	return size[ipbytes & 7];
}

static u64 sign_extend48(u64 v)
{
	return (u64)((s64)(v << 16) >> 16);
}

u64 vmpt_pt_ip_expand(u64 last_ip, unsigned int ipbytes, u64 payload)
{
	switch (ipbytes) {
	case 1:
		return (last_ip & ~0xffffULL) | (payload & 0xffff);
	case 2:
		return (last_ip & ~0xffffffffULL) | (payload & 0xffffffff);
	case 3:
		return sign_extend48(payload);
	case 4:
		return (last_ip & ~vmpt_mask64(48)) | (payload & vmpt_mask64(48));
	case 6:
		return payload;
	default:
		return last_ip;
	}
}

unsigned int vmpt_pt_ip_full(u64 ip)
{
	return sign_extend48(ip) == ip ? 3 : 6;
}

unsigned int vmpt_pt_ip_compress(u64 last_ip, u64 ip)
{
	u64 diff = last_ip ^ ip;

	if (!(diff >> 16))
		return 1;
	if (!(diff >> 32))
		return 2;
	if (sign_extend48(ip) == ip)
		return 3;
	return diff >> 48 ? 6 : 4;
}

u64 vmpt_pt_ip_payload(u64 ip, unsigned int ipbytes)
{
	unsigned int size = vmpt_pt_ip_size(ipbytes);

	return size > 8 ? 0 : ip & vmpt_mask64(8 * size);
}

/* ---- decode ---- */

/* Up to 8 bytes at @p + @at as a number; bytes from @len on read as 0. */
static u64 load_upto(const u8 *p, size_t len, size_t at)
{
	u64 v = 0;
	size_t n;

	if (at >= len)
		return 0;
	n = len - at;
	memcpy(&v, p + at, n < 8 ? n : 8);
	return v;
}

static bool header_matches(const struct vmpt_pt_desc *d, const u8 *buf, size_t len)
{
	size_t i;

	for (i = 0; i < d->header_size && i < len; i++)
		if ((buf[i] & d->mask[i]) != d->header[i])
			return false;
	return true;
}

static int find_kind(const u8 *buf, size_t len, unsigned int block)
{
	bool escaped = buf[0] == VMPT_PT_ESCAPE;
	int kind = escaped ? VMPT_PT_FIRST_ESCAPED : 0;
	int end = escaped ? VMPT_PT_KINDS : VMPT_PT_FIRST_ESCAPED;

	/* The first of two bytes can match several rows: the packet is truncated. */
	if (len < 2 && (escaped || buf[0] == vmpt_pt_table[VMPT_PT_MODE_EXEC].header[0]))
		return -VMPT_E_TRUNCATED;
	for (; kind < end; kind++) {
		if (kind == VMPT_PT_BIP && !block)
			continue;
		if (!header_matches(&vmpt_pt_table[kind], buf, len))
			continue;
		return len < vmpt_pt_table[kind].header_size ? -VMPT_E_TRUNCATED : kind;
	}
	if (buf[0] == vmpt_pt_table[VMPT_PT_MODE_EXEC].header[0])
		return -VMPT_E_MODE_LEAF;
	return -VMPT_E_OPCODE;
}

static int cyc_size(const u8 *buf, size_t len)
{
	int n = 1;
	bool more = buf[0] & 0x04;

	while (more) {
		if (n >= VMPT_PT_CYC_MAX)
			return -VMPT_E_CYC;
		if ((size_t)n >= len)
			return -VMPT_E_TRUNCATED;
		more = buf[n] & 0x01;
		n++;
	}
	/* Nine bytes hold 5 + 8 × 7 bits: three bits of the tenth are left. */
	if (n == VMPT_PT_CYC_MAX && buf[n - 1] >> 4)
		return -VMPT_E_CYC;
	return n;
}

static int psb_check(const u8 *buf, size_t len)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[VMPT_PT_PSB];
	size_t i;

	for (i = 0; i < d->size && i < len; i++)
		if (buf[i] != d->header[i & 1])
			return -VMPT_E_PSB;
	return d->size;
}

/* The packet's size, which may exceed @len, or an error. */
static int packet_size(unsigned int kind, const u8 *buf, size_t len, unsigned int block)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];
	unsigned int v;

	switch (d->size_rule) {
	case VMPT_PT_SIZE_IP:
		v = vmpt_pt_ip_size(buf[0] >> 5);
		return v > 8 ? -VMPT_E_IPBYTES : (int)(1 + v);
	case VMPT_PT_SIZE_PTW:
		v = (buf[1] >> 5) & 3;
		return v > 1 ? -VMPT_E_PTW_SIZE : (int)(v ? 10 : 6);
	case VMPT_PT_SIZE_CYC:
		return cyc_size(buf, len);
	case VMPT_PT_SIZE_BIP:
		return (int)(1 + vmpt_pt_block_item_size(block));
	case VMPT_PT_SIZE_TRIG:
		return len > 1 && buf[1] & 0x40 ? 5 : 3;
	default:
		return kind == VMPT_PT_PSB ? psb_check(buf, len) : d->size;
	}
}

static u64 get_cycles(const u8 *buf, unsigned int size)
{
	u64 v = buf[0] >> 3;
	unsigned int i;

	for (i = 1; i < size; i++)
		v |= (u64)(buf[i] >> 1) << (5 + 7 * (i - 1));
	return v;
}

static u64 get_field(const struct vmpt_pt_field *f, const u8 *buf, unsigned int size)
{
	u64 raw = load_upto(buf, size, f->bit / 8) >> (f->bit % 8);
	int top;

	raw &= vmpt_mask64(f->width);
	switch (f->coding) {
	case VMPT_PT_STOP_BIT:
	case VMPT_PT_COUNT:
		if (!raw)
			return 0;
		top = 63 - __builtin_clzll(raw);
		return f->coding == VMPT_PT_COUNT ? (u64)top : raw & vmpt_mask64((unsigned int)top);
	case VMPT_PT_CYCLES:
		return get_cycles(buf, size);
	default:
		return raw << f->shift;
	}
}

/* A value that the manual reserves in a packet whose length is nevertheless known. */
static bool value_reserved(const struct vmpt_pt_packet *p, unsigned int block)
{
	switch (p->kind) {
	case VMPT_PT_TNT_64:
		return !p->tnt.count;
	case VMPT_PT_MODE_EXEC:
		return p->exec.cs_l && p->exec.cs_d;
	case VMPT_PT_MODE_TSX:
		return p->tsx.intx && p->tsx.txabort;
	case VMPT_PT_BBP:
	case VMPT_PT_BIP:
	case VMPT_PT_CFE:
	case VMPT_PT_EVD:
		return !vmpt_pt_value_name(p, vmpt_pt_block_type(block));
	default:
		return false;
	}
}

int vmpt_pt_decode(struct vmpt_pt_packet *pkt, const u8 *buf, size_t len, unsigned int block)
{
	const struct vmpt_pt_desc *d;
	int kind, size;
	unsigned int i;

	if (!len)
		return -VMPT_E_TRUNCATED;
	kind = find_kind(buf, len, block);
	if (kind < 0)
		return kind;
	d = &vmpt_pt_table[kind];
	size = packet_size((unsigned int)kind, buf, len, block);
	if (size < 0)
		return size;
	if ((size_t)size > len)
		return -VMPT_E_TRUNCATED;

	pkt->kind = (u8)kind;
	pkt->size = (u8)size;
	for (i = 0; i < d->fields; i++)
		pkt->val[i] = get_field(&d->field[i], buf, (unsigned int)size);
	for (; i < VMPT_PT_VALUES; i++)
		pkt->val[i] = 0;
	pkt->flags = value_reserved(pkt, block) ? VMPT_PT_RESERVED : 0;
	return 0;
}

unsigned int vmpt_pt_block_after(const struct vmpt_pt_packet *pkt, unsigned int block)
{
	if (pkt->kind == VMPT_PT_BBP)
		return VMPT_PT_BLOCK((unsigned int)pkt->bbp.sz, (unsigned int)pkt->bbp.type);
	return vmpt_pt_table[pkt->kind].classes & VMPT_PT_ENDS_BLOCK ? 0 : block;
}

/* ---- encode ---- */

static void put_bits(u8 *buf, const struct vmpt_pt_field *f, unsigned int width, u64 raw)
{
	u64 v = (raw & vmpt_mask64(width)) << (f->bit % 8);
	unsigned int i, bytes = (f->bit % 8 + width + 7) / 8;

	for (i = 0; i < bytes; i++)
		buf[f->bit / 8 + i] |= (u8)(v >> (8 * i));
}

static void put_cycles(u8 *buf, unsigned int size, u64 cycles)
{
	unsigned int i;

	buf[0] |= (u8)((cycles & 0x1f) << 3) | (size > 1 ? 0x04 : 0);
	cycles >>= 5;
	for (i = 1; i < size; i++, cycles >>= 7)
		buf[i] = (u8)((cycles & 0x7f) << 1) | (i + 1 < size ? 0x01 : 0);
}

/* The size of @pkt once encoded, or an error for a reserved encoding. */
static int encoded_size(const struct vmpt_pt_packet *pkt, unsigned int block)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[pkt->kind];
	unsigned int v;
	u64 c;
	int n;

	switch (d->size_rule) {
	case VMPT_PT_SIZE_IP:
		v = pkt->ip.ipbytes > 7 ? 255 : vmpt_pt_ip_size((unsigned int)pkt->ip.ipbytes);
		return v > 8 ? -VMPT_E_INVAL : (int)(1 + v);
	case VMPT_PT_SIZE_PTW:
		return pkt->ptw.payload_bytes > 1 ? -VMPT_E_INVAL
						  : (pkt->ptw.payload_bytes ? 10 : 6);
	case VMPT_PT_SIZE_CYC:
		for (n = 1, c = pkt->cyc.cycles >> 5; c; c >>= 7)
			n++;
		return n;
	case VMPT_PT_SIZE_BIP:
		return block ? (int)(1 + vmpt_pt_block_item_size(block)) : -VMPT_E_INVAL;
	case VMPT_PT_SIZE_TRIG:
		return pkt->trig.icntv ? 5 : 3;
	default:
		return d->size;
	}
}

/* Encode one field; the header and all bits below are in place. */
static int put_field(const struct vmpt_pt_packet *pkt, unsigned int i, u8 *buf, unsigned int size)
{
	const struct vmpt_pt_field *f = &vmpt_pt_table[pkt->kind].field[i];
	unsigned int width = f->width;
	u64 v = pkt->val[i], raw = v;

	switch (f->coding) {
	case VMPT_PT_COUNT:
		return 0; /* written with the bits */
	case VMPT_PT_STOP_BIT:
		/* The stop bit takes one place. */
		if (!pkt->tnt.count || pkt->tnt.count >= width ||
		    v & ~vmpt_mask64((unsigned int)pkt->tnt.count))
			return -VMPT_E_INVAL;
		raw |= 1ULL << pkt->tnt.count;
		break;
	case VMPT_PT_CYCLES:
		put_cycles(buf, size, v);
		return 0;
	case VMPT_PT_IP:
	case VMPT_PT_ITEM:
		width = 8 * (size - f->bit / 8);
		break;
	default:
		if (v & vmpt_mask64(f->shift))
			return -VMPT_E_INVAL;
		raw = v >> f->shift;
	}
	if (raw & ~vmpt_mask64(width))
		return -VMPT_E_INVAL;
	if (width)
		put_bits(buf, f, width, raw);
	return 0;
}

int vmpt_pt_encode(struct vmpt_pt_packet *pkt, u8 *buf, size_t len, unsigned int block)
{
	const struct vmpt_pt_desc *d;
	u8 out[VMPT_PT_SIZE_MAX] = { 0 };
	unsigned int i;
	int size, err;

	if (pkt->kind >= VMPT_PT_KINDS)
		return -VMPT_E_INVAL;
	d = &vmpt_pt_table[pkt->kind];
	size = encoded_size(pkt, block);
	if (size < 0)
		return size;
	if ((size_t)size > len)
		return -VMPT_E_SPACE;

	if (pkt->kind == VMPT_PT_PSB)
		for (i = 0; i < d->size; i++)
			out[i] = d->header[i & 1];
	else
		memcpy(out, d->header, d->header_size);
	for (i = 0; i < d->fields; i++) {
		err = put_field(pkt, i, out, (unsigned int)size);
		if (err)
			return err;
	}
	memcpy(buf, out, (size_t)size);
	pkt->size = (u8)size;
	return size;
}
