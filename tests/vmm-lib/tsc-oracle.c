// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random streams for TSC rewriting, and their expected result. */
#include <stdlib.h>

#include "tests/vmm-lib/tsc-oracle.h"
#include "vmm-lib/tsc/scan.h"

/* ---- the rewrite ---- */

/* (a × b) >> 48, 32 bits at a time; *over: the result does not fit 64 bits. */
static u64 multiply(u64 a, u64 b, bool *over)
{
	u64 a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
	u64 low = a0 * b0, mid = a0 * b1 + (low >> 32), mid2 = a1 * b0 + (mid & 0xffffffff);
	u64 high = a1 * b1 + (mid >> 32) + (mid2 >> 32);

	low = (low & 0xffffffff) | mid2 << 32;
	*over = high >> 48;
	return high << 16 | low >> 48;
}

static u64 get(const u8 *p, unsigned int n)
{
	u64 v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/* Derived from earlier TSCs: bits 63:56. */
static void clock_on(const u8 *p, u8 kind, u64 *last, u8 *high)
{
	u64 v;

	if (kind != VMPT_PT_TSC)
		return;
	v = get(p + 1, 7);
	if (v + (1ULL << 55) < *last)
		++*high;
	*last = v;
}

static void rewrite(struct tsc_oracle *sum, const struct vmpt_tsc_change *change, const u8 *in,
		    u8 *out, u8 kind, u8 high)
{
	u64 v, fast;
	bool over;
	int i;

	sum->packets++;
	if (kind == VMPT_PT_TSC) {
		v = (u64)high << 56 | get(in + 1, 7);
		v = multiply(v, change->multiplier, &over) + change->offset;
		for (i = 0; i < 7; i++)
			out[1 + i] = (u8)(v >> 8 * i);
		sum->tscs++;
	} else if (kind == VMPT_PT_TMA) {
		fast = multiply((u64)(in[6] & 1) << 8 | in[5], change->multiplier, &over);
		if (over || fast > 511)
			fast = 511;
		out[5] = (u8)fast;
		out[6] = (u8)((in[6] & 0xfe) | fast >> 8);
		sum->tmas++;
	}
}

/* The first whole PSB at or after @at, or @len. */
static size_t find_psb(const u8 *buf, size_t at, size_t len)
{
	size_t i;

	for (; at + 16 <= len; at++) {
		for (i = 0; i < 16 && buf[at + i] == (i & 1 ? 0x82 : 0x02); i++)
			;
		if (i == 16)
			return at;
	}
	return len;
}

/* Whether a PSB can begin with the last bytes, from @at on. */
static bool may_be_psb(const u8 *buf, size_t at, size_t len)
{
	for (; at < len; at += 2)
		if (buf[at] != 0x02 || (at + 1 < len && buf[at + 1] != 0x82))
			return false;
	return true;
}

/* What is no packet, from @at to a PSB: returns where that is. */
static size_t lose(struct tsc_oracle *sum, const u8 *in, u8 *out, size_t at, size_t len)
{
	size_t psb = find_psb(in, at + 1, len), end = psb;

	if (psb == len)
		for (end = len > at + 16 ? len - 15 : at + 1; !may_be_psb(in, end, len);)
			end++;
	memset(out + at, 0, end - at);
	out[at] = 0xfd;
	sum->errors++;
	sum->lost_bytes += end - at;
	return psb;
}

void tsc_oracle(struct tsc_oracle *sum, const struct vmpt_tsc_change *change, const u8 *in, u8 *out,
		size_t from, size_t len)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	u8 high = change->high;
	size_t at = 0;
	u64 last = 0;
	int err;

	while (at < len) {
		err = vmpt_pt_decode(&pkt, in + at, len - at, block);
		if (err == -VMPT_E_TRUNCATED)
			return;
		if (err) {
			at = lose(sum, in, out, at, len);
			block = 0;
			continue;
		}
		clock_on(in + at, pkt.kind, &last, &high);
		if (at + pkt.size > from)
			rewrite(sum, change, in + at, out + at, pkt.kind, high);
		block = vmpt_pt_block_after(&pkt, block);
		at += pkt.size;
	}
}

/* ---- streams ---- */

static u64 draw(u64 *rng)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return *rng;
}

static bool chance(u64 *rng, unsigned int thousandths)
{
	return draw(rng) % 1000 < thousandths;
}

/* Bytes that look like packets: TSC, TMA, PSB, PAD, a CYC that continues. */
static u64 disguise(u64 *rng)
{
	static const u64 words[] = {
		0x1919191919191919, 0x7302730273027302, 0x8202820282028202, 0x0282028202820282,
		0x0000000000000019, 0x6302630263026302, 0x0707070707070707, 0xff19027302820019,
	};

	return words[draw(rng) % VMPT_ARRAY_SIZE(words)];
}

/* A value for a field of @width bits. */
static u64 value(const struct vmpt_pt_field *f, const struct tsc_mix *mix, u64 *rng)
{
	u64 v = mix->tsc_bytes && chance(rng, 700) ? disguise(rng) : draw(rng);

	return (v & vmpt_mask64(f->width)) << f->shift;
}

static void make(struct vmpt_pt_packet *pkt, u8 kind, const struct tsc_mix *mix, u64 *rng)
{
	static const u8 ipbytes[] = { 0, 1, 2, 3, 4, 6 };
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];
	unsigned int i;

	pkt->kind = kind;
	for (i = 0; i < VMPT_PT_VALUES; i++)
		pkt->val[i] = i < d->fields ? value(&d->field[i], mix, rng) : 0;
	if (kind == VMPT_PT_TNT_8 || kind == VMPT_PT_TNT_64) {
		pkt->tnt.count = 1 + draw(rng) % (kind == VMPT_PT_TNT_8 ? 6 : 47);
		pkt->tnt.bits &= vmpt_mask64((unsigned int)pkt->tnt.count);
	} else if (d->classes & VMPT_PT_HAS_IP) {
		pkt->ip.ipbytes = ipbytes[draw(rng) % 6];
		pkt->ip.ip &= vmpt_mask64(8 * vmpt_pt_ip_size((unsigned int)pkt->ip.ipbytes));
	} else if (kind == VMPT_PT_PTW) {
		pkt->ptw.payload_bytes &= 1;
		pkt->ptw.payload &= vmpt_mask64(pkt->ptw.payload_bytes ? 64 : 32);
	} else if (kind == VMPT_PT_TRIG) {
		pkt->trig.icnt = pkt->trig.icntv ? pkt->trig.icnt : 0;
	} else if (kind == VMPT_PT_CYC) {
		pkt->cyc.cycles &= vmpt_mask64((unsigned int)(draw(rng) % 65));
	}
}

/* The next packet's kind: half of them short ones, as in a trace. */
static u8 next_kind(const struct tsc_mix *mix, unsigned int block, u64 *rng)
{
	if (chance(rng, mix->psb))
		return VMPT_PT_PSB;
	if (chance(rng, mix->tsc))
		return chance(rng, 500) ? VMPT_PT_TSC : VMPT_PT_TMA;
	if (chance(rng, mix->block))
		return VMPT_PT_BBP;
	if (block && chance(rng, 850))
		return VMPT_PT_BIP;
	if (chance(rng, 500))
		return chance(rng, 300) ? VMPT_PT_PAD : VMPT_PT_TNT_8;
	/* Kinds that the mix does not produce. */
	for (;;) {
		u8 kind = (u8)(draw(rng) % VMPT_PT_KINDS);

		if (kind != VMPT_PT_PSB && kind != VMPT_PT_TSC && kind != VMPT_PT_TMA &&
		    kind != VMPT_PT_BBP && kind != VMPT_PT_BIP)
			return kind;
	}
}

void tsc_stream(u8 *buf, size_t len, const struct tsc_mix *mix, u64 *rng)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	u8 out[VMPT_PT_SIZE_MAX];
	size_t at = 0, n;
	int size;

	while (at < len) {
		make(&pkt, next_kind(mix, block, rng), mix, rng);
		/* A TNT in a block is a BIP there if bit 2 is its lowest one: omit it. */
		size = vmpt_pt_encode(&pkt, out, sizeof(out), block);
		if (size < 0 || (block && pkt.kind == VMPT_PT_TNT_8 && (out[0] & 7) == 4))
			continue;
		if (chance(rng, mix->error))
			out[draw(rng) % (unsigned int)size] ^= (u8)(1 << draw(rng) % 8);
		n = len - at < (size_t)size ? len - at : (size_t)size;
		memcpy(buf + at, out, n);
		at += n;
		block = vmpt_pt_block_after(&pkt, block);
	}
}

/* ---- pages ---- */

#define PAGE 4096u

struct pages {
	size_t n, len;
	u8 **page, **memory; /* memory: what was allocated, or NULL */
};

/* Runs of one to three pages, each allocated separately, with exactly @len bytes in all. */
static void pages_make(struct pages *p, const u8 *buf, size_t len, u64 *rng)
{
	size_t i, run, size;

	p->len = len;
	p->n = (len + PAGE - 1) / PAGE;
	p->page = calloc(p->n + 1, sizeof(*p->page));
	p->memory = calloc(p->n + 1, sizeof(*p->memory));
	if (!p->page || !p->memory)
		abort();
	for (i = 0; i < p->n; i++) {
		run = draw(rng) % 4 ? 1 : 1 + draw(rng) % 3;
		size = len - i * PAGE < run * PAGE ? len - i * PAGE : run * PAGE;
		p->memory[i] = malloc(size);
		if (!p->memory[i])
			abort();
		memcpy(p->memory[i], buf + i * PAGE, size);
		p->page[i] = p->memory[i];
		for (; size > PAGE; size -= PAGE, i++)
			p->page[i + 1] = p->page[i] + PAGE;
	}
}

static void pages_end(struct pages *p, u8 *buf)
{
	size_t i, n;

	for (i = 0; i < p->n; i++) {
		n = p->len - i * PAGE < PAGE ? p->len - i * PAGE : PAGE;
		memcpy(buf + i * PAGE, p->page[i], n);
	}
	for (i = 0; i < p->n; i++)
		free(p->memory[i]);
	free(p->page);
	free(p->memory);
}

size_t tsc_in_pages(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		    size_t len, u64 *rng)
{
	size_t at, n, i, done = 0, next, window = VMPT_TSC_WINDOW;
	struct vmpt_tsc_view view = { .shift = 12 };
	struct pages p;

	pages_make(&p, buf, len, rng);
	view.page = p.page;
	for (at = 0; at < len; at += n) {
		next = vmpt_tsc_rewrite_view(scan, change, &view, at, len, &window);
		done += next - at;
		at = next;
		n = PAGE - at % PAGE < len - at ? PAGE - at % PAGE : len - at;
		n = draw(rng) % 4 ? n : 1 + draw(rng) % n;
		vmpt_tsc_rewrite(scan, change, p.page[at / PAGE] + at % PAGE, n);
		for (i = 0; i < scan->patched; i++) {
			next = at - scan->patched + i;
			p.page[next / PAGE][next % PAGE] = scan->patch[i];
		}
	}
	pages_end(&p, buf);
	return done;
}
