// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Delivery of a PMI: by the LVT performance counter register of the local APIC (SDM 3 11.5.1), as
 * an MSI to the vCPU itself, which in QEMU is a write to memory.
 */
#include <stdio.h>

#include "qemu-plugin/guest/internal.h"

/*
 * QEMU's APIC is always at this address, whatever IA32_APIC_BASE says. The guest's value of that
 * MSR is not used, because a device may be there. In x2APIC mode the APIC does not answer here,
 * which is how the mode is found out: only QEMU knows whether a WRMSR to the MSR was #GP.
 */
#define APIC_PAGE     0xfee00000ULL
#define APIC_ID	      0x20
#define APIC_LVT_PERF 0x340
#define LVT_MASKED    0x10000U
#define LVT_BITS      0x107ffU /* vector, delivery mode, mask */
#define LVT_MSI	      0x7ffU   /* vector and delivery mode, an MSI's data */
#define MSI_ID_MAX    255
#define NO_ANSWER     0xffffffffU

/* Bits of an interrupt command (SDM 3 11.6.1) */
#define ICR_MODE       (7U << 8 | 1U << 14)
#define ICR_INIT       (5U << 8 | 1U << 14) /* with "assert" */
#define ICR_SHORTHAND  (3U << 18)
#define ICR_ALL_OTHERS (3U << 18)
#define MSR_APIC_BASE  0x1b
#define MSR_X2APIC_ICR 0x830
#define MSR_X2APIC_LVT 0x834

/*
 * A register of the page. false: no answer, the APIC is in x2APIC mode. Reading these registers has
 * no side effect, and each of them has bits that are always 0.
 */
static bool read_page(const struct guest_vcpu *guest, u32 offset, u32 *value)
{
	return qemu_read_physical(guest->vcpu->regs, APIC_PAGE + offset, value, sizeof(*value)) &&
	       *value != NO_ANSWER;
}

static u32 read_lvt(struct guest_vcpu *guest)
{
	u32 lvt;

	if (read_page(guest, APIC_LVT_PERF, &lvt))
		return lvt;
	if (__atomic_exchange_n(&guest->apic.init, false, __ATOMIC_ACQUIRE))
		guest->apic.lvt = LVT_MASKED;
	return guest->apic.lvt;
}

/* Delivery of a PMI masks the entry. */
static void mask_lvt(struct guest_vcpu *guest, u32 lvt)
{
	lvt = (lvt & LVT_BITS) | LVT_MASKED;
	guest->apic.lvt = lvt;
	qemu_write_physical(guest->vcpu->regs, APIC_PAGE + APIC_LVT_PERF, &lvt, sizeof(lvt));
}

static void deliver(struct guest_vcpu *guest, u32 lvt)
{
	u32 id, data = lvt & LVT_MSI;

	if (read_page(guest, APIC_ID, &id))
		id >>= 24;
	else
		id = guest->apic.id;
	mask_lvt(guest, lvt);
	if (id <= MSI_ID_MAX) {
		qemu_write_physical(guest->vcpu->regs, APIC_PAGE + ((u64)id << 12), &data,
				    sizeof(data));
		return;
	}
	if (!guest->apic.warned)
		fprintf(stderr,
			"vmpt: guest-view: vCPU %u has APIC ID %u: its PMIs are lost, because they "
			"only reach IDs up to 255\n",
			guest->vcpu->index, id);
	guest->apic.warned = true;
}

void guest_inject_pmi(void *opaque)
{
	struct guest_vcpu *guest = opaque;
	u32 lvt = read_lvt(guest);

	if (!(lvt & LVT_MASKED)) {
		deliver(guest, lvt);
		return;
	}
	/* Pending until the entry is unmasked, for which there is no callback: poll. */
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

/* An INIT, of any vCPU including the sender, masks all entries (SDM 3 11.4.7.3). */
static void send_init(const struct guest_vcpu *from, u64 command)
{
	const struct plugin *plugin = from->vcpu->plugin;
	bool others = (command & ICR_SHORTHAND) == ICR_ALL_OTHERS;

	for (unsigned int i = 0; i < VCPUS; i++) {
		struct guest_vcpu *to = plugin->vcpu[i] ? plugin->vcpu[i]->guest : NULL;

		if (to && (others ? to != from : to->apic.id == command >> 32))
			__atomic_store_n(&to->apic.init, true, __ATOMIC_RELEASE);
	}
}

void guest_apic_write(struct guest_vcpu *guest, u32 msr, u64 value)
{
	u32 lvt;

	if (msr != MSR_APIC_BASE && msr != MSR_X2APIC_ICR && msr != MSR_X2APIC_LVT)
		return;
	/* In xAPIC mode: the entry keeps its value when the mode changes. */
	if (read_page(guest, APIC_LVT_PERF, &lvt)) {
		guest->apic.lvt = lvt;
		return;
	}
	/* A pending INIT came before this write. */
	if (msr == MSR_X2APIC_LVT) {
		(void)read_lvt(guest);
		guest->apic.lvt = (u32)value & LVT_BITS;
	} else if (msr == MSR_X2APIC_ICR && (value & ICR_MODE) == ICR_INIT) {
		send_init(guest, value);
	}
}

bool guest_apic_read(struct guest_vcpu *guest, u32 msr, u64 *value)
{
	u32 lvt;

	if (msr != MSR_X2APIC_LVT || read_page(guest, APIC_LVT_PERF, &lvt))
		return false;
	*value = read_lvt(guest);
	return true;
}
