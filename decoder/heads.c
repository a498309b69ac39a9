// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The table of heads.h. */
#include "decoder/heads.h"

/* Kinds whose second byte tells nothing have the same entry for all of them. */
static bool second_byte_tells(unsigned int first)
{
	return first == VMPT_PT_ESCAPE || first == vmpt_pt_table[VMPT_PT_MODE_EXEC].header[0] ||
	       (first & vmpt_pt_table[VMPT_PT_CYC].mask[0]) == vmpt_pt_table[VMPT_PT_CYC].header[0];
}

static void set_entry(struct vmpt_heads *heads, unsigned int first, unsigned int second)
{
	struct vmpt_pt_packet a, b;
	u8 zeros[VMPT_PT_SIZE_MAX] = { 0 }, ones[VMPT_PT_SIZE_MAX];
	unsigned int key = first | second << 8;

	memset(ones, 0xff, sizeof(ones));
	zeros[0] = ones[0] = (u8)first;
	zeros[1] = ones[1] = (u8)second;
	heads->kind[key] = VMPT_HEAD_NONE;
	heads->size[key] = 0;
	/* Two bytes tell if whatever follows makes no difference. */
	if (vmpt_pt_decode(&a, zeros, sizeof(zeros), 0) ||
	    vmpt_pt_decode(&b, ones, sizeof(ones), 0) || a.kind != b.kind || a.size != b.size)
		return;
	heads->kind[key] = a.kind;
	heads->size[key] = a.size;
}

void vmpt_heads_init(struct vmpt_heads *heads)
{
	unsigned int first, second;

	for (first = 0; first < 256; first++) {
		set_entry(heads, first, 0);
		for (second = 1; second < 256; second++) {
			if (second_byte_tells(first)) {
				set_entry(heads, first, second);
				continue;
			}
			heads->kind[first | second << 8] = heads->kind[first];
			heads->size[first | second << 8] = heads->size[first];
		}
	}
	/* A PSB ends every such walk, and so does a broken one. */
	heads->kind[vmpt_load16(vmpt_pt_table[VMPT_PT_PSB].header)] = VMPT_PT_PSB;
	heads->size[vmpt_load16(vmpt_pt_table[VMPT_PT_PSB].header)] =
		vmpt_pt_table[VMPT_PT_PSB].size;
}
