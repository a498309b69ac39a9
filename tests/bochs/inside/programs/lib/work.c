// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A second implementation, in C, of what the guest "work" (../../guests/work.S) computes: a VMM or
 * a processor that does one of its steps wrongly ends with another word.
 */
#include "guest.h"

#define WINDOW_A 0xaaaa0001
#define WINDOW_B 0xbbbb0002
#define PAT_WORD 0x00070406

u32 guest_port_data(u32 round)
{
	return round * 0x01000193;
}

u32 guest_mmio_data(u32 round)
{
	return 0xc0de0000 + round;
}

static u32 crc(u32 s)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		s = s & 1 ? s >> 1 ^ 0xedb88320 : s >> 1;
	return s;
}

static u32 deep(u32 s, u32 n)
{
	if (!n)
		return s;
	s = deep(s + n * 0x9e3779b1, n - 1);
	return s << 3 | s >> 29;
}

static u32 way(u32 s, u32 n, u32 round)
{
	switch (n & 3) {
	case 0:
		return s + 0x11111111;
	case 1:
		return s - 0x01020304;
	case 2:
		return ~s;
	default:
		return s ^ round;
	}
}

u32 guest_work_round(u32 s, u32 round, u32 flags, u32 port, u32 mmio)
{
	s = crc(s);
	s = deep(s, 5);
	s ^= 0x5a5a;		   /* a return to an address without a call */
	s = way(s, s, round);	   /* indirect call */
	s = way(s, s >> 2, round); /* indirect jump */
	s += 1;			   /* far return */
	s = s * 5 + 1;		   /* INT n */
	s += 0x101;		   /* #UD */
	if (flags & GUEST_PAGED) {
		s += WINDOW_B;
		s ^= WINDOW_A;
		s += 0x202; /* #PF */
	}
	if (flags & GUEST_SMC)
		s += round * 7;
	if (!(flags & GUEST_QUIET)) {
		s ^= port;
		s += mmio;
		s ^= GUEST_CPUID_WORD;
		s += PAT_WORD;
		s ^= 0x7777; /* the interrupt */
	}
	return s;
}
