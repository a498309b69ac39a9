// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets added to a stream at the edges of its slices: a head, a return, a leave
 * (docs/vm-tracking.md). All are encoded from the packet table.
 */
#include "decoder/streams/internal.h"

static int put_kind(struct extract *x, struct out_stream *out, unsigned int kind)
{
	struct vmpt_pt_packet p = { .kind = (u8)kind };

	return vmpt_extract_put(x, out, &p);
}

static int put_pip(struct extract *x, struct out_stream *out, const struct paging *paging)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_PIP };

	if (!paging->known)
		return 0;
	p.pip.cr3 = paging->cr3;
	p.pip.nr = paging->nr && !x->options->conceal;
	return vmpt_extract_put(x, out, &p);
}

static bool cbr_changed(const struct extract *x, const struct out_stream *out)
{
	return x->source.cbr >= 0 && x->source.cbr != out->cbr;
}

static int put_cbr(struct extract *x, struct out_stream *out)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_CBR };

	if (!cbr_changed(x, out))
		return 0;
	out->cbr = x->source.cbr;
	p.cbr.ratio = (u64)out->cbr;
	return vmpt_extract_put(x, out, &p);
}

int vmpt_extract_head(struct extract *x, struct out_stream *out, const struct paging *paging)
{
	struct vmpt_pt_packet vmcs = { .kind = VMPT_PT_VMCS };
	int err = put_kind(x, out, VMPT_PT_PSB);

	if (!err)
		err = vmpt_extract_clock_head(x, out);
	if (!err)
		err = put_pip(x, out, paging);
	if (!err && out->owner.kind == VMPT_OWNER_VM && !x->options->conceal) {
		vmcs.vmcs.pointer = out->owner.vmcs;
		err = vmpt_extract_put(x, out, &vmcs);
	}
	out->cbr = -1;
	out->tsx = -1;
	if (!err)
		err = put_cbr(x, out);
	if (!err)
		err = put_kind(x, out, VMPT_PT_PSBEND);
	out->last_ip = 0;
	out->packet_en = out->packet_unknown = false;
	out->needs_head = false;
	x->done.head = true;
	return err;
}

int vmpt_extract_cycles(struct extract *x, struct out_stream *out)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_CYC };

	if (!out->cycles)
		return 0;
	p.cyc.cycles = out->cycles;
	out->cycles = 0;
	return vmpt_extract_put(x, out, &p);
}

static int put_mode(struct extract *x, struct out_stream *out, unsigned int kind, int mode)
{
	struct vmpt_pt_packet p;
	u8 wire[2] = { vmpt_pt_table[kind].header[0], (u8)mode };

	if (vmpt_pt_decode(&p, wire, sizeof(wire), 0))
		return -VMPT_E_INVAL;
	return vmpt_extract_put(x, out, &p);
}

int vmpt_extract_enable(struct extract *x, struct out_stream *out, u64 ip)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_TIP_PGE };
	int err = 0;

	/* Always: the VMM may have changed the mode while the guest was out. */
	if (x->source.exec >= 0)
		err = put_mode(x, out, VMPT_PT_MODE_EXEC, x->source.exec);
	if (!err && x->source.tsx >= 0 && x->source.tsx != out->tsx) {
		out->tsx = x->source.tsx;
		err = put_mode(x, out, VMPT_PT_MODE_TSX, out->tsx);
	}
	if (err)
		return err;
	p.ip.ipbytes = vmpt_pt_ip_full(ip);
	p.ip.ip = vmpt_pt_ip_payload(ip, (unsigned int)p.ip.ipbytes);
	out->last_ip = ip;
	out->packet_en = true;
	return vmpt_extract_put(x, out, &p);
}

int vmpt_extract_return(struct extract *x, struct out_stream *out, const struct paging *paging,
			const u64 *ip)
{
	int err = put_pip(x, out, paging);

	x->done.returned = true;
	x->done.returned_pip = paging->known;
	x->done.returned_cbr = cbr_changed(x, out);
	if (!err)
		err = put_cbr(x, out);
	x->done.enabled = ip;
	if (!err && ip)
		err = vmpt_extract_enable(x, out, *ip);
	return err;
}

int vmpt_extract_leave(struct extract *x, struct out_stream *out, bool *left)
{
	*left = out->packet_en;
	if (!out->packet_en)
		return 0;
	out->packet_en = false;
	return put_kind(x, out, VMPT_PT_TIP_PGD);
}
