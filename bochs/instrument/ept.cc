// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The walk of EPT's tables for PT: like Bochs's own (translate_guest_physical() in its
 * cpu/paging.cc), which exits at once. This one returns the exit that must come: it is
 * asynchronous to instruction execution (bit 16 of the exit qualification), has no linear
 * address and is never turned into a #VE. Besides violations and misconfigurations there are the
 * full page-modification log and the APIC-access page (SDM 3, "Translation of Guest-Physical
 * Addresses Used by Intel PT"), also asynchronous. A page under sub-page write permissions is
 * read-only here.
 *
 * Nothing is cached: INVEPT, VMFUNC and other processors' changes take effect at once.
 */
#include "ept.h"

#define READ	     1ULL
#define WRITE	     2ULL
#define EXECUTE	     4ULL
#define USER_EXECUTE (1ULL << 10) /* mode-based execute control */
#define LARGE	     0x80ULL
#define ACCESSED     0x100ULL
#define DIRTY	     0x200ULL

#define ADDRESS	    0x000ffffffffff000ULL
#define AD_FLAGS    0x40 /* of the EPTP */
#define PML_ENTRIES 512

/* Exit qualifications */
#define ASYNCHRONOUS (1ULL << 16)
/* APIC access: guest-physical access outside of event delivery */
#define APIC_GUEST_PHYSICAL (15ULL << 12)

struct walk {
	struct pc_cpu *pc;
	u64 gpa;
	unsigned int level;	/* 3: PML4 … 0: of the last entry read */
	u64 entry[4], place[4]; /* by level */
	u64 allowed;		/* READ, WRITE, EXECUTE, USER_EXECUTE so far */
};

static u64 get(struct walk *w, u64 pa)
{
	u8 bytes[8];
	u64 value;

	BX_MEM(0)->readPhysicalPage(w->pc->cpu, pa, 8, bytes);
	memcpy(&value, bytes, 8);
	return value;
}

static void put(struct walk *w, u64 pa, u64 value)
{
	u8 bytes[8];

	memcpy(bytes, &value, 8);
	BX_MEM(0)->writePhysicalPage(w->pc->cpu, pa, 8, bytes);
}

static bool fail(struct walk *w, struct ept_exit *exit, u32 reason, u64 qualification)
{
	exit->reason = reason;
	exit->qualification = qualification;
	exit->has_gpa =
		reason == VMX_VMEXIT_EPT_VIOLATION || reason == VMX_VMEXIT_EPT_MISCONFIGURATION;
	exit->gpa = w->gpa;
	return false;
}

static bool is_large(const struct walk *w)
{
	return w->level && w->entry[w->level] & LARGE;
}

/* Bits of the page's address below its size. */
static u64 below(const struct walk *w)
{
	return (0x1000ULL << 9 * w->level) - 1;
}

/* SDM 3, "EPT Misconfigurations" */
static bool misconfigured(const struct walk *w)
{
	const u64 entry = w->entry[w->level], type = entry >> 3 & 7;
	const bool gib = w->pc->cpu->is_cpu_extension_supported(BX_ISA_1G_PAGES);

	if ((entry & (READ | WRITE)) == WRITE)
		return true;
	if (entry & ADDRESS & ~vmpt_mask64(BX_PHY_ADDRESS_WIDTH))
		return true;
	if (w->level && !is_large(w))
		return entry & 0x78;
	if (is_large(w) && (w->level > (gib ? 2U : 1U) || entry & ADDRESS & below(w)))
		return true;
	/* UC, WC, WT, WP, WB */
	return type == 2 || type == 3 || type == 7;
}

static bool present(const struct walk *w)
{
	u64 bits = READ | WRITE | EXECUTE;

	if (w->pc->cpu->vmcs.vmexec_ctrls2.MBE_CTRL())
		bits |= USER_EXECUTE;
	return w->entry[w->level] & bits;
}

/* The permissions of all entries, as bits 6:3 of the exit qualification. */
static u64 allowed(const struct walk *w)
{
	bool user = w->pc->cpu->vmcs.vmexec_ctrls2.MBE_CTRL() && w->allowed & USER_EXECUTE;

	return (w->allowed & (READ | WRITE | EXECUTE)) << 3 | (user ? 0x40 : 0);
}

static bool find(struct walk *w, bool write, struct ept_exit *exit)
{
	u64 table = w->pc->cpu->vmcs.eptptr & ADDRESS, access = write ? WRITE : READ;

	w->allowed = READ | WRITE | EXECUTE | USER_EXECUTE;
	for (w->level = 3;; w->level--) {
		w->place[w->level] = table + (w->gpa >> (12 + 9 * w->level) & 0x1ff) * 8;
		w->entry[w->level] = get(w, w->place[w->level]);
		w->allowed &= w->entry[w->level];
		if (!present(w))
			break;
		if (misconfigured(w))
			return fail(w, exit, VMX_VMEXIT_EPT_MISCONFIGURATION, 0);
		if (!w->level || is_large(w))
			break;
		table = w->entry[w->level] & ADDRESS;
	}
	if (present(w) && w->allowed & access)
		return true;
	return fail(w, exit, VMX_VMEXIT_EPT_VIOLATION, ASYNCHRONOUS | allowed(w) | access);
}

/* Accessed and dirty flags, and the log of pages that become dirty. */
static bool mark(struct walk *w, bool write, struct ept_exit *exit)
{
	VMCS_CACHE *vm = &w->pc->cpu->vmcs;
	u64 *leaf = &w->entry[w->level], flags = ACCESSED | (write ? DIRTY : 0);

	if (!(vm->eptptr & AD_FLAGS))
		return true;
	if (write && !(*leaf & DIRTY) && vm->vmexec_ctrls2.PML_ENABLE()) {
		if (vm->pml_index >= PML_ENTRIES)
			return fail(w, exit, VMX_VMEXIT_PML_LOGFULL, ASYNCHRONOUS);
		put(w, vm->pml_address + 8ULL * vm->pml_index, w->gpa & ADDRESS);
		vm->pml_index--;
	}
	for (unsigned int level = 3; level > w->level; level--) {
		if (!(w->entry[level] & ACCESSED))
			put(w, w->place[level], w->entry[level] | ACCESSED);
	}
	if ((*leaf & flags) != flags)
		put(w, w->place[w->level], *leaf | flags);
	return true;
}

bool ept_translate(struct pc_cpu *pc, u64 gpa, bool write, u64 *pa, struct ept_exit *exit)
{
	const VMCS_CACHE *vm = &pc->cpu->vmcs;
	struct walk w = {};

	w.pc = pc;
	w.gpa = gpa;
	if (!find(&w, write, exit))
		return false;
	*pa = (w.entry[w.level] & ADDRESS & ~below(&w)) | (gpa & below(&w));
	if (vm->vmexec_ctrls2.VIRTUALIZE_APIC_ACCESSES() && (*pa & ADDRESS) == vm->apic_access_page)
		return fail(&w, exit, VMX_VMEXIT_APIC_ACCESS, ASYNCHRONOUS | APIC_GUEST_PHYSICAL);
	return mark(&w, write, exit);
}
