// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The way of a PMI: through the LVT performance counter register of the local APIC (SDM 3
 * 11.5.1), as an MSI to the vCPU itself, which QEMU takes as a write to memory.
 */
#include "qemu-plugin/guest.h"

#define MSR_APIC_BASE  0x1b
#define MSR_X2APIC_LVT 0x834
#define APIC_DEFAULT   0xfee00000ULL
#define APIC_ENABLE    (1ULL << 11)
#define APIC_EXTD      (1ULL << 10)
#define APIC_BASE_MASK 0xffffff000ULL
#define APIC_ID	       0x20
#define APIC_LVT_PERF  0x340
#define LVT_MASKED     0x10000U
#define LVT_BITS       0x107ffU /* vector, delivery mode, mask */
#define LVT_MSI	       0x7ffU	/* vector and delivery mode are an MSI's data */

void guest_apic_reset(struct guest_apic *apic)
{
	apic->base = APIC_DEFAULT | APIC_ENABLE;
	apic->lvt = LVT_MASKED;
	apic->waiting = false;
}

static bool x2apic(const struct guest_apic *apic)
{
	return apic->base & APIC_EXTD;
}

/* A register of the page of an APIC in xAPIC mode. Reading it has no effect. */
static bool read_page(const struct guest_vcpu *guest, u32 offset, u32 *value)
{
	return qemu_read_physical(guest->vcpu->regs, (guest->apic.base & APIC_BASE_MASK) + offset,
				  value, sizeof(*value));
}

static u32 read_lvt(const struct guest_vcpu *guest)
{
	u32 lvt;

	if (!(guest->apic.base & APIC_ENABLE))
		return LVT_MASKED;
	if (x2apic(&guest->apic))
		return guest->apic.lvt;
	return read_page(guest, APIC_LVT_PERF, &lvt) ? lvt : LVT_MASKED;
}

/* Delivery of a PMI masks the entry. */
static void mask_lvt(struct guest_vcpu *guest, u32 lvt)
{
	lvt = (lvt & LVT_BITS) | LVT_MASKED;
	if (x2apic(&guest->apic))
		guest->apic.lvt = lvt;
	else
		qemu_write_physical(guest->vcpu->regs,
				    (guest->apic.base & APIC_BASE_MASK) + APIC_LVT_PERF, &lvt,
				    sizeof(lvt));
}

static void deliver(struct guest_vcpu *guest, u32 lvt)
{
	u32 id = guest->apic.id, data = lvt & LVT_MSI;

	if (!x2apic(&guest->apic) && read_page(guest, APIC_ID, &id))
		id >>= 24;
	mask_lvt(guest, lvt);
	qemu_write_physical(guest->vcpu->regs, APIC_DEFAULT + ((u64)id << 12), &data, sizeof(data));
}

void guest_inject_pmi(void *opaque)
{
	struct guest_vcpu *guest = opaque;
	u32 lvt = read_lvt(guest);

	if (!(lvt & LVT_MASKED)) {
		deliver(guest, lvt);
		return;
	}
	/* Kept until it is unmasked, which in xAPIC mode nothing tells: it is polled for. */
	guest->apic.waiting = true;
	flow_watch(guest->vcpu, true);
}

void guest_apic_poll(struct guest_vcpu *guest)
{
	u32 lvt = read_lvt(guest);

	if (lvt & LVT_MASKED)
		return;
	guest->apic.waiting = false;
	deliver(guest, lvt);
}

void guest_apic_write(struct guest_vcpu *guest, u32 msr, u64 value)
{
	struct guest_apic *apic = &guest->apic;

	if (msr == MSR_X2APIC_LVT && x2apic(apic)) {
		apic->lvt = (u32)value & LVT_BITS;
	} else if (msr == MSR_APIC_BASE) {
		/* The register keeps its value from one mode to the other. */
		if (value & APIC_EXTD && !x2apic(apic))
			apic->lvt = read_lvt(guest);
		apic->base = value;
	}
}

bool guest_apic_read(struct guest_vcpu *guest, u32 msr, u64 *value)
{
	if (msr != MSR_X2APIC_LVT || !x2apic(&guest->apic))
		return false;
	*value = guest->apic.lvt;
	return true;
}
