// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fast recognition of PSB+: see struct vmpt_psb_shape in tracker.h. A shape has the
 * header bits of each of its packets, which determine kind and size; payload bits are
 * not compared.
 */
#include "decoder/pt/tracker.h"

#define SHAPE_BYTES (8 * VMPT_PSB_SHAPE_WORDS)

/* Add the packet at byte @off of the PSB+ to the shape; false if shapes cannot have it. */
static bool add_packet(struct vmpt_psb_shape *shape, const u8 *p, unsigned int off,
		       unsigned int kind, unsigned int size)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];
	u8 *mask = (u8 *)shape->mask, *bytes = (u8 *)shape->bytes;
	unsigned int i;

	if (off + size > SHAPE_BYTES || kind == VMPT_PT_CYC ||
	    (kind == VMPT_PT_PIP && shape->pip) || (kind == VMPT_PT_VMCS && shape->vmcs) ||
	    (kind == VMPT_PT_TSC && shape->tsc))
		return false;
	for (i = 0; i < d->header_size; i++) {
		mask[off + i] = d->size_rule == VMPT_PT_SIZE_IP ? 0xff : d->mask[i];
		bytes[off + i] = p[i] & mask[off + i];
	}
	switch (kind) {
	case VMPT_PT_PIP:
		shape->pip = (u8)off;
		break;
	case VMPT_PT_VMCS:
		shape->vmcs = (u8)off;
		break;
	case VMPT_PT_TSC:
		shape->tsc = (u8)off;
		break;
	case VMPT_PT_FUP:
		shape->has_fup = true;
		break;
	}
	return true;
}

/* Keep the shape of the complete PSB+ at @at, if it has one. */
static void learn(struct vmpt_psb_shapes *shapes, const u8 *data, u64 at, u64 end,
		  const struct vmpt_psb_plus *psb)
{
	struct vmpt_psb_shape shape = { 0 };
	unsigned int off = 0, size = vmpt_pt_table[VMPT_PT_PSB].size;
	int kind = VMPT_PT_PSB;

	/* The PSB itself is known: it made the token. */
	for (;;) {
		if (kind < 0 || (kind != VMPT_PT_PSB && !add_packet(&shape, data + at + off, off,
								    (unsigned int)kind, size)))
			return;
		off += size;
		if (at + off >= psb->end)
			break;
		kind = vmpt_head_at(data, at + off, end, &size);
	}
	shape.size = (u8)off;
	shape.tokens = (u8)psb->tokens;
	shapes->shape[shapes->next] = shape;
	shapes->next = (shapes->next + 1) % VMPT_PSB_SHAPES;
}

static void read_shape(const struct vmpt_psb_shape *shape, const u8 *data, u64 at,
		       struct vmpt_psb_plus *psb)
{
	const u8 *p = data + at;

	psb->end = at + shape->size;
	psb->complete = true;
	psb->tokens = shape->tokens;
	psb->has_fup = shape->has_fup;
	psb->has_pip = shape->pip;
	psb->nr = vmpt_pip_nr(p + shape->pip);
	psb->cr3 = vmpt_pip_cr3(p + shape->pip);
	psb->has_vmcs = shape->vmcs;
	psb->vmcs = vmpt_vmcs_pointer(p + shape->vmcs);
	psb->tsc.any = shape->tsc;
	psb->tsc.first = psb->tsc.last = vmpt_tsc_value(p + shape->tsc);
}

const struct vmpt_psb_shape *vmpt_psb_plus_read(struct vmpt_psb_shapes *shapes, const u8 *data,
						u64 at, u64 end, struct vmpt_psb_plus *psb)
{
	unsigned int i;

	if (end - at >= SHAPE_BYTES) {
		for (i = 0; i < VMPT_PSB_SHAPES; i++) {
			if (shapes->shape[i].size && vmpt_psb_fits(&shapes->shape[i], data + at)) {
				read_shape(&shapes->shape[i], data, at, psb);
				shapes->last = i;
				return &shapes->shape[i];
			}
		}
	}
	vmpt_psb_plus_scan(data, at, end, psb);
	if (psb->complete && psb->end - at <= SHAPE_BYTES)
		learn(shapes, data, at, end, psb);
	return NULL;
}
