// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The walk over two decoders. libipt runs freely from packet to packet; it is set to our position
 * only after an error, at the next PSB, and after a packet that it does not know.
 */
#include <intel-pt.h>
#include <stdio.h>

#include "decoder/pt/source.h"
#include "tests/decoder/libipt-walk.h"
#include "tests/support/support.h"

/* Event Trace came with libipt 2.1: CFE, EVD, and IF in MODE.Exec. */
#define KNOWS_EVENTS (LIBIPT_VERSION >= 0x201)
/* TRIG came with 2.2. */
#define KNOWS_TRIG (LIBIPT_VERSION >= 0x202)

struct walk {
	struct libipt_walk *sum;
	const u8 *data;
	u64 size;
	const char *what;
	struct pt_packet_decoder *ipt;
	u64 last_ip; /* from libipt's packets */
};

/* A packet in the form of decoder/vmpt-decode.h's items. */
struct one {
	u64 offset, payload;
	u32 size;
	u8 kind, aux;
};

static const u8 ours_of[] = {
	[ppt_pad] = VMPT_PT_PAD,	 [ppt_psb] = VMPT_PT_PSB,
	[ppt_psbend] = VMPT_PT_PSBEND,	 [ppt_fup] = VMPT_PT_FUP,
	[ppt_tip] = VMPT_PT_TIP,	 [ppt_tip_pge] = VMPT_PT_TIP_PGE,
	[ppt_tip_pgd] = VMPT_PT_TIP_PGD, [ppt_tnt_8] = VMPT_PT_TNT_8,
	[ppt_tnt_64] = VMPT_PT_TNT_64,	 [ppt_mode] = VMPT_PT_MODE_EXEC,
	[ppt_pip] = VMPT_PT_PIP,	 [ppt_vmcs] = VMPT_PT_VMCS,
	[ppt_cbr] = VMPT_PT_CBR,	 [ppt_tsc] = VMPT_PT_TSC,
	[ppt_tma] = VMPT_PT_TMA,	 [ppt_mtc] = VMPT_PT_MTC,
	[ppt_cyc] = VMPT_PT_CYC,	 [ppt_stop] = VMPT_PT_TRACESTOP,
	[ppt_ovf] = VMPT_PT_OVF,	 [ppt_mnt] = VMPT_PT_MNT,
	[ppt_exstop] = VMPT_PT_EXSTOP,	 [ppt_mwait] = VMPT_PT_MWAIT,
	[ppt_pwre] = VMPT_PT_PWRE,	 [ppt_pwrx] = VMPT_PT_PWRX,
	[ppt_ptw] = VMPT_PT_PTW,
#if KNOWS_EVENTS
	[ppt_cfe] = VMPT_PT_CFE,	 [ppt_evd] = VMPT_PT_EVD,
#endif
#if KNOWS_TRIG
	[ppt_trig] = VMPT_PT_TRIG,
#endif
};

/* Table 33-18, implemented again, independently of the code under test. */
static u64 expand(u64 last, const struct pt_packet_ip *ip)
{
	switch (ip->ipc) {
	case pt_ipc_update_16:
		return last >> 16 << 16 | ip->ip;
	case pt_ipc_update_32:
		return last >> 32 << 32 | ip->ip;
	case pt_ipc_update_48:
		return last >> 48 << 48 | ip->ip;
	case pt_ipc_sext_48:
		return ip->ip >> 47 ? ip->ip | 0xffff000000000000 : ip->ip;
	case pt_ipc_full:
		return ip->ip;
	default:
		return last;
	}
}

/* The payload that decoder/vmpt-decode.h promises, from libipt's packet. */
static void from_libipt(struct walk *w, struct one *o, const struct pt_packet *p)
{
	o->kind = ours_of[p->type];
	o->size = p->size;
	o->payload = 0;
	o->aux = 0;
	switch (p->type) {
	case ppt_psb:
		w->last_ip = 0;
		break;
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		w->last_ip = expand(w->last_ip, &p->payload.ip);
		o->payload = w->last_ip;
		o->aux = (u8)p->payload.ip.ipc;
		break;
	case ppt_tnt_8:
		o->payload = (1ULL << p->payload.tnt.bit_size | p->payload.tnt.payload) << 1;
		break;
	case ppt_tnt_64:
		o->payload = 1ULL << p->payload.tnt.bit_size | p->payload.tnt.payload;
		break;
	case ppt_mode:
		if (p->payload.mode.leaf == pt_mol_tsx) {
			o->kind = VMPT_PT_MODE_TSX;
			o->payload = 0x20u | p->payload.mode.bits.tsx.intx |
				     p->payload.mode.bits.tsx.abrt << 1;
		} else {
			o->payload = p->payload.mode.bits.exec.csl | p->payload.mode.bits.exec.csd
									     << 1;
#if KNOWS_EVENTS
			o->payload |= p->payload.mode.bits.exec.iflag << 2;
#endif
		}
		break;
	case ppt_pip:
		o->payload = p->payload.pip.cr3 | p->payload.pip.nr;
		break;
	case ppt_vmcs:
		o->payload = p->payload.vmcs.base;
		break;
	case ppt_cbr:
		o->payload = p->payload.cbr.ratio;
		break;
	case ppt_tsc:
		o->payload = p->payload.tsc.tsc;
		break;
	case ppt_tma:
		o->payload = p->payload.tma.ctc | (u64)p->payload.tma.fc << 24;
		break;
	case ppt_mtc:
		o->payload = p->payload.mtc.ctc;
		break;
	case ppt_cyc:
		o->payload = p->payload.cyc.value;
		break;
	case ppt_mnt:
		o->payload = p->payload.mnt.payload;
		break;
	case ppt_exstop:
		o->aux = (u8)(0x62u | p->payload.exstop.ip << 7);
		break;
	case ppt_mwait:
		/* It passes on the reserved bits (Table 33-42). */
		o->payload = (p->payload.mwait.hints & 0xff) | (u64)(p->payload.mwait.ext & 3)
								       << 32;
		break;
	case ppt_pwre:
		o->payload = (u64)p->payload.pwre.sub_state << 8 | (u64)p->payload.pwre.state << 12;
		break;
	case ppt_pwrx:
		o->payload = p->payload.pwrx.deepest | (u64)p->payload.pwrx.last << 4 |
			     (u64)p->payload.pwrx.interrupt << 8 |
			     (u64)p->payload.pwrx.store << 10 |
			     (u64)p->payload.pwrx.autonomous << 11;
		break;
	case ppt_ptw:
		o->payload = p->payload.ptw.payload;
		o->aux = (u8)(0x12u | (unsigned int)p->payload.ptw.plc << 5 |
			      p->payload.ptw.ip << 7);
		break;
#if KNOWS_EVENTS
	case ppt_cfe:
		o->payload = (u64)p->payload.cfe.type | p->payload.cfe.ip << 7 |
			     (u64)p->payload.cfe.vector << 8;
		break;
	case ppt_evd:
		o->payload = p->payload.evd.payload;
		o->aux = (u8)p->payload.evd.type;
		break;
#endif
#if KNOWS_TRIG
	case ppt_trig:
		o->payload = p->payload.trig.trbv;
		if (p->payload.trig.icntv)
			o->payload |= (u64)p->payload.trig.icnt << 8;
		o->aux = (u8)((unsigned int)p->payload.trig.ip << 7 |
			      (unsigned int)p->payload.trig.icntv << 6 |
			      (unsigned int)p->payload.trig.mult << 5);
		break;
#endif
	default:
		break;
	}
}

/* Bits of our payload that libipt has no field for or reads elsewhere. */
static u64 unknown_bits(const struct one *ours)
{
	switch (ours->kind) {
	case VMPT_PT_MODE_EXEC:
		return KNOWS_EVENTS ? 0 : 0x04; /* IF */
	case VMPT_PT_PWRE:
		return 0x80; /* HW: it reads bit 3; Table 33-43 and perf say bit 7 */
	case VMPT_PT_PWRX:
		return 0x200; /* "timer deadline" among the wake reasons */
	default:
		return 0;
	}
}

/* The same for aux: Table 33-51 has Type[5:0], and so has perf; libipt reads five bits. */
static u8 unknown_aux(const struct one *ours)
{
	return ours->kind == VMPT_PT_EVD ? 0x20 : 0;
}

/* Packets that libipt does not know, and its result: 0 for "another packet", else the error. */
static bool excepted(const struct walk *w, const struct one *ours, int *instead)
{
	const u8 *raw = w->data + ours->offset;

	switch (ours->kind) {
	case VMPT_PT_CFE:
	case VMPT_PT_EVD:
		*instead = -pte_bad_opc;
		return !KNOWS_EVENTS;
	case VMPT_PT_TRIG:
		*instead = -pte_bad_opc;
		return !KNOWS_TRIG;
	case VMPT_PT_BBP: /* packet blocks */
	case VMPT_PT_BEP:
		*instead = -pte_bad_opc;
		return true;
	case VMPT_PT_BIP: /* it reads a TNT-8, since it does not know the block */
		*instead = 0;
		return true;
	case VMPT_PT_CYC: /* it stops at nine bytes; ten have 64 bits */
		*instead = -pte_bad_packet;
		return ours->size == 10;
	case VMPT_PT_TMA: /* it requires the reserved bits of bytes 4 and 6 to be 0 */
		*instead = -pte_bad_packet;
		return raw[4] || raw[6] & 0xfe;
	case VMPT_PT_TNT_64: /* no branch: for us a reserved value of known length */
		*instead = -pte_bad_packet;
		return ours->payload <= 1;
	default:
		return false;
	}
}

/* A packet of a kind that libipt does not know: CFE, EVD, BBP, BEP, TRIG. */
static bool unknown_kind(const u8 *p, u64 left)
{
	bool event = left > 1 && (p[1] == 0x13 || p[1] == 0x53);

	if (p[0] == 0xd9)
		return !KNOWS_TRIG;
	return left > 1 && p[0] == 0x02 &&
	       ((event && !KNOWS_EVENTS) || p[1] == 0x63 || (p[1] & 0x7f) == 0x33);
}

/* libipt's codes for our errors. */
static int libipt_error(int err, const u8 *p, u64 left)
{
	switch (err) {
	case VMPT_E_TRUNCATED:
		return unknown_kind(p, left) ? -pte_bad_opc : -pte_eos;
	case VMPT_E_OPCODE:
		return -pte_bad_opc;
	case VMPT_E_PSB:
		/* It requires all 16 bytes before it checks them. */
		return left < 16 ? -pte_eos : -pte_bad_packet;
	default:
		return -pte_bad_packet;
	}
}

static void check_position(struct walk *w, u64 offset)
{
	u64 at = 0;

	if (pt_pkt_get_offset(w->ipt, &at) || at != offset)
		ck_abort_msg("%s: we are at %#llx, libipt is at %#llx", w->what,
			     (unsigned long long)offset, (unsigned long long)at);
}

static void set_position(struct walk *w, u64 offset)
{
	ck_assert_int_eq(pt_pkt_sync_set(w->ipt, offset), 0);
}

static void check_one(struct walk *w, const struct one *ours)
{
	struct pt_packet packet;
	struct one theirs = { 0 };
	int status, instead;

	w->sum->packets++;
	w->sum->kind[ours->kind]++;
	check_position(w, ours->offset);
	status = pt_pkt_next(w->ipt, &packet, sizeof(packet));
	if (excepted(w, ours, &instead)) {
		if (instead ? status != instead : status != 1 || packet.type != ppt_tnt_8)
			ck_abort_msg("%s: %#llx: %s is excepted, but libipt says %d", w->what,
				     (unsigned long long)ours->offset, vmpt_pt_name(ours->kind),
				     status);
		w->sum->excepted++;
		if (ours->offset + ours->size < w->size)
			set_position(w, ours->offset + ours->size);
		return;
	}
	if (status < 0)
		ck_abort_msg("%s: %#llx: %s, but libipt says %d", w->what,
			     (unsigned long long)ours->offset, vmpt_pt_name(ours->kind), status);
	from_libipt(w, &theirs, &packet);
	theirs.payload |= ours->payload & unknown_bits(ours);
	theirs.aux |= ours->aux & unknown_aux(ours);
	if (ours->kind != theirs.kind || ours->size != theirs.size ||
	    ours->payload != theirs.payload || ours->aux != theirs.aux)
		ck_abort_msg("%s: %#llx: %s %u %#llx %#x, libipt: %s %u %#llx %#x", w->what,
			     (unsigned long long)ours->offset, vmpt_pt_name(ours->kind), ours->size,
			     (unsigned long long)ours->payload, ours->aux,
			     vmpt_pt_name(theirs.kind), theirs.size,
			     (unsigned long long)theirs.payload, theirs.aux);
}

static u64 next_psb(const struct walk *w, u64 from)
{
	static const char pattern[] = "\x02\x82\x02\x82\x02\x82\x02\x82"
				      "\x02\x82\x02\x82\x02\x82\x02\x82";
	const u8 *p = from < w->size ? memmem(w->data + from, w->size - from, pattern, 16) : NULL;

	return p ? (u64)(p - w->data) : w->size;
}

/*
 * To libipt a packet that a PSB cuts is a packet, and so may be a byte 82H after it. Then comes an
 * error, after which it, too, finds the PSB that began inside the packet.
 */
static void check_cut(struct walk *w, u64 offset, u64 size)
{
	u64 psb = offset + size, at = offset;
	struct pt_packet packet;
	int status, n = 0;

	w->sum->losses[VMPT_E_CUT]++;
	if (next_psb(w, psb) != psb)
		ck_abort_msg("%s: no PSB at %#llx, where one cuts a packet", w->what,
			     (unsigned long long)psb);
	check_position(w, offset);
	while ((status = pt_pkt_next(w->ipt, &packet, sizeof(packet))) >= 0) {
		at += packet.size;
		if (at <= psb || ++n > 2)
			ck_abort_msg(
				"%s: a packet at %#llx is cut at %#llx, but libipt is at %#llx",
				w->what, (unsigned long long)offset, (unsigned long long)psb,
				(unsigned long long)at);
	}
	if (!n) {
		/* Of a kind that libipt does not know, or a BIP: not to be compared. */
		w->sum->excepted++;
	} else if (status == -pte_bad_packet || status == -pte_eos) {
		ck_assert_int_ge(pt_pkt_sync_forward(w->ipt), 0);
		check_position(w, psb);
	} else {
		ck_abort_msg("%s: libipt says %d after the cut packet at %#llx", w->what, status,
			     (unsigned long long)offset);
	}
	w->last_ip = 0;
	set_position(w, psb);
}

/* A loss reaches from the error to the next PSB. */
static void check_loss(struct walk *w, u64 offset, u64 size, int err)
{
	u64 psb = next_psb(w, err == VMPT_E_SYNC ? offset : offset + 1);
	struct pt_packet packet;
	int status;

	w->sum->losses[err]++;
	if (offset + size != psb)
		ck_abort_msg("%s: loss at %#llx ends at %#llx, the next PSB is at %#llx", w->what,
			     (unsigned long long)offset, (unsigned long long)(offset + size),
			     (unsigned long long)psb);
	if (err == VMPT_E_TRUNCATED && (w->data[offset] & 7) == 4) {
		/* A BIP cut by the end: libipt does not know blocks and reads a TNT. */
		w->sum->excepted++;
	} else if (err != VMPT_E_SYNC) {
		check_position(w, offset);
		status = pt_pkt_next(w->ipt, &packet, sizeof(packet));
		if (status != libipt_error(err, w->data + offset, w->size - offset))
			ck_abort_msg("%s: %#llx: error %d (%s), but libipt says %d", w->what,
				     (unsigned long long)offset, err, vmpt_strerror(err), status);
	}
	w->last_ip = 0;
	if (psb < w->size)
		set_position(w, psb);
}

static void check_item(struct walk *w, const struct vmpt_item *item, u64 base)
{
	struct one one = { base + item->offset, item->payload, item->size, item->kind, item->aux };
	u64 end;

	if (item->kind == VMPT_ITEM_LOSS && item->aux == VMPT_E_CUT) {
		check_cut(w, one.offset, item->payload);
		return;
	}
	if (item->kind == VMPT_ITEM_LOSS) {
		check_loss(w, one.offset, item->payload, item->aux);
		return;
	}
	if (item->kind != VMPT_ITEM_RUN) {
		check_one(w, &one);
		return;
	}
	one.size = 1;
	one.aux = 0;
	for (end = one.offset + item->size; one.offset < end; one.offset++) {
		one.payload = w->data[one.offset];
		one.kind = one.payload ? VMPT_PT_TNT_8 : VMPT_PT_PAD;
		check_one(w, &one);
	}
}

void libipt_walk(struct libipt_walk *sum, const u8 *data, u64 size,
		 const struct vmpt_options *options, const char *what)
{
	struct vmpt_stream stream = { .data = data, .size = size, .cpu = -1, .tid = -1 };
	struct walk w = { .sum = sum, .data = data, .size = size, .what = what };
	struct pt_config config;
	struct vmpt_source *source;
	struct vmpt_piece piece;
	struct pt_version version = pt_library_version();
	u64 reached = 0;
	size_t i;

	ck_assert_msg(version.major == LIBIPT_VERSION_MAJOR &&
			      version.minor == LIBIPT_VERSION_MINOR,
		      "built for libipt %u.%u, this is %u.%u: build anew", LIBIPT_VERSION_MAJOR,
		      LIBIPT_VERSION_MINOR, version.major, version.minor);
	pt_config_init(&config);
	/* libipt's parameter is not const; it does not write. */
	config.begin = (u8 *)(uintptr_t)data;
	config.end = config.begin + size;
	w.ipt = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(w.ipt);
	set_position(&w, 0);

	ck_assert_int_eq(vmpt_source_open(&source, &stream, options, true), 0);
	while (vmpt_source_next(source, &piece) == 1) {
		ck_assert_uint_eq(piece.start, reached);
		for (i = 0; i < piece.item_count; i++)
			check_item(&w, &piece.items[i], piece.start);
		reached = piece.end;
	}
	ck_assert_uint_eq(reached, size);
	vmpt_source_close(source);
	pt_pkt_free_decoder(w.ipt);
}
