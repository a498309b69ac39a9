// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The reference decoder for RTIT; see rtit-walk.h. */
#include "tests/decoder/rtit-walk.h"

#define KIND(kind) (VMPT_ITEM_RTIT + VMPT_RTIT_##kind)

struct walk {
	const struct vmpt_stream *stream;
	bool headless, cycle_acc;
	u64 at, end; /* of the region */
	bool begins; /* a region begins at @at … */
	bool gapped; /* … after a gap */
	u64 lip;
	bool lip_known;
	struct vmpt_packet count; /* the cycle count that is next, or size 0 */
};

static u64 bytes(const u8 *p, unsigned int n)
{
	return n ? p[0] | bytes(p + 1, n - 1) << 8 : 0;
}

static bool is_psb(const u8 *p, u64 n)
{
	return n >= 9 && p[0] == 0xc0 && !bytes(p + 1, 8);
}

static bool lost(struct walk *w, struct vmpt_packet *pkt, u64 end, enum vmpt_error err)
{
	*pkt = (struct vmpt_packet){ .offset = w->at, .kind = VMPT_ITEM_LOSS };
	pkt->payload = end - w->at;
	pkt->aux = (u8)err;
	w->lip_known = false;
	w->at = end;
	return true;
}

/* Up to the next PSB after @from. */
static bool lost_from(struct walk *w, struct vmpt_packet *pkt, u64 from, enum vmpt_error err)
{
	while (from < w->end && !is_psb(w->stream->data + from, w->end - from))
		from++;
	return lost(w, pkt, from, err);
}

/* Bytes of the packet at @p without its cycle count, whether it has one; or an error. */
static int packet_size(const u8 *p, u64 n, bool *counted)
{
	u64 i;

	*counted = p[0] >= 0x40 && p[0] != 0xc0 && p[0] != 0xc1;
	if (p[0] < 2 || (p[0] & 0xf0) == 0xa0 || (p[0] & 0xf8) == 0xc8 || p[0] >= 0xe0)
		return -VMPT_E_OPCODE;
	if (p[0] < 0x80 || p[0] == 0xc1)
		return 1;
	if (p[0] < 0xc0)
		return (p[0] & 3) == 3 ? -VMPT_E_IPBYTES : 3 + 2 * (p[0] & 3);
	for (i = 1; p[0] == 0xc0 && i < 9 && i < n; i++)
		if (p[i])
			return -VMPT_E_PSB;
	return p[0] == 0xc0 ? 9 : p[0] < 0xc4 ? 6 : p[0] < 0xc8 ? 2 : 7;
}

/* Table 18. */
static void take_lip(struct walk *w, struct vmpt_packet *pkt, const u8 *p)
{
	unsigned int sent = 16 + 16 * (p[0] & 3);
	bool whole = p[0] & 4 || sent == 48;

	pkt->aux = p[0] & 7;
	pkt->payload = bytes(p + 1, sent / 8);
	if (pkt->kind == KIND(BUFF_OVF))
		w->lip_known = false;
	if (!whole && !w->lip_known)
		pkt->aux |= VMPT_RTIT_AUX_NO_LIP;
	else if (!whole)
		pkt->payload |= w->lip >> sent << sent;
	if (pkt->aux & VMPT_RTIT_AUX_NO_LIP)
		return;
	w->lip = pkt->payload;
	w->lip_known = true;
}

static void take_packet(struct walk *w, struct vmpt_packet *pkt, const u8 *p)
{
	static const u8 with_lip[] = { KIND(PGE), KIND(PGD), KIND(BUFF_OVF), KIND(PCC),
				       0,	  0,	     KIND(TIP),	     KIND(FAR) };

	if (p[0] < 0x80) {
		pkt->kind = KIND(TNT);
		pkt->payload = p[0];
	} else if (p[0] < 0xc0) {
		pkt->kind = with_lip[p[0] >> 3 & 7];
		take_lip(w, pkt, p);
	} else if (p[0] < 0xc2) {
		pkt->kind = p[0] & 1 ? KIND(TRACESTOP) : KIND(PSB);
	} else if (p[0] < 0xc4) {
		pkt->kind = KIND(PIP);
		pkt->payload = bytes(p + 1, 5) | (p[0] & 1ULL) << 40;
	} else if (p[0] < 0xc8) {
		pkt->kind = KIND(MTC);
		pkt->payload = p[1] | (p[0] & 3ULL) << 8;
	} else {
		pkt->kind = KIND(STS);
		pkt->payload = bytes(p + 2, 5) | (p[0] & 15ULL) << 42 | (p[1] >> 6 & 3ULL) << 40 |
			       (p[1] & 63ULL) << 46;
	}
}

static bool take(struct walk *w, struct vmpt_packet *pkt)
{
	const u8 *p = w->stream->data + w->at;
	u64 n = w->end - w->at, i;
	unsigned int ccnt = 0;
	bool counted;
	int size = packet_size(p, n, &counted);

	if (size < 0)
		return lost_from(w, pkt, w->at + 1, (enum vmpt_error) - size);
	if (counted && w->cycle_acc) {
		if ((u64)size < n && !(p[size] & 3))
			return lost_from(w, pkt, w->at + 1, VMPT_E_CCNT);
		ccnt = (u64)size < n ? p[size] & 3 : 1;
	}
	if ((u64)size + ccnt > n)
		return lost_from(w, pkt, w->at + 1, VMPT_E_TRUNCATED);
	/* A PSB that begins inside the packet, and ends after it. */
	for (i = 1; i < (u64)size + ccnt; i++)
		if (i + 9 > (u64)size + ccnt && is_psb(p + i, n - i))
			return lost_from(w, pkt, w->at + i, VMPT_E_CUT);
	*pkt = (struct vmpt_packet){ .offset = w->at, .size = (u16)size };
	take_packet(w, pkt, p);
	w->at += (u64)size;
	w->count = (struct vmpt_packet){ .offset = w->at, .size = (u16)ccnt };
	w->count.kind = VMPT_ITEM_RTIT_CYC;
	w->count.payload = bytes(p + size, ccnt) >> 2;
	w->at += ccnt;
	return true;
}

/* The region from w->at on, which is another one. */
static void begin_region(struct walk *w)
{
	const struct vmpt_stream *s = w->stream;
	size_t i;

	w->end = s->size;
	for (i = 0; i < s->gap_count; i++)
		if (s->gaps[i].offset > w->at && s->gaps[i].offset < w->end)
			w->end = s->gaps[i].offset;
		else if (s->gaps[i].offset == w->at && w->at < s->size)
			w->gapped = true;
	w->begins = true;
}

/* False at the end. */
static bool next(struct walk *w, struct vmpt_packet *pkt)
{
	if (w->count.size) {
		*pkt = w->count;
		w->count.size = 0;
		return true;
	}
	if (w->at == w->end && w->at < w->stream->size)
		begin_region(w);
	if (w->gapped) {
		w->gapped = false;
		return lost(w, pkt, w->at, VMPT_E_GAP);
	}
	if (w->begins && !w->headless && w->at < w->end) {
		w->begins = false;
		if (!is_psb(w->stream->data + w->at, w->end - w->at))
			return lost_from(w, pkt, w->at, VMPT_E_SYNC);
	}
	w->begins = false;
	return w->at < w->end && take(w, pkt);
}

/* ---- the splitter along with the decoder ---- */

/* Counts of slices, and the same by packets. */
struct counts {
	u64 errata[VMPT_RTIT_ERRATA + 1], enables, disables, overflows, times;
};

static void count_packet(struct counts *c, const struct vmpt_packet *pkt)
{
	if (pkt->kind == VMPT_ITEM_LOSS)
		return;
	c->errata[VMPT_RTIT_AUX_ERRATUM(pkt->aux)] += pkt->aux >> 5 != 0;
	c->enables += pkt->kind == KIND(PGE);
	c->disables += pkt->kind == KIND(PGD) && !(pkt->aux & VMPT_RTIT_AUX_IGNORE);
	c->overflows += pkt->kind == KIND(BUFF_OVF);
}

static void count_slice(struct counts *c, const struct vmpt_slice *slice)
{
	unsigned int i;

	for (i = 0; i <= VMPT_RTIT_ERRATA; i++)
		c->errata[i] += slice->errata[i];
	c->enables += slice->enables;
	c->disables += slice->disables;
	c->overflows += slice->overflows;
}

/* Whether the slice of @pkt agrees; @split advances to it. */
static bool same_owner(struct vmpt_splitter *split, struct vmpt_slice *slice, struct counts *c,
		       const struct vmpt_packet *pkt)
{
	bool is_loss = pkt->kind == VMPT_ITEM_LOSS;
	u64 end = pkt->offset + (is_loss ? pkt->payload : pkt->size);

	if (is_loss || slice->begin == VMPT_BEGIN_LOSS ||
	    pkt->offset == slice->offset + slice->size) {
		/* The next slice begins where the last ended. */
		u64 at = slice->offset + slice->size;

		if (vmpt_split_next(split, slice) != 1 || slice->offset != at)
			return false;
		count_slice(c, slice);
	}
	if (is_loss)
		return slice->begin == VMPT_BEGIN_LOSS && slice->offset == pkt->offset &&
		       slice->size == pkt->payload && slice->loss == pkt->aux;
	return slice->offset <= pkt->offset && end <= slice->offset + slice->size &&
	       slice->owner.kind == pkt->owner.kind && slice->owner.vmcs == pkt->owner.vmcs &&
	       slice->owner.sure >= pkt->owner.sure;
}

static bool same_packet(const struct vmpt_packet *got, const struct vmpt_packet *want)
{
	u8 marks = got->kind == VMPT_ITEM_LOSS ? 0 : 0xf0;

	return got->offset == want->offset && got->kind == want->kind && got->size == want->size &&
	       got->payload == want->payload && (got->aux & ~marks) == want->aux &&
	       (got->owner.sure == VMPT_UNKNOWN) == (got->kind == VMPT_ITEM_LOSS);
}

const char *rtit_walk(const struct vmpt_stream *stream, const struct vmpt_options *options,
		      u64 *where)
{
	struct walk w = { .stream = stream, .headless = options->headless };
	struct counts packets = { 0 }, slices = { 0 };
	struct vmpt_packet want = { 0 }, got = { 0 };
	enum vmpt_cycle_acc acc = options->cycle_acc;
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_slice slice = { 0 };
	struct vmpt_splitter *split;
	struct vmpt_decoder *dec;
	const char *wrong = NULL;

	if (acc == VMPT_CYCLE_ACC_AUTO)
		acc = vmpt_rtit_cycles_guess(stream, options->headless);
	w.cycle_acc = acc == VMPT_CYCLE_ACC_YES;
	begin_region(&w);
	*where = 0;
	if (vmpt_decoder_open(&dec, stream, options))
		return "no decoder";
	if (vmpt_splitter_open(&split, stream, options)) {
		vmpt_decoder_close(dec);
		return "no splitter";
	}
	while (!wrong && next(&w, &want)) {
		*where = want.offset;
		if (vmpt_packet_next(dec, &cursor, &got) != 1 || !same_packet(&got, &want))
			wrong = "another packet";
		else if (!same_owner(split, &slice, &slices, &got))
			wrong = "another slice";
		count_packet(&packets, &got);
	}
	if (!wrong && (vmpt_packet_next(dec, &cursor, &got) || vmpt_split_next(split, &slice)))
		wrong = "packets after the last";
	if (!wrong && memcmp(&packets, &slices, sizeof(packets)))
		wrong = "slices count otherwise";
	vmpt_decoder_close(dec);
	vmpt_splitter_close(split);
	return wrong;
}
