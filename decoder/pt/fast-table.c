// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tables of the fast loops, generated from the packet table. Only the layout of items'
 * payloads, which no packet table has, is added here.
 */
#include "decoder/pt/fast-table.h"

/* ---- what follows from two bytes ---- */

/* A packet's kind and size from its first two bytes; size 0 if they do not determine it. */
struct head_guess {
	u8 kind, size;
};

static int kind_of(const u8 *p)
{
	bool escaped = p[0] == VMPT_PT_ESCAPE;
	int kind = escaped ? VMPT_PT_FIRST_ESCAPED : 0;
	int end = escaped ? VMPT_PT_KINDS : VMPT_PT_FIRST_ESCAPED;
	const struct vmpt_pt_desc *d;

	for (; kind < end; kind++) {
		d = &vmpt_pt_table[kind];
		if (kind != VMPT_PT_BIP && (p[0] & d->mask[0]) == d->header[0] &&
		    (d->header_size < 2 || (p[1] & d->mask[1]) == d->header[1]))
			return kind;
	}
	return -1;
}

static struct head_guess guess(u8 b0, u8 b1)
{
	const u8 p[2] = { b0, b1 };
	const struct vmpt_pt_desc *d;
	struct head_guess g = { VMPT_KIND_NONE, 0 };
	int kind = kind_of(p);
	unsigned int n;

	if (kind < 0)
		return g;
	d = &vmpt_pt_table[kind];
	g.kind = (u8)kind;
	switch (d->size_rule) {
	case VMPT_PT_SIZE_IP:
		n = vmpt_pt_ip_size(b0 >> 5);
		g.size = n > 8 ? 0 : (u8)(1 + n);
		break;
	case VMPT_PT_SIZE_PTW:
		n = b1 >> 5 & 3;
		g.size = n > 1 ? 0 : n ? 10 : 6;
		break;
	case VMPT_PT_SIZE_TRIG:
		g.size = b1 & 0x40 ? 5 : 3;
		break;
	case VMPT_PT_SIZE_CYC:
		g.size = !(b0 & 0x04) ? 1 : !(b1 & 0x01) ? 2 : 0;
		break;
	default:
		g.size = d->size;
	}
	return g;
}

/* Whether guess() does not depend on the second byte. */
static bool one_byte_decides(u8 b0)
{
	struct head_guess g = guess(b0, 0);

	return b0 != VMPT_PT_ESCAPE && g.size && vmpt_pt_table[g.kind].header_size == 1 &&
	       vmpt_pt_table[g.kind].size_rule != VMPT_PT_SIZE_TRIG &&
	       (vmpt_pt_table[g.kind].size_rule != VMPT_PT_SIZE_CYC || g.size == 1);
}

static bool makes_token(struct head_guess g)
{
	struct vmpt_pt_packet pkt = { .kind = g.kind };

	pkt.ip.ipbytes = g.size > 1; /* only whether it is 0 matters */
	return vmpt_token_wanted(&pkt);
}

/* ---- the index ---- */

static u8 index_step(struct head_guess g)
{
	/* The rest of a block needs its context: a BBP is never stepped over. */
	if (!g.size || g.kind == VMPT_PT_BBP)
		return 0;
	/* Stage 2 must see an MNT to check it. */
	if (makes_token(g) || g.kind == VMPT_PT_MNT)
		return VMPT_STEP_TOKEN | g.size;
	return g.size;
}

static u8 index_kind(struct head_guess g)
{
	switch (g.kind) {
	case VMPT_PT_PSB:
		return VMPT_PT_PSB | VMPT_KIND_LONG;
	case VMPT_PT_MNT:
		return VMPT_PT_MNT | VMPT_KIND_LONG | VMPT_KIND_SILENT;
	}
	return g.kind;
}

void vmpt_index_table_init(struct vmpt_index_table *table)
{
	u8 pair_size[256]; /* sizes as the second packet of a pair */
	unsigned int b0, b1;
	struct head_guess g;
	u8 step;

	for (b1 = 0; b1 < 256; b1++) {
		g = guess((u8)b1, 0);
		pair_size[b1] = one_byte_decides((u8)b1) && !makes_token(g) ? g.size : 0;
	}
	for (b0 = 0; b0 < 256; b0++) {
		if (!one_byte_decides((u8)b0)) {
			for (b1 = 0; b1 < 256; b1++)
				table->step[b1 << 8 | b0] = index_step(guess((u8)b0, (u8)b1));
			continue;
		}
		g = guess((u8)b0, 0);
		step = index_step(g);
		for (b1 = 0; b1 < 256; b1++)
			table->step[b1 << 8 | b0] = (u8)(step + (g.size == 1 ? pair_size[b1] : 0));
	}
	for (b0 = 0; b0 < 256; b0++) {
		table->kind[b0] = index_kind(guess((u8)b0, 0));
		table->kind[256 + b0] = index_kind(guess(VMPT_PT_ESCAPE, (u8)b0));
	}
}

/* ---- rows ---- */

/* How a kind's payload is made; see struct vmpt_item. Other kinds have no payload. */
struct layout {
	u64 mask;
	u8 from;
	u8 aux; /* 1 + index of the byte that aux holds */
};

static const struct layout layouts[VMPT_PT_KINDS] = {
	[VMPT_PT_BIP] = { .from = 1, .aux = 1 },
	[VMPT_PT_MTC] = { .mask = 0xff, .from = 1 },
	[VMPT_PT_TSC] = { .mask = 0xffffffffffffff, .from = 1 },
	[VMPT_PT_MODE_EXEC] = { .mask = 0xe7, .from = 1 },
	[VMPT_PT_MODE_TSX] = { .mask = 0xe3, .from = 1 },
	[VMPT_PT_TNT_64] = { .mask = 0xffffffffffff, .from = 2 },
	[VMPT_PT_CBR] = { .mask = 0xff, .from = 2 },
	[VMPT_PT_TMA] = { .mask = 0x1ff00ffff, .from = 2 },
	[VMPT_PT_MNT] = { .mask = ~0ULL, .from = 3 },
	[VMPT_PT_PTW] = { .from = 2, .aux = 2 },
	[VMPT_PT_EXSTOP] = { .aux = 2 },
	[VMPT_PT_MWAIT] = { .mask = 0x3000000ff, .from = 2 },
	[VMPT_PT_PWRE] = { .mask = 0xff80, .from = 2 },
	[VMPT_PT_PWRX] = { .mask = 0x0fff, .from = 2 },
	[VMPT_PT_BBP] = { .mask = 0x9f, .from = 2 },
	[VMPT_PT_BEP] = { .aux = 2 },
	[VMPT_PT_CFE] = { .mask = 0xff9f, .from = 2 },
	[VMPT_PT_TRIG] = { .from = 2, .aux = 2 },
};

static void row_ip(struct vmpt_row *row, unsigned int ipbytes)
{
	unsigned int bits = 8 * vmpt_pt_ip_size(ipbytes);

	row->from = 1;
	row->mask = vmpt_mask64(bits);
	row->keep = ~row->mask;
	row->is_ip = true;
	row->meta |= (u64)ipbytes << 56;
	if (ipbytes == 3) { /* sign-extended, no bit of Last IP remains */
		row->sign = 1ULL << 47;
		row->keep = 0;
	}
}

/* A CYC of one or two bytes: bits 7:3 of the first, bits 7:1 of the second. */
static void row_cyc(struct vmpt_row *row)
{
	row->twice = 0xf8;
	row->mask = row->size == 1 ? 0xf8 : 0xfef8;
	row->shift = 4;
	row->rare = VMPT_RARE_CYC;
}

static void row_init(struct vmpt_row *row, struct head_guess g, u8 b0, u8 b1)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[g.kind];
	const struct layout *l = &layouts[g.kind];

	*row = (struct vmpt_row){
		.mask = l->mask,
		.from = l->from,
		.meta = (u64)g.kind << 48 | (u64)g.size << 32,
		.token = makes_token(g) || g.kind == VMPT_PT_MNT,
		.size = g.size,
	};
	if (g.kind == VMPT_PT_PIP || g.kind == VMPT_PT_VMCS)
		row->rare = VMPT_RARE_KIND;
	if (g.kind == VMPT_PT_TRIG)
		b1 &= 0xe0; /* the others are reserved: a row for each would be too many */
	if (l->aux)
		row->meta |= (u64)(l->aux == 1 ? b0 : b1) << 56;
	if (d->size_rule == VMPT_PT_SIZE_IP)
		row_ip(row, b0 >> 5);
	if (d->size_rule == VMPT_PT_SIZE_CYC)
		row_cyc(row);
	if (d->size_rule == VMPT_PT_SIZE_PTW || d->size_rule == VMPT_PT_SIZE_BIP ||
	    d->size_rule == VMPT_PT_SIZE_TRIG)
		row->mask = vmpt_mask64(8u * (g.size - l->from));
	if (g.kind == VMPT_PT_PSB)
		row->is_ip = true; /* its payload, 0 */
	row->plain = row->rare != VMPT_RARE_KIND && !row->token && !row->is_ip;
}

static bool same_row(const struct vmpt_row *a, const struct vmpt_row *b)
{
	return a->meta == b->meta && a->mask == b->mask;
}

/* The entry for a packet. Its row is made if it does not exist yet. */
static u16 packet_step(struct vmpt_packet_table *table, unsigned int *rows, u8 b0, u8 b1)
{
	struct head_guess g = guess(b0, b1);
	unsigned int i, step;
	struct vmpt_row row;

	if (g.kind == VMPT_PT_TNT_8 || g.kind == VMPT_PT_PAD)
		return VMPT_ROW_RUN << 8 | 1;
	if (!g.size)
		return g.kind == VMPT_PT_CYC ? VMPT_ROW_CYC << 8 : 0;
	if (g.kind == VMPT_PT_EVD)
		return VMPT_ROW_EVD << 8 | VMPT_STEP_TOKEN | g.size;
	row_init(&row, g, b0, b1);
	for (i = VMPT_ROW_DYNAMIC; i < *rows && !same_row(&row, &table->rows[i]); i++)
		;
	if (i == *rows)
		table->rows[(*rows)++] = row;
	step = g.kind == VMPT_PT_BBP ? 0 : VMPT_STEP_TOKEN | g.size;
	return (u16)(i << 8 | step);
}

void vmpt_packet_table_init(struct vmpt_packet_table *table)
{
	unsigned int b0, b1, id, rows = VMPT_ROW_DYNAMIC;

	memset(table->rows, 0, sizeof(table->rows));
	for (id = 0; id < VMPT_ROW_BIP4; id++)
		table->rows[id].rare = VMPT_RARE_KIND;
	/* Only for its token. */
	table->rows[VMPT_ROW_EVD].meta = (u64)VMPT_PT_EVD << 48;
	table->rows[VMPT_ROW_EVD].token = true;
	for (id = 0; id < 32; id++) {
		b0 = id << 3 | vmpt_pt_table[VMPT_PT_BIP].header[0];
		row_init(&table->rows[VMPT_ROW_BIP4 + id], (struct head_guess){ VMPT_PT_BIP, 5 },
			 (u8)b0, 0);
		row_init(&table->rows[VMPT_ROW_BIP8 + id], (struct head_guess){ VMPT_PT_BIP, 9 },
			 (u8)b0, 0);
	}
	for (b0 = 0; b0 < 256; b0++) {
		u16 *step = &table->step[b0 << 8];

		if (one_byte_decides((u8)b0)) {
			step[0] = packet_step(table, &rows, (u8)b0, 0);
			for (b1 = 1; b1 < 256; b1++)
				step[b1] = step[0];
			continue;
		}
		for (b1 = 0; b1 < 256; b1++)
			step[b1] = packet_step(table, &rows, (u8)b0, (u8)b1);
	}
}

void vmpt_time_steps_init(u16 *steps, const struct vmpt_packet_table *table)
{
	const struct vmpt_row *row;
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(table->step); i++) {
		row = &table->rows[table->step[i] >> 8];
		steps[i] = table->step[i];
		if (!row->token && !vmpt_time_wanted(row->meta >> 48 & 0xff))
			steps[i] &= VMPT_STEP_SIZE;
	}
}
