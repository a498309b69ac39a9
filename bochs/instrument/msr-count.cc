// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A VMM's cost in RDMSR and WRMSR: for each VMCS how many of them were executed between a VM
 * exit and the next VM entry, separately for PT's and all others. A mark (port.cc) writes the
 * counts since the last one into the run's log, and resets them:
 *
 *	msrs cpu N vmcs ADDRESS pt READS WRITES others READS WRITES count N
 *
 * The last N is the number of windows with these counts. Accesses by the transitions' lists and by
 * the guest are not counted.
 */
#include "pc.h"

#include <array>
#include <map>

struct pc_msr_counts {
	bool open; /* between an exit of that VMCS and an entry */
	u64 vmcs;
	std::array<u32, 4> now; /* PT read, written, others read, written */
	std::map<u64, std::map<std::array<u32, 4>, u64>> windows;
};

void pc_msr_count(struct pc_cpu *pc, u32 index, bool write)
{
	struct pc_msr_counts *counts = pc->msr_counts;

	if (counts && counts->open && !pc->in_entry && !pc->in_exit)
		counts->now[(vmpt_pt_is_msr(index) ? 0 : 2) + write]++;
}

void pc_msr_count_exit(struct pc_cpu *pc)
{
	if (!pc->msr_counts)
		pc->msr_counts = new struct pc_msr_counts();
	pc->msr_counts->open = true;
	pc->msr_counts->vmcs = pc->cpu->vmcsptr;
	pc->msr_counts->now = {};
}

void pc_msr_count_entry(struct pc_cpu *pc)
{
	struct pc_msr_counts *counts = pc->msr_counts;

	if (!counts || !counts->open)
		return;
	if (counts->vmcs == pc->cpu->vmcsptr)
		counts->windows[counts->vmcs][counts->now]++;
	counts->open = false;
}

void pc_msr_count_report(struct pc_cpu *pc)
{
	if (!pc->msr_counts)
		return;
	for (auto &vmcs : pc->msr_counts->windows)
		for (auto &w : vmcs.second)
			pc_log("msrs cpu %u vmcs %llx pt %u %u others %u %u count %llu", pc->id,
			       (unsigned long long)vmcs.first, w.first[0], w.first[1], w.first[2],
			       w.first[3], (unsigned long long)w.second);
	pc->msr_counts->windows.clear();
}
