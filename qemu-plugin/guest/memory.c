// SPDX-License-Identifier: GPL-2.0-or-later
/* Guest-physical memory for trace output: a guest may use any address, but only RAM is accessed. */
#include "qemu-plugin/guest/internal.h"

int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct vcpu *vcpu = ((struct guest_vcpu *)opaque)->vcpu;

	if (!ram_has(vcpu->plugin, gpa, len) || !qemu_read_physical(vcpu->regs, gpa, buf, len))
		return VMPT_MEM_UNBACKED;
	return 0;
}

int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vcpu *vcpu = ((struct guest_vcpu *)opaque)->vcpu;

	if (!ram_has(vcpu->plugin, gpa, len) || !qemu_write_physical(vcpu->regs, gpa, buf, len))
		return VMPT_MEM_UNBACKED;
	return 0;
}

int guest_read_entry(void *opaque, u64 pa, u64 *entry)
{
	return guest_read(opaque, pa, entry, sizeof(*entry)) ? VMPT_OUTPUT_FAULT : 0;
}

int guest_write_output(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	return guest_write(opaque, pa, bytes, len) ? VMPT_OUTPUT_FAULT : 0;
}
