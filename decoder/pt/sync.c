// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Finding PSBs, the places where packet boundaries are certain (SDM 3 33.4.2.17). */
#include "decoder/pt/source.h"

static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};

u64 vmpt_psb_find(const u8 *data, u64 from, u64 end)
{
	const u8 *p;

	if (from >= end)
		return end;
	p = memmem(data + from, end - from, psb, sizeof(psb));
	return p ? (u64)(p - data) : end;
}

u64 vmpt_psb_across(const u8 *data, u64 from, u64 at, u64 end)
{
	u64 to = at;

	/* A whole PSB at @at: nothing is missing. */
	if (end - at >= sizeof(psb) && !memcmp(data + at, psb, sizeof(psb)))
		return 0;
	/* The end of the pattern; 16 bytes of it are a PSB that begins after @at. */
	to += to < end && data[to] == psb[1];
	while (to < at + sizeof(psb) && end - to >= 2 && !memcmp(data + to, psb, 2))
		to += 2;
	if (to >= at + sizeof(psb) || to - from <= sizeof(psb) ||
	    memcmp(data + to - sizeof(psb), psb, sizeof(psb)))
		return 0;
	return to - sizeof(psb);
}
