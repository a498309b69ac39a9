// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Finding PSBs, the places where packet boundaries are certain (SDM 3 33.4.2.17). */
#include "decoder/pt/source.h"

u64 vmpt_psb_find(const u8 *data, u64 from, u64 end)
{
	static const u8 psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	const u8 *p;

	if (from >= end)
		return end;
	p = memmem(data + from, end - from, psb, sizeof(psb));
	return p ? (u64)(p - data) : end;
}
