// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PT's output in the PC's memory, and the VM exits that it causes where "Intel PT uses guest
 * physical addresses" sends it through EPT. The rules:
 *
 * - The processor translates ahead (check()): the page of the next byte at VM entry,
 *   RSM and WRMSR that sets TraceEn; the following page while the current one still has room for
 *   AHEAD bytes, more than can be pending in the unit. A failed translation becomes a VM exit at
 *   the next instruction boundary (BX_EVENT_VMX_PT_OUTPUT), which may directly follow a VM
 *   entry, before the guest's first instruction. Until then packets stay in the unit.
 * - Such an exit is only a request: another exit before it (SMI too) discards it, and the next
 *   entry or RSM finds it again, since it translates again. In HLT it is taken, and HLT is the
 *   activity state that it saves; so the guest sleeps on when it is resumed.
 * - The exit, like each one under this control, clears TraceEn. Bytes without a page
 *   then (the page of the next byte was missing at the entry or when TraceEn was set, or vanished
 *   while the guest ran) are kept with the VMCS, the OUTPUT MSRs' position and the software-written
 *   part of IA32_RTIT_STATUS, which has the count of bytes (PacketByteCnt). At the next entry where
 *   all of these match they come back, before anything else is traced, even if TraceEn stays 0. No
 *   byte is lost, and none is written twice. This holds over VMCLEAR and on another processor, as a
 *   VMM may move a guest. A new guest whose VMCS is in the page of an old one has a STATUS of its
 *   own, which is 0; on a PC without PacketByteCnt (--pt no-psb-cyc) it can get the bytes of the
 *   old one.
 * - A VMM that does not fix the page gets the exit again at once. The packets of each entry and
 *   exit stay pending, too; when the unit's buffer is full it overflows, with an OVF once there is
 *   room. A VMM that changes OUTPUT_BASE, OUTPUT_MASK_PTRS or STATUS in between wants
 *   another trace: pending bytes are dropped, with a line in Bochs's log. The guest cannot do
 *   that: the exit comes before its next WRMSR.
 *
 * Restricted memory (SDM 3 33.2.7.4, Table 33-5): bytes for addresses that are not RAM (nothing,
 * the local APIC, devices, ROM, SMRAM below 000C0000H) are dropped, and output goes on; no device
 * sees them. A ToPA table in the local APIC, a device's memory or SMRAM is an error; where there
 * is nothing it reads as all ones, which is an error, too.
 */
#include "ept.h"

#include <cinttypes>
#include <map>

#undef LOG_THIS
#define LOG_THIS pc->cpu->

/* Room in a page below which the next page is translated. */
#define PAGE  4096
#define AHEAD (PAGE - VMPT_UNIT_BUFFER)

/* Bytes that wait for the next entry of a VMCS. */
struct waiting {
	u64 output_base, output_mask_ptrs, status;
	struct vmpt_unit_rest rest;
};

static std::map<u64, struct waiting> waiting;

/* Without the bits that WRMSR does not change (SDM 3 Table 33-7): they are of the last trace run.
 */
static u64 written_status(u64 status)
{
	return status & ~(VMPT_STATUS_FILTER_EN | VMPT_STATUS_CONTEXT_EN | VMPT_STATUS_TRIGGER_EN);
}

static bool uses_ept(const struct pc_cpu *pc)
{
	return pc->ept.on && pc->unit.vmx.nonroot;
}

/* *@pa as the processor has it, or a VM exit to come. */
static bool translate(struct pc_cpu *pc, u64 *pa, bool write)
{
	struct ept_exit exit;

	if (!uses_ept(pc) || ept_translate(pc, *pa, write, pa, &exit))
		return true;
	if (!pc->ept.exit.reason)
		pc->ept.exit = exit;
	pc->cpu->signal_event(BX_EVENT_VMX_PT_OUTPUT);
	return false;
}

/* ---- the unit's memory ---- */

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct pc_cpu *pc = static_cast<struct pc_cpu *>(opaque);
	u8 bytes[8];

	if (!translate(pc, &pa, false))
		return -VMPT_E_RETRY;
	if (pc->cpu->lapic->is_selected(pa) || !BX_MEM(0)->getHostMemAddr(nullptr, pa, BX_READ))
		return VMPT_OUTPUT_FAULT;
	BX_MEM(0)->readPhysicalPage(pc->cpu, pa, 8, bytes);
	memcpy(entry, bytes, 8);
	return 0;
}

/* Bochs returns no pointer to a page that MWAIT or UMWAIT monitors, although it is RAM. */
static bool is_ram(struct pc_cpu *pc, u64 pa)
{
	return !pc->cpu->lapic->is_selected(pa) &&
	       (BX_MEM(0)->getHostMemAddr(nullptr, pa, BX_WRITE) ||
		BX_MEM(0)->is_monitor(pa & ~(u64)(PAGE - 1), PAGE - 1));
}

static int write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct pc_cpu *pc = static_cast<struct pc_cpu *>(opaque);

	if (!translate(pc, &pa, true))
		return -VMPT_E_RETRY;
	if (!is_ram(pc, pa))
		return VMPT_OUTPUT_DROPPED;
	BX_MEM(0)->writePhysicalPage(pc->cpu, pa, (unsigned int)len, const_cast<u8 *>(bytes));
	return 0;
}

void pc_memory_init(struct pc_cpu *pc)
{
	pc->memory.read_entry = read_entry;
	pc->memory.write = write;
	pc->memory.opaque = pc;
}

/* ---- translation ahead ---- */

static void check(struct pc_cpu *pc)
{
	struct vmpt_output *out = &pc->unit.output;
	u64 at, place, next;

	/* If there is no region yet, its table could not be read: that exit is due. */
	if (!uses_ept(pc) || !pc->unit.trigger_en || !out->loaded)
		return;
	at = out->region + vmpt_pt_output_offset(&pc->unit.regs);
	place = at;
	if (!translate(pc, &place, true) || PAGE - at % PAGE > AHEAD)
		return;
	if (!vmpt_output_next(out, &next))
		(void)translate(pc, &next, true);
}

void pc_flush(struct pc_cpu *pc)
{
	(void)vmpt_unit_flush(&pc->unit);
	if (pc->unit.in_overflow)
		vmpt_unit_overflow_resolve(&pc->unit, pc_next(pc));
	check(pc);
}

/* ---- VM entries and exits ---- */

void pc_memory_enter(struct pc_cpu *pc)
{
	const u64 vmcs = pc->cpu->vmcsptr;
	const struct vmpt_pt_regs *regs = &pc->unit.regs;

	pc->ept.exit = {};
	pc->ept.on = pc->cpu->in_vmx_guest && pc->cpu->vmcs.vmexec_ctrls2.PROCESSOR_TRACE_USE_GPA();
	if (!pc->ept.on || waiting.empty())
		return;
	auto kept = waiting.find(vmcs);
	if (kept == waiting.end())
		return;
	if (kept->second.output_base == regs->output_base &&
	    kept->second.output_mask_ptrs == regs->output_mask_ptrs &&
	    kept->second.status == written_status(regs->status))
		vmpt_unit_rest_give(&pc->unit, &kept->second.rest);
	else
		BX_INFO(("PT: VMCS %" PRIx64
			 " has another trace now; %u bytes of the old one waited",
			 vmcs, kept->second.rest.used));
	waiting.erase(kept);
}

void pc_memory_leave(struct pc_cpu *pc)
{
	if (pc->ept.on && pc->unit.used) {
		struct waiting *kept = &waiting[pc->cpu->vmcsptr];

		kept->output_base = pc->unit.regs.output_base;
		kept->output_mask_ptrs = pc->unit.regs.output_mask_ptrs;
		kept->status = written_status(pc->unit.regs.status);
		vmpt_unit_rest_take(&pc->unit, &kept->rest);
	}
	pc->ept.on = pc->ept.exits = false;
	pc->ept.exit = {};
	pc->cpu->clear_event(BX_EVENT_VMX_PT_OUTPUT);
}

void pc_memory_reset(struct pc_cpu *pc)
{
	waiting.clear();
	pc->ept.on = pc->ept.exits = false;
	pc->ept.exit = {};
}

void vmpt_pt_output_exit(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct ept_exit exit = pc->ept.exit;

	pc->ept.exit = {};
	if (!exit.reason || !pc->cpu->in_vmx_guest)
		return;
	if (exit.has_gpa)
		pc->cpu->VMwrite64(VMCS_64BIT_GUEST_PHYSICAL_ADDR, exit.gpa);
	pc->ept.exits = true;
	pc->cpu->VMexit(exit.reason, exit.qualification);
}

bool vmpt_pt_output_exits(unsigned int cpu)
{
	return pc_of(cpu)->ept.exits;
}
