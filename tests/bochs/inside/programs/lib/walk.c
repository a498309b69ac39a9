// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Interrupts at each instruction in turn: see walk.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/io.h>

#include "kvm.h"
#include "walk.h"

#define PORT_COMMAND 0x560
#define PORT_DATA    0x564
#define ANEW	     9
#define WALK	     10

void walk_set(u32 begin, u32 first, u32 stride, u32 flags, u64 status)
{
	const u32 words[] = { begin, first, stride, flags, (u32)status, (u32)(status >> 32) };
	u32 i;

	if (iopl(3))
		die("iopl: %s", strerror(errno));
	outl(ANEW, PORT_COMMAND);
	for (i = 0; i < VMPT_ARRAY_SIZE(words); i++)
		outl(words[i], PORT_DATA);
	outl(WALK, PORT_COMMAND);
}
