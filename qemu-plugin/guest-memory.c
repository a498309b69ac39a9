// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guest-physical memory for the trace's output. A guest may name any address; a device must
 * not be touched, for reading one is an access too, and QEMU's interface does not tell devices
 * from RAM. So RAM's extent is found out once: where the code of a block in RAM lies in QEMU
 * tells where RAM begins there, and /proc/self/maps how long it is; the rest is how a PC is
 * built. docs/qemu-plugin/guest-view.md has it in full.
 */
#include <stdio.h>
#include <string.h>

#include "qemu-plugin/guest-view.h"
#include "qemu-plugin/guest.h"

#define MIB	   (1ULL << 20)
#define GIB	   (1ULL << 30)
#define VGA	   0xa0000ULL /* from here to 1 MiB: VGA and ROMs */
#define PAGE	   4096ULL
#define Q35_SPLIT  (11 * GIB / 4) /* q35: with so much RAM 2 GiB of it are below 4 GiB … */
#define Q35_LOW	   (2 * GIB)
#define I440_SPLIT (7 * GIB / 2) /* pc: … 3 GiB */
#define I440_LOW   (3 * GIB)

/* Length of what QEMU has mapped for writing from @start on without a gap. */
static u64 mapped(u64 start)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], rights[5];
	u64 end = start;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && from <= end &&
		    to > end && rights[1] == 'w')
			end = to;
	}
	if (maps)
		fclose(maps);
	return end - start;
}

/* Whether @gpa is the RAM that lies @offset bytes behind RAM's beginning. Never a device. */
static bool same(struct vcpu *vcpu, const u8 *host, u64 offset, u64 gpa)
{
	u64 value;

	return qemu_read_physical(vcpu->regs, gpa, &value, sizeof(value)) &&
	       !memcmp(&value, host + offset, sizeof(value));
}

/*
 * How RAM of @size bytes is split: below 4 GiB, and the rest from 4 GiB on. With more than
 * 2.75 GiB that depends on the machine: q35 has RAM where pc has nothing any more.
 */
static void split(struct guest_ram *ram, struct vcpu *vcpu, u64 size)
{
	u64 low = size >= I440_SPLIT ? I440_LOW : size;

	if (size >= Q35_SPLIT && same(vcpu, ram->host, Q35_LOW + size - low, 4 * GIB + size - low))
		low = Q35_LOW;
	ram->low = low;
	ram->high = 4 * GIB + size - low;
}

void guest_translates(struct plugin *plugin, u64 linear, const void *host)
{
	struct guest_ram *ram = &plugin->guest->ram;
	u64 gpa;

	/* A block in low RAM; one below 1 MiB may be a ROM's. */
	if (__atomic_load_n(&ram->host, __ATOMIC_RELAXED) || !host ||
	    !qemu_translate(linear, &gpa) || gpa < MIB || gpa >= Q35_LOW)
		return;
	__atomic_store_n(&ram->host, (u8 *)(uintptr_t)host - gpa, __ATOMIC_RELAXED);
}

/* Sets ram->low and high. false: nothing has executed there yet. */
static bool learn(struct vcpu *vcpu)
{
	struct guest_ram *ram = &vcpu->plugin->guest->ram;
	u64 size;

	if (__atomic_load_n(&ram->known, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_lock(&vcpu->plugin->lock);
	if (!ram->known && ram->host) {
		size = mapped((uintptr_t)ram->host) & ~(PAGE - 1);
		if (size)
			split(ram, vcpu, size);
		__atomic_store_n(&ram->known, size, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&vcpu->plugin->lock);
	return ram->known;
}

static bool is_ram(struct vcpu *vcpu, u64 gpa, size_t len)
{
	const struct guest_ram *ram = &vcpu->plugin->guest->ram;
	u64 last = gpa + len - 1;

	if (!learn(vcpu) || !len || last < gpa)
		return false;
	return last < VGA || (gpa >= MIB && last < ram->low) ||
	       (gpa >= 4 * GIB && last < ram->high);
}

int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct vcpu *vcpu = ((struct guest_vcpu *)opaque)->vcpu;

	if (!is_ram(vcpu, gpa, len) || !qemu_read_physical(vcpu->regs, gpa, buf, len))
		return VMPT_MEM_UNBACKED;
	return 0;
}

int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vcpu *vcpu = ((struct guest_vcpu *)opaque)->vcpu;

	if (!is_ram(vcpu, gpa, len) || !qemu_write_physical(vcpu->regs, gpa, buf, len))
		return VMPT_MEM_UNBACKED;
	return 0;
}

int guest_read_entry(void *opaque, u64 pa, u64 *entry)
{
	return guest_read(opaque, pa, entry, sizeof(*entry)) ? VMPT_OUTPUT_FAULT : 0;
}

int guest_write_output(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	return guest_write(opaque, pa, bytes, len) ? VMPT_OUTPUT_FAULT : 0;
}
