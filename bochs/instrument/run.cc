// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Start and end of the library, and the processors' state for the trace unit. */
#include "pc.h"

#include <cstdio>
#include <cstdlib>

Bit8u vmpt_watch[VMPT_BOCHS_CPUS];
struct pc_cpu *pc_cpus[VMPT_BOCHS_CPUS];

const char *pc_folder(void)
{
	const char *folder = getenv("VMPT_BOCHS_OUT");

	return folder && *folder ? folder : ".";
}

static void pmi(void *opaque)
{
	pc_pmi(static_cast<struct pc_cpu *>(opaque));
}

void vmpt_initialize(unsigned int cpu)
{
	const char *times = getenv("VMPT_BOCHS_TIMES");
	struct vmpt_unit_config config = {};
	struct pc_cpu *pc;

	if (cpu >= VMPT_BOCHS_CPUS) {
		fprintf(stderr, "vmpt: no more than %d processors\n", VMPT_BOCHS_CPUS);
		exit(2);
	}
	pc_options_read();
	pc = new struct pc_cpu();
	pc->id = cpu;
	pc->cpu = BX_CPU(cpu);
	pc_memory_init(pc);
	config.cpuid = pc_options.cpuid;
	config.options = pc_options.unit;
	config.memory = &pc->memory;
	config.pmi = pmi;
	config.opaque = pc;
	if (vmpt_unit_init(&pc->unit, &config)) {
		fprintf(stderr, "vmpt: no trace unit\n");
		exit(2);
	}
	pc_cpus[cpu] = pc;
	if (times && *times)
		pc_times_start(pc, times);
}

void vmpt_exit(unsigned int cpu)
{
	(void)cpu;
	vmpt_environment_exit();
}

/* Bochs has several paths to its end; the first call counts. */
void vmpt_environment_exit(void)
{
	static bool done;

	if (done || !pc_cpus[0])
		return;
	done = true;
	pc_port_end();
	for (struct pc_cpu *pc : pc_cpus) {
		if (!pc)
			continue;
		pc_truth_stop(pc);
		pc_times_stop(pc);
		pc_walk_end(pc);
		(void)vmpt_unit_flush(&pc->unit);
		pc_log_counts(pc);
		pc_truth_report(pc);
	}
	pc_log("end");
}

void pc_mode(const struct pc_cpu *pc, struct vmpt_mode *mode)
{
	const BX_CPU_C *c = pc->cpu;
	bool lma = c->efer.get_LMA();

	*mode = {};
	mode->cr3 = c->cr3;
	mode->cpl = c->sregs[BX_SEG_REG_CS].selector.rpl;
	if (!c->cr0.get_PE())
		mode->cpl = 0;
	mode->pae = c->cr0.get_PG() && c->cr4.get_PAE() && !lma;
	mode->cs_l = lma && c->sregs[BX_SEG_REG_CS].cache.u.segment.l;
	mode->cs_d = !mode->cs_l && c->sregs[BX_SEG_REG_CS].cache.u.segment.d_b;
	mode->rflags_if = const_cast<BX_CPU_C *>(c)->get_IF() != 0;
}

void pc_watch(struct pc_cpu *pc)
{
	u64 ctl = pc->unit.regs.ctl;
	u8 watch = pc_truth_writes(pc) ? VMPT_WATCH_TRUTH : 0;

	/* The walk sees instructions as the truth does. */
	if (pc->walk.inside)
		watch |= VMPT_WATCH_TRUTH;
	if (ctl & VMPT_CTL_TRACE_EN) {
		watch |= VMPT_WATCH_PT;
		/* With EventEn = 0, too: the next MODE.Exec has it (Table 33-26). */
		if (vmpt_pt_cap(&pc->unit.config.cpuid, VMPT_CAP_EVENT))
			watch |= VMPT_WATCH_IF;
	}
	vmpt_watch[pc->id] = watch;
}
