// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PT's output through each level of EPT's tables (SDM 3 "EPT Misconfigurations", "EPT Violations",
 * "Accessed and Dirty Flags for EPT"): valid and invalid entries, and the exits' qualifications.
 * The output is 512 GiB away from the guest's other memory, so it has tables of its own.
 */
#include "gpa.h"

#define FAR_OUT	    (1ULL << 39)
#define LEVEL(n)    ((u64 *)(EPT_PAGES + 0x10000 + 0x1000ULL * (n))) /* after ept.c's */
#define WB	    (6ULL << 3)
#define LARGE	    0x80ULL
#define ACCESSED    0x100ULL
#define DIRTY	    0x200ULL
#define USER_FETCH  (1ULL << 10)
#define EPTP_AD	    0x40
#define SECOND_MODE (1u << 22) /* mode-based execute control */
#define CAP_EXECUTE 1ULL       /* IA32_VMX_EPT_VPID_CAP: entries that may only be executed */
#define CAP_GIB	    (1ULL << 17)

enum { PT, PD, PDPT, PML4 };

/* The entry of level @n on the way to the output's first page. */
static u64 *entry(unsigned int n)
{
	return n == PML4 ? (u64 *)EPT_PAGES + 1 : LEVEL(n);
}

/* Makes its tables, with valid 4-KiB pages, and a guest that traces 100 rounds to there. */
static void prepare(struct vm *vm)
{
	gpa_prepare(vm, RANGE);
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, FAR_OUT);
	memset(LEVEL(0), 0, 0x3000);
	for (unsigned int n = PD; n <= PML4; n++)
		*entry(n) = (u64)LEVEL(n - 1) | EPT_RWX;
	for (u64 i = 0; i < PAGES; i++)
		LEVEL(PT)[i] = (OUT + 0x1000 * i) | WB | EPT_RWX;
	vm->regs.rcx = 100;
}

/* Makes the entry at level @n a leaf that maps the output's address. */
static void leaf(unsigned int n, u64 flags)
{
	*entry(n) = (n == PDPT ? 0 : OUT) | (n ? LARGE : 0) | flags;
	if (n == PDPT)
		msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, FAR_OUT + OUT);
}

/* Runs the guest to its end, or to an exit of the output before its first instruction. */
static void expect(struct vm *vm, u32 reason, const char *what)
{
	u64 at = msr_read(VMPT_MSR_RTIT_OUTPUT_BASE);

	vm_run(vm);
	if (reason != vm->reason)
		wrong("%s: exit reason: want %x, got %x", what, (u64)reason, (u64)vm->reason);
	if (reason == REASON_VMCALL) {
		want(what, true, trace_size() > 100 && *(u64 *)OUT);
		return;
	}
	want("guest-physical address", at, vm->physical);
	want("the guest's RIP", (uintptr_t)guest_fill, vmread(F_GUEST_RIP));
	want("nothing is written", 0, *(u64 *)OUT);
}

/* Changes one entry by an XOR, and checks the exit. */
static void changed(unsigned int n, u64 bits, u32 reason, const char *what)
{
	struct vm vm;

	prepare(&vm);
	*entry(n) ^= bits;
	expect(&vm, reason, what);
}

static void types(void)
{
	static const bool right[8] = { [0] = true, [1] = true, [4] = true, [5] = true, [6] = true };
	struct vm vm;

	for (unsigned int n = PT; n <= PDPT; n++) {
		for (u64 type = 0; type < 8; type++) {
			prepare(&vm);
			leaf(n, type << 3 | EPT_RWX);
			expect(&vm, right[type] ? REASON_VMCALL : REASON_EPT_MISCONFIG,
			       "memory type");
		}
	}
}

static void reserved(void)
{
	u64 width = cpuid(0x80000008, 0).eax & 0xff, only = msr_read(MSR_VMX_EPT) & CAP_EXECUTE;

	for (unsigned int n = PT; n <= PML4; n++) {
		for (u64 bit = width; bit < 52; bit++)
			changed(n, 1ULL << bit, REASON_EPT_MISCONFIG, "beyond the physical width");
		for (u64 bit = 3; n && bit < 7; bit++)
			changed(n, 1ULL << bit, REASON_EPT_MISCONFIG,
				"bits 6:3 of a table's entry");
		changed(n, 5, REASON_EPT_MISCONFIG, "write only");
		changed(n, 1, REASON_EPT_MISCONFIG, "write and execute");
		changed(n, 3, only ? REASON_EPT_VIOLATION : REASON_EPT_MISCONFIG, "execute only");
		changed(n, 7, REASON_EPT_VIOLATION, "nothing");
		/* Bits 51:12 are ignored in an entry that is not present. */
		changed(n, 7 | 1ULL << width, REASON_EPT_VIOLATION, "nothing, with an address");
	}
	changed(PML4, LARGE, REASON_EPT_MISCONFIG, "a page of 512 GiB");
}

static void large(void)
{
	u64 gib = msr_read(MSR_VMX_EPT) & CAP_GIB;
	struct vm vm;

	for (unsigned int n = PD; n <= PDPT; n++) {
		bool is = n == PD || gib;

		prepare(&vm);
		leaf(n, WB | EPT_RWX);
		expect(&vm, is ? REASON_VMCALL : REASON_EPT_MISCONFIG, "a large page");
		for (unsigned int bit = 12; bit < 12 + 9 * n; bit++) {
			prepare(&vm);
			leaf(n, 1ULL << bit | WB | EPT_RWX);
			expect(&vm, REASON_EPT_MISCONFIG, "a large page that is not aligned");
		}
	}
}

/*
 * Each entry on the way gets the accessed flag, only the last one the dirty flag; none without
 * EPTP[6].
 */
static void flags(void)
{
	struct vm vm;

	for (unsigned int on = 0; on < 2; on++) {
		for (unsigned int last = PT; last <= PDPT; last++) {
			prepare(&vm);
			if (last)
				leaf(last, WB | EPT_RWX);
			vmwrite(F_EPTP, eptp() | (on ? EPTP_AD : 0));
			expect(&vm, REASON_VMCALL, "flags");
			for (unsigned int n = last; n <= PML4; n++)
				want("flags", on ? ACCESSED | (n == last ? DIRTY : 0) : 0,
				     *entry(n) & (ACCESSED | DIRTY));
		}
	}
}

/* Bits 5:3 of the qualification: the rights that all levels allow. */
static void rights(void)
{
	struct vm vm;

	for (unsigned int n = PT; n <= PML4; n++) {
		changed(n, 2, REASON_EPT_VIOLATION, "read and execute");
		changed(n, 6, REASON_EPT_VIOLATION, "read");
		for (u64 i = 0; i < 2; i++) {
			prepare(&vm);
			*entry(n) &= ~(i ? 6ULL : 2ULL);
			expect(&vm, REASON_EPT_VIOLATION, "rights");
			want("rights in the qualification", ASYNCHRONOUS | (i ? 1 : 5) << 3 | 2,
			     vm.qualification & ~0x40ULL);
			prepare(&vm);
			*entry(n) &= ~(i ? 7ULL : 2ULL);
			*entry(n == PML4 ? PT : n + 1) &= ~4ULL;
			expect(&vm, REASON_EPT_VIOLATION, "rights of two levels");
			want("rights of two levels", ASYNCHRONOUS | (i ? 0 : 1) << 3 | 2,
			     vm.qualification & ~0x40ULL);
		}
	}
}

/* Mode-based execute control: bit 10 makes an entry present, and is bit 6 of the qualification. */
static void by_mode(void)
{
	struct vm vm;

	if (!vmx_allows_secondary(SECOND_MODE)) {
		skip("the processor has no mode-based execute control");
		return;
	}
	for (unsigned int on = 0; on < 2; on++) {
		prepare(&vm);
		if (on)
			vmwrite(F_SECONDARY, vmread(F_SECONDARY) | SECOND_MODE);
		*entry(PT) = OUT | 2 << 3 | USER_FETCH;
		expect(&vm, on ? REASON_EPT_MISCONFIG : REASON_EPT_VIOLATION, "bit 10 alone");
	}
	for (unsigned int lacks = 0; lacks < 5; lacks++) {
		prepare(&vm);
		vmwrite(F_SECONDARY, vmread(F_SECONDARY) | SECOND_MODE);
		for (unsigned int n = PT; n <= PML4; n++)
			*entry(n) |= lacks && n == lacks - 1 ? 0 : USER_FETCH;
		*entry(PT) &= ~2ULL;
		expect(&vm, REASON_EPT_VIOLATION, "user's execute access");
		want("bit 6 of the qualification", lacks ? 0 : 0x40, vm.qualification & 0x40);
	}
}

const struct scenario ept_scenarios[] = { { "ept-types", types, GPA_NEEDS },
					  { "ept-reserved", reserved, GPA_NEEDS },
					  { "ept-large", large, GPA_NEEDS },
					  { "ept-flags", flags, GPA_NEEDS },
					  { "ept-rights", rights, GPA_NEEDS },
					  { "ept-mode", by_mode, GPA_NEEDS },
					  { 0 } };
