// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scenarios of writes to PT's registers by a guest and by user space.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults.h"

#define GP	 (1 + 13)
#define MAX_MSRS 512
#define EXITS	 100

/* The guest writes a bad value into a register and traces; KVM must refuse the value. */
static void bad_register(struct scene *s, u32 msr, u64 value)
{
	enum scene_end end;
	u32 op;

	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_BASE, TOPA_TABLE);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
	op = scene_op(s, OP_WRMSR, msr, value);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	end = scene_run(s);
	if (s->ops[op].fault == GP)
		ok("#GP");
	else
		fault("%#llx is taken for MSR %#x; %s %#llx; %s", (unsigned long long)value, msr,
		      scene_end_name(end), (unsigned long long)s->reason,
		      scene_said(s, "unchecked MSR access") ? s->line : "no kernel message");
}

void fault_d06(struct scene *s)
{
	scene_open(s, false);
	scene_topa(s, 4, 0);
	bad_register(s, VMPT_MSR_RTIT_CR3_MATCH, 0x4001f);
}

void fault_d07(struct scene *s)
{
	struct kvm_cpuid_entry2 *leaf;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	leaf = scene_leaf(s, 0x80000008, 0);
	if ((leaf->eax & 0xff) >= 52) {
		skip("this processor's MAXPHYADDR is 52");
		return;
	}
	leaf->eax = (leaf->eax & ~0xffu) | 52;
	if (scene_set_cpuid(s)) {
		ok("KVM_SET_CPUID2 refuses MAXPHYADDR 52");
		return;
	}
	bad_register(s, VMPT_MSR_RTIT_OUTPUT_BASE, 1ull << 51);
}

void fault_d08(struct scene *s)
{
	enum scene_end end;
	u64 bytes;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	if (scene_leaf(s, 0x14, 0)->ebx & 1) {
		skip("this processor has the CR3 filter");
		return;
	}
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	end = scene_run(s);
	bytes = scene_output(s);
	if (scene_said(s, "unchecked MSR access"))
		fault("%s", s->line);
	else if (end != SCENE_DONE || !bytes)
		fault("%s %#llx, %llu bytes came", scene_end_name(end),
		      (unsigned long long)s->reason, (unsigned long long)bytes);
	else
		ok("no access to CR3_MATCH, %llu bytes came", (unsigned long long)bytes);
}

struct msrs {
	struct kvm_msrs head;
	struct kvm_msr_entry entries[MAX_MSRS];
};

struct msr_list {
	struct kvm_msr_list head;
	u32 indices[MAX_MSRS];
};

/* PT's registers of a vCPU, in the order of KVM's list. */
static void get_pt_msrs(struct scene *s, struct msrs *msrs)
{
	struct msr_list list = { .head.nmsrs = MAX_MSRS };
	u32 i;

	if (ioctl(s->vm.kvm, KVM_GET_MSR_INDEX_LIST, &list) < 0)
		die("KVM_GET_MSR_INDEX_LIST fails");
	memset(msrs, 0, sizeof(*msrs));
	for (i = 0; i < list.head.nmsrs; i++) {
		if (list.indices[i] >= VMPT_MSR_RTIT_OUTPUT_BASE &&
		    list.indices[i] <= VMPT_MSR_RTIT_ADDR3_B)
			msrs->entries[msrs->head.nmsrs++].index = list.indices[i];
	}
	if (ioctl(s->vcpu.fd, KVM_GET_MSRS, msrs) != (int)msrs->head.nmsrs)
		die("KVM_GET_MSRS fails for an MSR that KVM lists");
}

static u64 pt_msr(const struct msrs *msrs, u32 index)
{
	u32 i;

	for (i = 0; i < msrs->head.nmsrs; i++) {
		if (msrs->entries[i].index == index)
			return msrs->entries[i].data;
	}
	return 0;
}

static struct msrs saved;

static void save_msrs(struct scene *s, u32 word)
{
	(void)word;
	get_pt_msrs(s, &saved);
}

void fault_d13(struct scene *s)
{
	static struct scene other;
	static struct msrs read;
	enum scene_end end;
	int n;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op(s, OP_OUT, 0, 0);
	scene_op_stop(s, CTL_TRACE);
	s->on_out = save_msrs;
	scene_load(s);
	end = scene_run(s);
	if (end != SCENE_DONE || !saved.head.nmsrs)
		die("the guest did not trace: %s %#llx", scene_end_name(end),
		    (unsigned long long)s->reason);
	scene_open(&other, false);
	if (scene_set_cpuid(&other))
		die("KVM refuses the CPUID that it reports as supported");
	n = ioctl(other.vcpu.fd, KVM_SET_MSRS, &saved);
	if (n == (int)saved.head.nmsrs) {
		get_pt_msrs(&other, &read);
		if (memcmp(&read, &saved, sizeof(read)))
			fault("all %d are taken, but do not read back", n);
		else
			ok("all %d, and read back, RTIT_CTL %#llx", n,
			   (unsigned long long)pt_msr(&read, VMPT_MSR_RTIT_CTL));
	} else {
		fault("KVM_SET_MSRS takes %d of %u; the first refused is %#x", n, saved.head.nmsrs,
		      n < 0 ? 0 : saved.entries[n].index);
	}
}

void fault_d14(struct scene *s)
{
	const u64 pending = VMPT_STATUS_PEND_PSB | VMPT_STATUS_PEND_PMI;
	u64 value = 0;
	int error;

	scene_open(s, false);
	if (!(scene_leaf(s, 0x14, 0)->ebx & 1u << 6)) {
		ok("CPUID has no PSB and PMI preservation");
		return;
	}
	if (scene_set_cpuid(s))
		die("KVM refuses the CPUID that it reports as supported");
	error = vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_STATUS, pending);
	if (error)
		fault("KVM_SET_MSRS refuses RTIT_STATUS %#llx", (unsigned long long)pending);
	else if (vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_STATUS, &value) || value != pending)
		fault("RTIT_STATUS %#llx reads %#llx", (unsigned long long)pending,
		      (unsigned long long)value);
	else
		ok("taken, reads %#llx", (unsigned long long)value);
}

void fault_d15(struct scene *s)
{
	u32 op;

	scene_open(s, false);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	op = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	scene_load(s);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end");
	if ((s->ops[op].result & 0x7f) != 0x7f)
		fault("reads %#llx", (unsigned long long)s->ops[op].result);
	else
		ok("reads %#llx", (unsigned long long)s->ops[op].result);
}

/* Opens a counter of the kernel's reads of an MSR in this thread; -1 if that is not possible. */
static int count_reads(u32 msr)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	FILE *file = fopen("/sys/kernel/tracing/events/msr/read_msr/id", "re");
	char filter[32];
	int fd;

	if (!file)
		return -1;
	if (fscanf(file, "%llu", &attr.config) != 1)
		attr.config = 0;
	fclose(file);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	snprintf(filter, sizeof(filter), "msr == %#x", msr);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A guest without PT in CPUID exits often: returns how often KVM reads RTIT_CTL; -1: unknown. */
static s64 reads_of_ctl(struct scene *s, u64 *exits)
{
	s64 reads = -1;
	int fd;

	scene_open(s, false);
	scene_leaf(s, 7, 0)->ebx &= ~(1u << 25);
	scene_op(s, OP_EXITS, EXITS, 0);
	scene_load(s);
	fd = count_reads(VMPT_MSR_RTIT_CTL);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end");
	if (fd >= 0 && read(fd, &reads, sizeof(reads)) != sizeof(reads))
		reads = -1;
	close(fd);
	*exits = vcpu_stat(&s->vcpu, "exits");
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
	return reads;
}

/* No processor enters a guest without a task register (SDM 3 27.3.1.2). */
static void spoil_tr(struct scene *s)
{
	struct kvm_sregs sregs;

	if (ioctl(s->vcpu.fd, KVM_GET_SREGS, &sregs) < 0)
		die("KVM_GET_SREGS fails");
	sregs.tr.unusable = 1;
	if (ioctl(s->vcpu.fd, KVM_SET_SREGS, &sregs) < 0)
		die("KVM_SET_SREGS fails");
}

void fault_d29(struct scene *s)
{
	u64 exits;
	s64 reads = reads_of_ctl(s, &exits);
	char dump[LINE_SIZE];
	FILE *parameter;

	if (reads < 0) {
		skip("reads of an MSR cannot be counted");
		return;
	}
	parameter = fopen("/sys/module/kvm_intel/parameters/dump_invalid_vmcs", "we");
	if (!parameter || fputs("1\n", parameter) < 0 || fclose(parameter)) {
		skip("kvm_intel.dump_invalid_vmcs cannot be set");
		return;
	}
	scene_open(s, false);
	scene_load(s);
	spoil_tr(s);
	scene_run(s);
	if (!scene_said(s, "*** Guest State ***")) {
		skip("no entry failed, nothing is printed");
		return;
	}
	snprintf(dump, sizeof(dump), "%s", s->line);
	if (scene_said(s, "RTIT") && !reads)
		ok("no reads of RTIT_CTL; %s", s->line);
	else
		fault("%lld reads of RTIT_CTL in %llu exits; %sRTIT_CTL after \"%s\"",
		      (long long)reads, (unsigned long long)exits,
		      scene_said(s, "RTIT") ? "" : "no ", dump);
}

void fault_ctl(struct scene *s)
{
	u32 op, read;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	op = scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, 0);
	read = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_CTL, 0);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end: %#llx", (unsigned long long)s->reason);
	if (s->ops[op].fault == GP)
		fault("#GP");
	else if (s->ops[read].result)
		fault("reads %#llx", (unsigned long long)s->ops[read].result);
	else
		ok("taken, reads 0");
}
