// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The base of a VMM over /dev/kvm: see kvm.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"
#include "kvm.h"

/* Outside the guest's memory; KVM needs them without unrestricted guests. */
#define IDENTITY_MAP 0xfffbc000
#define TSS_ADDRESS  0xfffbd000

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static int must(int fd, unsigned long request, void *argument, const char *name)
{
	int ret = ioctl(fd, request, argument);

	if (ret < 0)
		die("%s: %s", name, strerror(errno));
	return ret;
}

#define MUST(fd, request, argument) must(fd, request, (void *)(unsigned long)(argument), #request)

static void *map(size_t size, int fd)
{
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (memory == MAP_FAILED)
		die("mmap of %zu bytes: %s", size, strerror(errno));
	return memory;
}

void vm_map(struct vm *vm, u32 slot, u64 gpa, size_t size, void *memory)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = gpa,
		.memory_size = memory ? size : 0,
		.userspace_addr = (u64)memory,
	};

	MUST(vm->fd, KVM_SET_USER_MEMORY_REGION, &region);
}

void vm_open(struct vm *vm, bool irqchip)
{
	u64 identity = IDENTITY_MAP;

	*vm = (struct vm){ .irqchip = irqchip, .size = GUEST_SIZE };
	vm->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm->kvm < 0)
		die("/dev/kvm: %s", strerror(errno));
	vm->fd = MUST(vm->kvm, KVM_CREATE_VM, 0);
	MUST(vm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity);
	MUST(vm->fd, KVM_SET_TSS_ADDR, TSS_ADDRESS);
	if (irqchip)
		MUST(vm->fd, KVM_CREATE_IRQCHIP, 0);

	vm->memory = map(vm->size, -1);
	vm_map(vm, 0, 0, GUEST_LOW, vm->memory);
	vm_map(vm, 1, GUEST_HIGH, GUEST_SIZE - GUEST_HIGH, vm->memory + GUEST_HIGH);
}

void vm_close(struct vm *vm)
{
	close(vm->fd);
	close(vm->kvm);
	munmap(vm->memory, vm->size);
}

void *vm_at(const struct vm *vm, u64 gpa, size_t size)
{
	if (gpa >= vm->size || size > vm->size - gpa)
		die("no memory at guest-physical %#llx", (unsigned long long)gpa);
	return vm->memory + gpa;
}

void vcpu_open(struct vcpu *vcpu, struct vm *vm, unsigned int id)
{
	int size;

	*vcpu = (struct vcpu){ .vm = vm, .id = id };
	vcpu->fd = MUST(vm->fd, KVM_CREATE_VCPU, id);
	size = MUST(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	vcpu->run = map((size_t)size, vcpu->fd);
}

void vcpu_close(struct vcpu *vcpu)
{
	munmap(vcpu->run, (size_t)MUST(vcpu->vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0));
	close(vcpu->fd);
}

void vcpu_set_tsc(struct vcpu *vcpu, u64 offset, u32 khz)
{
	struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL,
		.attr = KVM_VCPU_TSC_OFFSET,
		.addr = (u64)&offset,
	};

	if (khz)
		MUST(vcpu->fd, KVM_SET_TSC_KHZ, khz);
	MUST(vcpu->fd, KVM_SET_DEVICE_ATTR, &attr);
}

int vcpu_run(struct vcpu *vcpu)
{
	if (ioctl(vcpu->fd, KVM_RUN, 0) < 0 && errno != EINTR)
		return errno;
	return 0;
}

struct one_msr {
	struct kvm_msrs head;
	struct kvm_msr_entry entry;
};

int vcpu_set_msr(struct vcpu *vcpu, u32 index, u64 value)
{
	struct one_msr msr = { .head.nmsrs = 1, .entry = { .index = index, .data = value } };

	return MUST(vcpu->fd, KVM_SET_MSRS, &msr) == 1 ? 0 : EIO;
}

int vcpu_get_msr(struct vcpu *vcpu, u32 index, u64 *value)
{
	struct one_msr msr = { .head.nmsrs = 1, .entry.index = index };
	int n = MUST(vcpu->fd, KVM_GET_MSRS, &msr);

	*value = msr.entry.data;
	return n == 1 ? 0 : EIO;
}

struct kvm_cpuid_entry2 *cpuid_find(struct cpuid *cpuid, u32 function, u32 index)
{
	u32 i;

	for (i = 0; i < cpuid->head.nent; i++) {
		if (cpuid->entries[i].function == function && cpuid->entries[i].index == index)
			return &cpuid->entries[i];
	}
	return NULL;
}

void cpuid_supported(const struct vm *vm, struct cpuid *cpuid)
{
	struct kvm_cpuid_entry2 *x2apic;

	memset(cpuid, 0, sizeof(*cpuid));
	cpuid->head.nent = KVM_MAX_CPUID - 1;
	MUST(vm->kvm, KVM_GET_SUPPORTED_CPUID, cpuid);
	cpuid->entries[cpuid->head.nent++] = (struct kvm_cpuid_entry2){
		.function = GUEST_CPUID_LEAF,
		.eax = GUEST_CPUID_WORD,
	};
	x2apic = cpuid_find(cpuid, 1, 0);
	if (x2apic)
		x2apic->ecx |= 1u << 21;
}

int vcpu_set_cpuid(struct vcpu *vcpu, struct cpuid *cpuid)
{
	return ioctl(vcpu->fd, KVM_SET_CPUID2, cpuid) < 0 ? errno : 0;
}

u64 vcpu_stat(const struct vcpu *vcpu, const char *name)
{
	int fd = MUST(vcpu->fd, KVM_GET_STATS_FD, 0);
	struct kvm_stats_header head;
	u64 value = 0;
	u32 i;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		die("statistics: no header");
	for (i = 0; i < head.num_desc; i++) {
		char buffer[sizeof(struct kvm_stats_desc) + 64] = "";
		struct kvm_stats_desc *desc = (void *)buffer;
		size_t size = sizeof(*desc) + head.name_size;

		if (size > sizeof(buffer) ||
		    pread(fd, buffer, size, (off_t)(head.desc_offset + i * size)) != (ssize_t)size)
			die("statistics: no description %u", i);
		if (!strcmp(desc->name, name) &&
		    pread(fd, &value, sizeof(value), (off_t)head.data_offset + desc->offset) !=
			    sizeof(value))
			die("statistics: no value of %s", name);
	}
	close(fd);
	return value;
}

const char *kvm_parameter(const char *module, const char *name)
{
	static char value[64];
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, value, sizeof(value) - 1);
	if (fd >= 0)
		close(fd);
	value[n < 0 ? 0 : n] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return value;
}
