// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scenarios of a guest's output memory, of SMM, and of task switches.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"

#define HOLE	     0xb0000 /* mapped by the guest's page tables, without memory */
#define LOGGED_SLOT  1
#define LOGGED_PAGES ((GUEST_SIZE - GUEST_HIGH) / PAGE_SIZE)
#define FAR_SLOT     2
#define FAR_GPA	     0x2000000
#define FAR_SIZE     0x10000
#define FAR_ENTRY    (FAR_GPA | 4 << 6) /* a region of that size */
#define MEMORY_FAULT 39			/* KVM_EXIT_MEMORY_FAULT, not in older headers */
#define SMM_ENTRY    0x38000
#define TASK_CODE    0x30000
#define TASK_OLD     0x31000 /* task-state segments */
#define TASK_NEW     0x31100
#define TASK_SIZE    104
#define TASK_CR3     0x1c
#define TASK_EIP     0x20
#define TASK_EFLAGS  0x24
#define TASK_ESP     0x38
#define TASK_SEGS    0x48 /* ES, CS, SS, DS, FS, GS */
#define SEL_OLD	     24
#define SEL_NEW	     32
#define MSR_LVTPC    0x834
#define AWAIT	     2000
#define EDGE_FIRST   3800 /* so that each of the PIPs crosses the first region's end once */
#define EDGE_LAST    4040
#define EDGE_MOVES   8
#define EDGE_PIPS    (1 + EDGE_MOVES) /* one more in PSB+ */

/* The guest reads an address without memory. */
static void read_hole(struct scene *s)
{
	struct kvm_run *run = s->vcpu.run;

	if (scene_run(s) != SCENE_OTHER || s->reason != KVM_EXIT_MMIO ||
	    run->mmio.phys_addr != HOLE)
		die("no MMIO exit");
	memset(run->mmio.data, 0, sizeof(run->mmio.data));
}

/* KVM marks MMIO in EPT by a misconfiguration: such exits do not say what made the access. */
void fault_d19_mmio(struct scene *s)
{
	enum scene_end end;
	u64 emulated;
	u32 op;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	memcpy(vm_at(&s->vm, TOPA_TABLE, 8), &(u64){ HOLE }, 8);
	scene_op(s, OP_READ, 0, HOLE);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 1000, 0);
	scene_op_stop(s, CTL_TRACE);
	op = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_STATUS, 0);
	scene_load(s);
	read_hole(s);
	emulated = vcpu_stat(&s->vcpu, "insn_emulation");
	alarm(20);
	end = scene_run(s);
	emulated = vcpu_stat(&s->vcpu, "insn_emulation") - emulated;
	if (end == SCENE_DONE && !emulated && s->ops[op].result & VMPT_STATUS_ERROR)
		ok("RTIT_STATUS %#llx, no instruction is emulated",
		   (unsigned long long)s->ops[op].result);
	else
		fault("%s %#llx; KVM emulated %llu instructions of the guest, RTIT_STATUS %#llx",
		      scene_end_name(end), (unsigned long long)s->reason,
		      (unsigned long long)emulated, (unsigned long long)s->ops[op].result);
}

/* How many pages are dirty by the log, which is cleared. */
static void get_log(struct scene *s, u8 *dirty)
{
	u64 bits[(LOGGED_PAGES + 63) / 64] = {};
	struct kvm_dirty_log log = { .slot = LOGGED_SLOT, .dirty_bitmap = bits };
	u32 i;

	if (ioctl(s->vm.fd, KVM_GET_DIRTY_LOG, &log) < 0)
		die("KVM_GET_DIRTY_LOG: %s", strerror(errno));
	for (i = 0; i < LOGGED_PAGES; i++)
		dirty[i] = bits[i / 64] >> i % 64 & 1;
}

static struct {
	u8 copy[GUEST_SIZE], dirty[LOGGED_PAGES];
	u32 changed, missed, rounds;
} logged;

/* Checks that each output page that changed since the last call has been logged. */
static void check_log(struct scene *s, u32 word)
{
	u64 gpa;

	(void)word;
	get_log(s, logged.dirty);
	for (gpa = TOPA_PAGES; gpa < TOPA_PAGES + 4 * PAGE_SIZE; gpa += PAGE_SIZE) {
		if (!memcmp(logged.copy + gpa, vm_at(&s->vm, gpa, PAGE_SIZE), PAGE_SIZE))
			continue;
		memcpy(logged.copy + gpa, vm_at(&s->vm, gpa, PAGE_SIZE), PAGE_SIZE);
		logged.changed++;
		logged.missed += !logged.dirty[(gpa - GUEST_HIGH) / PAGE_SIZE];
	}
	logged.rounds++;
}

void fault_d19_log(struct scene *s)
{
	struct kvm_userspace_memory_region region = {
		.slot = LOGGED_SLOT,
		.flags = KVM_MEM_LOG_DIRTY_PAGES,
		.guest_phys_addr = GUEST_HIGH,
		.memory_size = GUEST_SIZE - GUEST_HIGH,
	};
	enum scene_end end;
	u32 i;

	scene_open(s, false);
	region.userspace_addr = (u64)(s->vm.memory + GUEST_HIGH);
	if (ioctl(s->vm.fd, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		die("KVM_SET_USER_MEMORY_REGION: %s", strerror(errno));
	scene_topa(s, 4, 0);
	get_log(s, logged.dirty);
	scene_op_start(s, CTL_TRACE);
	for (i = 0; i < 20; i++) {
		scene_op(s, OP_WORK, 400, 0);
		scene_op(s, OP_OUT, 0, 0);
	}
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	s->on_out = check_log;
	end = scene_run(s);
	if (end != SCENE_DONE)
		die("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	if (!logged.changed)
		skip("the guest's pages did not change");
	else if (logged.missed)
		fault("%u of %u changes of a page in %u rounds are not in the log", logged.missed,
		      logged.changed, logged.rounds);
	else
		ok("%u changes of a page in %u rounds, all in the log", logged.changed,
		   logged.rounds);
}

static void *map_far(void *at)
{
	int fixed = at ? MAP_FIXED : 0;
	void *memory = mmap(at, FAR_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return memory;
}

/* Whether a trace is whole from its PSB on. */
static bool decodes(const u8 *bytes, u64 size)
{
	struct vmpt_pt_packet packet;
	unsigned int block = 0;
	u64 at = 0;

	while (at < size && !vmpt_pt_decode(&packet, bytes + at, size - at, block)) {
		if (!at && packet.kind != VMPT_PT_PSB)
			return false;
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	return size && at == size;
}

/* The host unmaps a slot's memory, and maps it again when KVM reports the fault. */
void fault_d19_host(struct scene *s)
{
	u8 *memory = map_far(NULL);
	u64 *run, gpa, size, mask = 0;
	enum scene_end end;
	u32 reason;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	memcpy(vm_at(&s->vm, TOPA_TABLE, 8), &(u64){ FAR_ENTRY }, 8);
	vm_map(&s->vm, FAR_SLOT, FAR_GPA, FAR_SIZE, memory);
	munmap(memory, FAR_SIZE);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 100, 0);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	end = scene_run(s);
	run = (u64 *)s->vcpu.run->padding; /* memory_fault: flags, gpa, size */
	reason = s->vcpu.run->exit_reason;
	gpa = run[1];
	if (end != SCENE_ERROR || s->reason != EFAULT || reason != MEMORY_FAULT || gpa != FAR_GPA) {
		fault("%s %llu, exit reason %u", scene_end_name(end), (unsigned long long)s->reason,
		      reason);
		return;
	}
	map_far(memory);
	end = scene_run(s);
	vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &mask);
	size = mask >> 32;
	if (end == SCENE_DONE && decodes(memory, size))
		ok("KVM_EXIT_MEMORY_FAULT, then a whole trace");
	else
		fault("%s %llu, %llu bytes", scene_end_name(end), (unsigned long long)s->reason,
		      (unsigned long long)size);
}

static void raise_smi(struct scene *s, u32 word)
{
	(void)word;
	if (ioctl(s->vcpu.fd, KVM_SMI, 0) < 0)
		die("KVM_SMI: %s", strerror(errno));
}

/* RSM with TraceEn = 1 is a shutdown (SDM 3 33.2.9.3). */
void fault_d21_rsm(struct scene *s)
{
	/* mov $0x570,%ecx; rdmsr; or $1,%eax; wrmsr; rsm, in 16 bits */
	static const u8 handler[] = { 0x66, 0xb9, 0x70, 0x05, 0,    0,	  0x0f, 0x32,
				      0x66, 0x83, 0xc8, 1,    0x0f, 0x30, 0x0f, 0xaa };
	enum scene_end end;

	scene_open(s, true);
	scene_topa(s, 4, 0);
	vm_map(&s->vm, 1u << 16, 0, GUEST_LOW, s->vm.memory);
	vm_map(&s->vm, 1u << 16 | 1, GUEST_HIGH, GUEST_SIZE - GUEST_HIGH,
	       s->vm.memory + GUEST_HIGH);
	memcpy(vm_at(&s->vm, SMM_ENTRY, sizeof(handler)), handler, sizeof(handler));
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op(s, OP_OUT, 0, 0);
	scene_op(s, OP_WORK, 10, 0);
	scene_op_stop(s, CTL_TRACE);
	s->on_out = raise_smi;
	scene_load(s);
	end = scene_run(s);
	if (end == SCENE_OTHER && s->reason == KVM_EXIT_SHUTDOWN)
		ok("shutdown");
	else
		fault("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
}

static void put(struct scene *s, u64 gpa, u32 value)
{
	memcpy(vm_at(&s->vm, gpa, 4), &value, 4);
}

static void put_task(struct scene *s, u32 index, u32 base)
{
	u64 descriptor = TASK_SIZE - 1;

	descriptor |= (u64)(base & 0xffffff) << 16 | 0x89ull << 40 | (u64)(base >> 24) << 56;
	memcpy(vm_at(&s->vm, GUEST_TABLES + index, 8), &descriptor, 8);
}

/* Collects the CR3s of the output's PIPs, in order, from an offset; returns how many there are. */
static u32 list_pips(struct scene *s, u64 at, u64 *cr3, u32 max)
{
	u64 size = scene_output(s);
	const u8 *bytes = vm_at(&s->vm, TOPA_PAGES, size);
	struct vmpt_pt_packet packet;
	unsigned int block = 0;
	u32 n = 0;

	while (at < size && !vmpt_pt_decode(&packet, bytes + at, size - at, block)) {
		if (packet.kind == VMPT_PT_PIP && n < max)
			cr3[n++] = packet.pip.cr3;
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	return n;
}

/* A far jump to a task-state segment with another CR3, and one more with the same. */
void fault_d22_task(struct scene *s)
{
	/* ljmp $SEL_NEW,$0; then in the new task: out of %al to GUEST_PORT_DONE */
	static const u8 code[] = { 0xea, 0, 0, 0, 0, SEL_NEW, 0, 0xe6, GUEST_PORT_DONE };
	static const u16 segments[] = { 16, 8, 16, 16, 16, 16 };
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	enum scene_end end;
	u64 pips[8] = {};
	u32 i, n, new_cr3 = GUEST_PAGING + GUEST_PAGING_SIZE;

	scene_open(s, false);
	s->mode = GUEST_PAGE32;
	scene_topa(s, 4, 0);
	scene_load(s);
	memcpy(vm_at(&s->vm, TASK_CODE, sizeof(code)), code, sizeof(code));
	put_task(s, SEL_OLD, TASK_OLD);
	put_task(s, SEL_NEW, TASK_NEW);
	memset(vm_at(&s->vm, TASK_NEW, TASK_SIZE), 0, TASK_SIZE);
	put(s, TASK_NEW + TASK_CR3, new_cr3);
	put(s, TASK_NEW + TASK_EIP, TASK_CODE + 7);
	put(s, TASK_NEW + TASK_EFLAGS, 2);
	put(s, TASK_NEW + TASK_ESP, GUEST_STACK);
	for (i = 0; i < 6; i++)
		put(s, TASK_NEW + TASK_SEGS + 4 * i, segments[i]);
	if (ioctl(s->vcpu.fd, KVM_GET_SREGS, &sregs) < 0 ||
	    ioctl(s->vcpu.fd, KVM_GET_REGS, &regs) < 0)
		die("KVM_GET_SREGS or KVM_GET_REGS: %s", strerror(errno));
	sregs.gdt.limit = SEL_NEW + 7;
	sregs.tr = (struct kvm_segment){ .base = TASK_OLD,
					 .limit = TASK_SIZE - 1,
					 .selector = SEL_OLD,
					 .type = 11,
					 .present = 1 };
	regs.rip = TASK_CODE;
	if (ioctl(s->vcpu.fd, KVM_SET_SREGS, &sregs) < 0 ||
	    ioctl(s->vcpu.fd, KVM_SET_REGS, &regs) < 0)
		die("KVM_SET_SREGS or KVM_SET_REGS: %s", strerror(errno));
	if (vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_OUTPUT_BASE, TOPA_TABLE) ||
	    vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, CTL_TRACE))
		die("KVM_SET_MSRS refuses");
	end = scene_run(s);
	n = list_pips(s, 0, pips, 8);
	if (end != SCENE_DONE)
		skip("the task switch failed: %s %#llx", scene_end_name(end),
		     (unsigned long long)s->reason);
	else if (!n || pips[n - 1] != new_cr3)
		fault("%u PIP packets, none has the new task's CR3", n);
	else
		ok("%u PIP packets, the last has the new task's CR3 %#llx", n,
		   (unsigned long long)pips[n - 1]);
}

/* One guest whose output begins at @start. Returns whether all is right. */
static bool edge(struct scene *s, u32 start)
{
	u64 pips[2 * EDGE_PIPS] = {}, cr3;
	u32 i, n, irqs;
	enum scene_end end;

	scene_open(s, true);
	scene_topa(s, 4, 4);
	*(u64 *)vm_at(&s->vm, TOPA_TABLE, 8) |= 4; /* INT */
	/* As in D16: delivery of the interrupt must not cause an EPT violation. */
	scene_op(s, OP_READ, 0, GUEST_TABLES);
	scene_op(s, OP_READ, 0, GUEST_TABLES + PAGE_SIZE);
	scene_op(s, OP_CPUID, 0, 0);
	scene_op(s, OP_WRMSR, MSR_LVTPC, GUEST_VECTOR_IRQ);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_BASE, TOPA_TABLE);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, (u64)start << 32 | 0x7f);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, CTL_TRACE);
	for (i = 0; i < EDGE_MOVES; i++)
		scene_op(s, OP_CR3, 1, GUEST_PAGING + (i & 1) * GUEST_PAGING_SIZE);
	scene_op_stop(s, CTL_TRACE);
	irqs = scene_op(s, OP_AWAIT, AWAIT, 0);
	scene_load(s);
	end = scene_run(s);
	if (end != SCENE_DONE)
		die("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	n = list_pips(s, start, pips, 2 * EDGE_PIPS);
	for (i = 0; i < EDGE_MOVES && n == EDGE_PIPS; i++) {
		cr3 = GUEST_PAGING + (i & 1) * GUEST_PAGING_SIZE;
		if (pips[1 + i] != cr3)
			break;
	}
	if (n == EDGE_PIPS && i == EDGE_MOVES && s->ops[irqs].result == (start >= EDGE_FIRST))
		return true;
	fault("output from %u on: %u PIP packets, %u of %u with the right CR3, %llu interrupts",
	      start, n, n == EDGE_PIPS ? i : 0, EDGE_MOVES,
	      (unsigned long long)s->ops[irqs].result);
	return false;
}

void fault_d22_edges(struct scene *s)
{
	u32 start, n = 0;

	if (!set_parameter("force_emulation_prefix", "1\n")) {
		skip("kvm.force_emulation_prefix cannot be set");
		return;
	}
	/* On a kernel without PIPs this already fails, before any PMI. */
	if (!edge(s, 0))
		return;
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
	for (start = EDGE_FIRST; start <= EDGE_LAST; start += 3, n++) {
		if (!edge(s, start))
			return;
		vcpu_close(&s->vcpu);
		vm_close(&s->vm);
	}
	ok("%u guests, each with %u PIP packets and an interrupt", n, EDGE_PIPS);
}

static u32 sregs_outs;

/* First a new CR3; then as a VMM that restores the vCPU does. */
static void set_cr3(struct scene *s, u32 word)
{
	struct kvm_sregs sregs;
	u64 ctl = 0;

	(void)word;
	if (ioctl(s->vcpu.fd, KVM_GET_SREGS, &sregs) < 0)
		die("KVM_GET_SREGS: %s", strerror(errno));
	sregs.cr3 ^= GUEST_PAGING ^ (GUEST_PAGING + GUEST_PAGING_SIZE);
	if (sregs_outs++ && (vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, &ctl) ||
			     vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, ctl)))
		die("RTIT_CTL cannot be written");
	if (ioctl(s->vcpu.fd, KVM_SET_SREGS, &sregs) < 0)
		die("KVM_SET_SREGS: %s", strerror(errno));
}

/* Counts the PIPs if the VMM sets CR3 twice. */
static u32 sregs_pips(struct scene *s, u64 *pips, u32 max)
{
	enum scene_end end;
	u32 i;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	scene_op_start(s, CTL_TRACE);
	for (i = 0; i < 2; i++) {
		scene_op(s, OP_WORK, 10, 0);
		scene_op(s, OP_OUT, 0, 0);
	}
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	sregs_outs = 0;
	s->on_out = set_cr3;
	end = scene_run(s);
	if (end != SCENE_DONE)
		die("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	return list_pips(s, 0, pips, max);
}

static bool pip_on_sregs(bool on)
{
	FILE *file = fopen("/sys/module/kvm_intel/parameters/pt_pip_on_set_sregs", "we");

	return file && fputs(on ? "1\n" : "0\n", file) >= 0 && !fclose(file);
}

void fault_d22_sregs(struct scene *s)
{
	u64 pips[8] = {};
	u32 without, with;

	if (!pip_on_sregs(false)) {
		fault("there is no parameter for it");
		return;
	}
	without = sregs_pips(s, pips, 8);
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
	pip_on_sregs(true);
	with = sregs_pips(s, pips, 8);
	pip_on_sregs(false);
	/* Each count includes that of PSB+. */
	if (without == 1 && with == 2 && pips[1] == GUEST_PAGING + GUEST_PAGING_SIZE)
		ok("1 PIP packet, with pt_pip_on_set_sregs 2, the second has the new CR3");
	else
		fault("%u PIP packets, with pt_pip_on_set_sregs %u", without, with);
}
