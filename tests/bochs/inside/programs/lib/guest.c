// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Puts a guest into a VM's memory: its blob, descriptor tables and page tables for the mode it
 * starts in, and the vCPU's registers. See guest.h and ../../guests.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "guest.h"

#define GDT	      GUEST_TABLES
#define IDT	      (GUEST_TABLES + 0x1000)
#define SELECTOR_CODE 8
#define SELECTOR_DATA 16
#define SELECTOR_TSS  24

#define CR0_PE	 1u
#define CR0_ET	 0x10u
#define CR0_NE	 0x20u
#define CR0_PG	 0x80000000u
#define CR4_PAE	 0x20u
#define CR4_PSE	 0x10u
#define EFER_LME 0x100u
#define EFER_LMA 0x400u
#define PTE	 7u /* present, writable, user */
#define LARGE	 0x80u

#define BLOB(name) extern const u8 guest_##name[], guest_##name##_end[]
BLOB(work16);
BLOB(work32);
BLOB(work64);
BLOB(script32);
BLOB(script64);

const char *const guest_mode_names[GUEST_MODES] = {
	"real16", "prot32", "page32", "pae32", "long64",
};

enum guest_mode guest_mode_find(const char *name)
{
	enum guest_mode mode;

	for (mode = 0; mode < GUEST_MODES; mode++) {
		if (!strcmp(name, guest_mode_names[mode]))
			break;
	}
	return mode;
}

static bool paged(enum guest_mode mode)
{
	return mode >= GUEST_PAGE32;
}

static void put64(const struct vm *vm, u64 gpa, u64 value)
{
	memcpy(vm_at(vm, gpa, 8), &value, 8);
}

static void put32(const struct vm *vm, u64 gpa, u32 value)
{
	memcpy(vm_at(vm, gpa, 4), &value, 4);
}

/* The gate of a vector in the table of the mode. */
static void set_gate(const struct vm *vm, enum guest_mode mode, u32 vector, u32 handler)
{
	u64 gate;

	if (mode == GUEST_REAL16) {
		put32(vm, vector * 4, handler | (GUEST_BLOB / 16) << 16);
		return;
	}
	gate = (handler & 0xffff) | SELECTOR_CODE << 16 | 0x8eull << 40 |
	       (u64)(handler >> 16) << 48;
	put64(vm, IDT + vector * (mode == GUEST_LONG64 ? 16 : 8), gate);
}

static void set_gates(const struct vm *vm, enum guest_mode mode, const struct guest_head *head)
{
	u32 vector;

	for (vector = 0; vector < 256; vector++)
		set_gate(vm, mode, vector, head->on_bad);
	set_gate(vm, mode, 6, head->on_ud);
	set_gate(vm, mode, 13, head->on_gp);
	set_gate(vm, mode, 14, head->on_pf);
	set_gate(vm, mode, GUEST_VECTOR_INT, head->on_int);
	set_gate(vm, mode, GUEST_VECTOR_IRQ, head->on_irq);
}

static void set_segments(const struct vm *vm, enum guest_mode mode)
{
	u64 code = mode == GUEST_LONG64 ? 0x00af9b000000ffff : 0x00cf9b000000ffff;

	put64(vm, GDT, 0);
	put64(vm, GDT + SELECTOR_CODE, code);
	put64(vm, GDT + SELECTOR_DATA, 0x00cf93000000ffff);
}

/*
 * A page-table entry of the first 4 MiB, 1:1 but for a hole; in space 1 the window is the page
 * after it.
 */
static u64 page(u32 index, unsigned int space)
{
	u64 gpa = (u64)index << 12;

	if (gpa == GUEST_HOLE)
		return 0;
	if (gpa == GUEST_WINDOW)
		gpa += space * 0x1000;
	return gpa | PTE;
}

/* Page tables of one address space; returns its CR3. */
static u32 set_space(const struct vm *vm, enum guest_mode mode, unsigned int space)
{
	u32 base = GUEST_PAGING + space * GUEST_PAGING_SIZE;
	u32 tables = base + 0x4000; /* two of 512, or one of 1024 entries */
	u32 i;

	if (mode == GUEST_PAGE32) {
		put32(vm, base, tables | PTE);
		for (i = 0; i < 1024; i++)
			put32(vm, tables + i * 4, (u32)page(i, space));
		for (i = 1; i < 4; i++)
			put32(vm, base + i * 4, i << 22 | PTE | LARGE);
		return base;
	}
	/* base: PML4, +0x1000 PDPT, +0x2000 page directory */
	put64(vm, base, (base + 0x1000) | PTE);
	put64(vm, base + 0x1000, (base + 0x2000) | (mode == GUEST_PAE32 ? 1 : PTE));
	put64(vm, base + 0x2000, tables | PTE);
	put64(vm, base + 0x2008, (tables + 0x1000) | PTE);
	for (i = 2; i < 8; i++)
		put64(vm, base + 0x2000 + i * 8, (u64)i << 21 | PTE | LARGE);
	for (i = 0; i < 1024; i++)
		put64(vm, tables + i * 8, page(i, space));
	return mode == GUEST_PAE32 ? base + 0x1000 : base;
}

static struct guest_head *load(struct vm *vm, enum guest_mode mode, const u8 *blob, const u8 *end)
{
	struct guest_head *head = vm_at(vm, GUEST_BLOB, (size_t)(end - blob));
	unsigned int space;

	memcpy(head, blob, (size_t)(end - blob));
	set_segments(vm, mode);
	set_gates(vm, mode, head);
	if (paged(mode)) {
		for (space = 0; space < 2; space++)
			head->cr3[space] = set_space(vm, mode, space);
		head->flags |= GUEST_PAGED;
	}
	if (vm->irqchip)
		head->flags |= GUEST_X2APIC;
	return head;
}

struct guest_head *guest_load_work(struct vm *vm, enum guest_mode mode)
{
	struct guest_head *head;

	if (mode == GUEST_REAL16)
		head = load(vm, mode, guest_work16, guest_work16_end);
	else if (mode == GUEST_LONG64)
		head = load(vm, mode, guest_work64, guest_work64_end);
	else
		head = load(vm, mode, guest_work32, guest_work32_end);
	head->seed = GUEST_SEED;
	return head;
}

struct guest_head *guest_load_script(struct vm *vm, enum guest_mode mode,
				     const struct guest_op *ops, size_t n)
{
	struct guest_head *head;

	if (mode == GUEST_REAL16)
		die("the guest \"script\" does not run in 16-bit mode");
	if (mode == GUEST_LONG64)
		head = load(vm, mode, guest_script64, guest_script64_end);
	else
		head = load(vm, mode, guest_script32, guest_script32_end);
	head->seed = GUEST_STACK;
	memcpy(vm_at(vm, GUEST_OPS, n * sizeof(*ops)), ops, n * sizeof(*ops));
	return head;
}

static struct kvm_segment segment(enum guest_mode mode, u16 selector, u64 base)
{
	struct kvm_segment result = {
		.base = base,
		.limit = 0xffffffff,
		.selector = selector,
		.type = selector == SELECTOR_CODE ? 11 : 3,
		.present = 1,
		.s = 1,
		.g = 1,
		.db = 1,
	};

	if (mode == GUEST_REAL16) {
		result.selector = (u16)(base / 16);
		result.limit = 0xffff;
		result.g = 0;
		result.db = 0;
		result.type = 3;
	} else if (mode == GUEST_LONG64 && selector == SELECTOR_CODE) {
		result.l = 1;
		result.db = 0;
	}
	return result;
}

static void set_control(struct kvm_sregs *sregs, enum guest_mode mode,
			const struct guest_head *head)
{
	sregs->cr0 = CR0_ET | CR0_NE;
	sregs->cr4 = 0;
	sregs->efer = 0;
	if (mode != GUEST_REAL16)
		sregs->cr0 |= CR0_PE;
	if (paged(mode)) {
		sregs->cr0 |= CR0_PG;
		sregs->cr3 = head->cr3[0];
		sregs->cr4 = mode == GUEST_PAGE32 ? CR4_PSE : CR4_PAE;
	}
	if (mode == GUEST_LONG64)
		sregs->efer = EFER_LME | EFER_LMA;
	if (head->flags & GUEST_X2APIC)
		sregs->apic_base |= 0xc00; /* enabled, x2APIC */
}

/* The local APIC accepts interrupts (SVR); without this an MSI is dropped. */
static void enable_apic(struct vcpu *vcpu)
{
	struct kvm_lapic_state apic;
	u32 svr = 0x1ff;

	if (ioctl(vcpu->fd, KVM_GET_LAPIC, &apic) < 0)
		die("KVM_GET_LAPIC: %s", strerror(errno));
	memcpy(apic.regs + 0xf0, &svr, 4);
	if (ioctl(vcpu->fd, KVM_SET_LAPIC, &apic) < 0)
		die("KVM_SET_LAPIC: %s", strerror(errno));
}

void guest_start(struct vcpu *vcpu, enum guest_mode mode)
{
	const struct guest_head *head = vm_at(vcpu->vm, GUEST_BLOB, sizeof(*head));
	u64 base = mode == GUEST_REAL16 ? GUEST_BLOB : 0;
	struct kvm_regs regs = {
		.rip = head->entry,
		.rsp = mode == GUEST_REAL16 ? 0xfff0 : GUEST_STACK,
		.rsi = GUEST_OPS,
		.rflags = 2,
	};
	struct kvm_sregs sregs;

	if (ioctl(vcpu->fd, KVM_GET_SREGS, &sregs) < 0)
		die("KVM_GET_SREGS: %s", strerror(errno));
	sregs.cs = segment(mode, SELECTOR_CODE, base);
	sregs.ds = segment(mode, SELECTOR_DATA, base);
	sregs.es = sregs.ds;
	sregs.ss = sregs.ds;
	sregs.gs = sregs.ds;
	sregs.fs = segment(mode, SELECTOR_DATA, GUEST_LOW);
	sregs.gdt = (struct kvm_dtable){ .base = GDT, .limit = SELECTOR_TSS - 1 };
	sregs.idt = (struct kvm_dtable){ .base = mode == GUEST_REAL16 ? 0 : IDT,
					 .limit = mode == GUEST_REAL16 ? 0x3ff : 0xfff };
	set_control(&sregs, mode, head);
	if (ioctl(vcpu->fd, KVM_SET_SREGS, &sregs) < 0)
		die("KVM_SET_SREGS for %s: %s", guest_mode_names[mode], strerror(errno));
	if (ioctl(vcpu->fd, KVM_SET_REGS, &regs) < 0)
		die("KVM_SET_REGS: %s", strerror(errno));
	if (vcpu->vm->irqchip)
		enable_apic(vcpu);
	put32(vcpu->vm, GUEST_WINDOW, 0xaaaa0001);
	put32(vcpu->vm, GUEST_WINDOW + 0x1000, 0xbbbb0002);
}
