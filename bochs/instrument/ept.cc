// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets to the PC's memory: to physical addresses, or in VMX non-root operation with "Intel PT
 * uses guest physical addresses" through EPT.
 */
#include "pc.h"

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct pc_cpu *pc = static_cast<struct pc_cpu *>(opaque);
	u8 bytes[8];

	BX_MEM(0)->readPhysicalPage(pc->cpu, pa, 8, bytes);
	memcpy(entry, bytes, 8);
	return 0;
}

static int write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct pc_cpu *pc = static_cast<struct pc_cpu *>(opaque);

	BX_MEM(0)->writePhysicalPage(pc->cpu, pa, (unsigned int)len, const_cast<u8 *>(bytes));
	return 0;
}

void pc_memory_init(struct pc_cpu *pc)
{
	pc->memory.read_entry = read_entry;
	pc->memory.write = write;
	pc->memory.opaque = pc;
}

void pc_memory_changed(struct pc_cpu *pc)
{
	vmpt_output_unload(&pc->unit.output);
}

void vmpt_pt_output_exit(unsigned int cpu)
{
	(void)cpu;
}
