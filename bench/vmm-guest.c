// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A minimal VMM: its own cost is in every figure. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/vmm-guest.h"

/* Host-physical addresses: guest frames in reverse order, so that no two are contiguous. */
#define HPA_TOP	   0x400000000ULL
#define TABLES_HPA 0x800000000ULL

static int read_memory(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct vmm *vmm = opaque;

	if (gpa > vmm->size || len > vmm->size - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, vmm->memory + gpa, len);
	return 0;
}

static int write_memory(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vmm *vmm = opaque;

	if (gpa > vmm->size || len > vmm->size - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(vmm->memory + gpa, buf, len);
	return 0;
}

static int map_memory(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	struct vmm *vmm = opaque;
	size_t rest;

	if (gpa >= vmm->size)
		return VMPT_MEM_UNBACKED;
	rest = vmm->map_max - gpa % vmm->map_max;
	*host = vmm->memory + gpa;
	*size = *size < rest ? *size : rest;
	*size = *size < vmm->size - gpa ? *size : vmm->size - gpa;
	return 0;
}

static int translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	struct vmm *vmm = opaque;

	if (gpa >= vmm->size)
		return VMPT_MEM_UNBACKED;
	*hpa = HPA_TOP - (gpa & ~0xfffULL) + (gpa & 0xfff);
	*size = 4096 - (gpa & 0xfff);
	return 0;
}

static void pmi(void *opaque)
{
	((struct vmm *)opaque)->pmis++;
}

/* A processor with everything in this version of the manual. */
static void full_caps(struct vmpt_caps *caps)
{
	*caps = (struct vmpt_caps){ .vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_USE_GPA |
					   VMPT_VMX_CLEAR_CTL | VMPT_VMX_LOAD_CTL };
	caps->cpuid.present = 1;
	caps->cpuid.maxphyaddr = 46;
	caps->cpuid.linear_bits = 48;
	caps->cpuid.leaf14[0] =
		(struct vmpt_cpuid_regs){ .eax = 1, .ebx = 0x1ff, .ecx = 0x80000007 };
	caps->cpuid.leaf14[1] = (struct vmpt_cpuid_regs){ .eax = 0xffff0004, .ebx = 0xffffffff };
}

static int init_vcpu(struct vmm *vmm, bool shadow)
{
	struct vmpt_vmx_plan plan = { .use = VMPT_USE_GUEST, .guest_pt = true, .shadow = shadow };
	struct vmpt_refusal why = { 0 };
	struct vmpt_caps host, guest;
	struct vmpt_config config = {
		.host = &host,
		.guest = &guest,
		.plan = &plan,
		.ops = &vmm->ops,
		.opaque = vmm,
		.shadow = shadow ? &vmm->shadow : NULL,
	};
	int err;

	full_caps(&host);
	guest = host;
	guest.vmx = 0;
	if (shadow)
		host.vmx &= ~(u32)VMPT_VMX_USE_GPA;
	err = vmpt_vcpu_init(&vmm->vcpu, &config, &why);
	if (err)
		fprintf(stderr, "vmpt-bench-vmm: no vCPU: %s: %s\n", vmpt_strerror(err),
			why.field ? why.field : "");
	return err ? -1 : 0;
}

struct vmm *vmm_open(size_t size, bool shadow)
{
	struct vmm *vmm = calloc(1, sizeof(*vmm));
	unsigned int i;

	if (!vmm)
		return NULL;
	vmm->ops = (struct vmpt_ops){
		.guest_read = read_memory,
		.guest_write = write_memory,
		.guest_map = map_memory,
		.guest_translate = translate,
		.inject_pmi = pmi,
	};
	vmm->size = (size + (4u << 20) - 1) & ~(size_t)((4u << 20) - 1);
	vmm->memory = aligned_alloc(4096, vmm->size);
	vmm->tables = aligned_alloc(4096, VMM_SHADOW_PAGES * sizeof(*vmm->tables));
	vmm->origin = calloc((size_t)VMM_SHADOW_PAGES * VMPT_SHADOW_PER_PAGE, sizeof(*vmm->origin));
	if (!vmm->memory || !vmm->tables || !vmm->origin) {
		fprintf(stderr, "vmpt-bench-vmm: no memory for a guest of %zu bytes\n", size);
		vmm_close(vmm);
		return NULL;
	}
	memset(vmm->memory, 0, vmm->size);
	vmm->map_max = 1ULL << 40;
	vmm->shadow.pages = VMM_SHADOW_PAGES;
	vmm->shadow.origin = vmm->origin;
	for (i = 0; i < VMM_SHADOW_PAGES; i++) {
		vmm->shadow.page[i] = vmm->tables[i];
		vmm->shadow.page_hpa[i] = TABLES_HPA + 4096ULL * i;
	}
	if (init_vcpu(vmm, shadow)) {
		vmm_close(vmm);
		return NULL;
	}
	return vmm;
}

void vmm_close(struct vmm *vmm)
{
	if (!vmm)
		return;
	free(vmm->memory);
	free(vmm->tables);
	free(vmm->origin);
	free(vmm);
}

size_t vmm_vcpu_size(void)
{
	return sizeof(struct vmpt_vcpu);
}

void vmm_put64(struct vmm *vmm, u64 gpa, u64 value)
{
	memcpy(vmm->memory + gpa, &value, sizeof(value));
}

int vmm_wrmsr(struct vmm *vmm, u32 msr, u64 value)
{
	int ret = vmpt_vcpu_wrmsr(&vmm->vcpu, msr, value);

	if (ret)
		fprintf(stderr, "vmpt-bench-vmm: WRMSR of %#llx to %xH: %d\n",
			(unsigned long long)value, msr, ret);
	return ret ? -1 : 0;
}
