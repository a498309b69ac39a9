// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What is executed, written down independently of all packets. */
#include "pc.h"

void vmpt_truth_insn(unsigned int cpu, bxInstruction_c *i)
{
	(void)cpu, (void)i;
}

void pc_truth_start(struct pc_cpu *pc)
{
	(void)pc;
}

void pc_truth_stop(struct pc_cpu *pc)
{
	(void)pc;
}

void pc_truth_event(struct pc_cpu *pc, u64 from, u64 to)
{
	(void)pc, (void)from, (void)to;
}

void pc_truth_entry(struct pc_cpu *pc, u64 from, u64 to)
{
	(void)pc, (void)from, (void)to;
}

void pc_truth_exit(struct pc_cpu *pc, u64 from, u64 to)
{
	(void)pc, (void)from, (void)to;
}
