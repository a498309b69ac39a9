// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host port: how software in the PC talks to the host. Two I/O ports, OUT only:
 *
 *	560H  dword  command
 *	564H  byte, word or dword, REP OUTS too: data, little-endian
 *
 *	command	data before it		effect
 *	1	name, NUL		a file NAME begins in the run's folder; data is its content
 *	2	content			the file ends
 *	3	name, NUL		NAME gets an image of the PC's memory
 *	4, 5				truth on, off (truth.cc)
 *	6	dword			a mark in the run's log
 *	7	dword			power off; the low byte is the run's status
 *	8	dword			1 NMI, 2 SMI, 3 INIT at the next instruction boundary
 */
#include "pc.h"

void vmpt_outp(Bit16u port, unsigned int len, Bit32u value)
{
	(void)port, (void)len, (void)value;
}
