/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * VMX operation under exact control: a struct vm has all that a scenario may vary, and vm_run()
 * enters the guest with no branch between WRMSR, VM entry, VM exit and the next WRMSR, so that its
 * trace has only the packets of the transitions.
 */
#ifndef VMPT_TESTS_BARE_VMX_H
#define VMPT_TESTS_BARE_VMX_H

#include "lib.h"
#include "vmx-fields.h"

/* In the processor's order; layout.h has the offsets of what follows. */
struct vm_regs {
	u64 rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, unused;
	/* WRMSR before the entry, and after the exit or the failure */
	u64 in_msr, in_value, out_msr, out_value;
	u64 flags; /* RFLAGS after a VM entry that failed early, else 0 */
	u64 launched;
};

enum vm_mode { VM_64, VM_32, VM_16 };

struct vm_list {
	u32 msr, zero;
	u64 value;
} __attribute__((aligned(16)));

/* A guest's settings beyond vm_default(). */
struct vm {
	u8 mode; /* enum vm_mode */
	u8 vmcs; /* which of the VMCSs, 0 or 1 */
	u8 cpl;
	u32 pin, primary, secondary, exit, entry; /* bits that must be 1 are added */
	u64 rip, rsp, cr3, rtit_ctl, tsc_offset, tsc_multiplier;
	struct vm_list *entry_load, *exit_store, *exit_load;
	u32 entry_loads, exit_stores, exit_loads;
	struct vm_regs regs;
	/* after vm_run() */
	u32 reason, event, error; /* error: the VM-instruction error */
	u64 qualification, physical;
};

/* ---- vmx.c ---- */

static inline u64 vmread(u64 field)
{
	u64 value;

	__asm__ volatile("vmread %1, %0" : "=r"(value) : "r"(field) : "cc");
	return value;
}

static inline void vmwrite(u64 field, u64 value)
{
	__asm__ volatile("vmwrite %1, %0" : : "r"(field), "r"(value) : "cc");
}

/* Returns @otherwise if there is no such field. */
static inline u64 vmread_or(u64 field, u64 otherwise)
{
	u64 value = otherwise;

	__asm__ volatile("vmread %1, %0" : "+r"(value) : "r"(field) : "cc");
	return value;
}

/* Physical addresses of the VMCSs. */
#define VMCS(n)	   (VMX_PAGES + 0x1000 * (1ULL + (n)))
#define MSR_BITMAP (VMX_PAGES + 0x3000)
#define LISTS	   (VMX_PAGES + 0x4000)

void vmx_on(void);
void vmx_off(void);
/* The scenario has executed VMXOFF itself. */
void vmx_was_off(void);
bool vmx_is_on(void);
void vmclear(u64 vmcs);
void vmptrld(u64 vmcs);
/* Returns whether these bits of a control field may be 1. */
bool vmx_allows(u32 true_msr, u32 bits);
bool vmx_allows_secondary(u32 bits);

/* A 64-bit guest at @rip with all of the PC's memory and only the controls that it needs. */
void vm_default(struct vm *vm, void (*rip)(void));
/* VMCLEAR, VMPTRLD, all fields. */
void vm_load(struct vm *vm);
/* The current VMCS, set up by vm_load(): until the next exit, of any kind. */
void vm_run(struct vm *vm);
/* Run it to a VMCALL; CPUID is executed for it. False: wrong() was called. */
bool vm_run_to_call(struct vm *vm);
/* Advance the guest's RIP over the instruction that exited. */
void vm_skip(void);
/* Calls @function in the current 64-bit guest; returns RAX. */
u64 vm_call(struct vm *vm, void *function, u64 rdi, u64 rsi);
/* The same for guest_rdmsr() and its like: RCX, RAX, RDX; returns RDI. */
u64 vm_execute(struct vm *vm, void (*code)(void), u64 rcx, u64 rax, u64 rdx);
/* The kind of early failure: 0 none, 1 VMfailInvalid, 2 VMfailValid. */
unsigned int vm_failed(const struct vm *vm);

/* ---- vmx-run.S ---- */

void vmx_enter(struct vm_regs *regs);
extern const char vmexit_at[];

/* ---- ept.c: identity, 2-MiB pages, up to RAM_END ---- */

#define EPT_RWX 7
void ept_init(void);
/* One page of 4 KiB; @rights 0: not present. Takes a table for its 2 MiB if it has none. */
void ept_page(u64 gpa, u64 hpa, u64 rights);
u64 eptp(void);
void ept_flush(void);
/* The entry of a page that ept_page() made. */
u64 ept_entry(u64 gpa);

/* ---- guest.S ---- */

void guest_call(void);
void guest_branches(void);
void guest_empty(void);
void guest_call_done(void);
void guest_cr3(void);
void guest_32(void);
void guest_hlt(void);
void guest_nmi(void);
void guest_fill(void);
void guest_rdmsr(void);
void guest_wrmsr(void);
void guest_mov_cr3(void);
extern const char guest_16[], guest_16_end[];

#endif
