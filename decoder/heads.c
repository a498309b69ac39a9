// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The table of heads.h. */
#include "decoder/heads.h"

void vmpt_heads_init(struct vmpt_heads *heads)
{
	struct vmpt_pt_packet a, b;
	unsigned int key;
	u8 zeros[VMPT_PT_SIZE_MAX] = { 0 }, ones[VMPT_PT_SIZE_MAX];

	memset(ones, 0xff, sizeof(ones));
	for (key = 0; key < 65536; key++) {
		zeros[0] = ones[0] = (u8)key;
		zeros[1] = ones[1] = (u8)(key >> 8);
		heads->kind[key] = VMPT_HEAD_NONE;
		heads->size[key] = 0;
		/* Two bytes tell if whatever follows makes no difference. */
		if (vmpt_pt_decode(&a, zeros, sizeof(zeros), 0) ||
		    vmpt_pt_decode(&b, ones, sizeof(ones), 0) || a.kind != b.kind ||
		    a.size != b.size)
			continue;
		heads->kind[key] = a.kind;
		heads->size[key] = a.size;
	}
}
