// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the guest's RAM is. Devices must not be accessed, not even read, and QEMU's interface does
 * not distinguish them from RAM. So the extent of RAM is found out once: the address in QEMU of a
 * block's code shows where RAM begins there, /proc/self/maps how long it is, and probing, before
 * devices have addresses, where the guest has it. docs/qemu-plugin/guest-view.md has the details.
 */
#include <stdio.h>
#include <string.h>

#include "qemu-plugin/flow/ram.h"
#include "qemu-plugin/flow/vcpu.h"
#include "util/search.h"

#define MIB  (1ULL << 20)
#define GIB  (1ULL << 30)
#define VGA  0xa0000ULL /* from here to 1 MiB: VGA and ROMs */
#define PAGE 4096ULL

#define LOW_MAX (7 * GIB / 2) /* no machine has more RAM below 4 GiB */
#define ROMS	(2 * GIB)     /* a block above may be in a ROM */
#define TRIES	1000	      /* to find RAM */

/* How much memory QEMU has mapped writable from @start on without a gap. */
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

/*
 * Whether the guest has, at @gpa, the byte at offset @gpa of the RAM in QEMU: if one changes, so
 * does the other.
 */
static bool shows(struct vcpu *vcpu, u8 *host, u64 gpa)
{
	u8 *at = host + gpa, was = __atomic_load_n(at, __ATOMIC_RELAXED), seen;
	bool same = true;

	for (unsigned int other = 0x55; same && other <= 0xff; other += 0xaa) {
		__atomic_store_n(at, was ^ (u8)other, __ATOMIC_RELAXED);
		same = qemu_read_physical(vcpu->regs, gpa, &seen, 1) && seen == (was ^ (u8)other);
	}
	__atomic_store_n(at, was, __ATOMIC_RELAXED);
	return same;
}

/*
 * Whether linear addresses up to @end are physical ones, without paging or with the firmware's: the
 * guest has just started, and no device has an address there yet.
 */
static bool is_flat(u64 end)
{
	for (u64 linear = 0; linear < end; linear += 2 * MIB) {
		u64 gpa;

		if (!qemu_translate(linear, &gpa) || gpa != linear)
			return false;
	}
	return true;
}

/* The end of the RAM that begins at 0: @from is in it, and there is no gap up to @end. */
static u64 end_of_low(struct vcpu *vcpu, u8 *host, u64 from, u64 end)
{
	u64 last = end / PAGE - 1;

	/* Nearly always all of it is RAM, and nothing else is read. */
	if (shows(vcpu, host, last * PAGE))
		return end;
	return vmpt_search(page, from / PAGE + 1, last, shows(vcpu, host, page * PAGE)) * PAGE;
}

/* Whether the rest of RAM is at 4 GiB, where nothing else can be: reading it is safe. */
static bool high_is_there(struct vcpu *vcpu, const struct ram *ram, u64 size)
{
	u64 value, offset = size - sizeof(value);

	return qemu_read_physical(vcpu->regs, 4 * GIB + offset - ram->low, &value, sizeof(value)) &&
	       !memcmp(&value, ram->host + offset, sizeof(value));
}

/*
 * Finds low and high for RAM of @size bytes. All of QEMU's machines have it at 0, and what does not
 * fit below their devices at 4 GiB. How much fits depends on the machine and its options.
 */
static bool split(struct ram *ram, struct vcpu *vcpu, u64 size)
{
	u64 end = size < LOW_MAX ? size : LOW_MAX;

	if (ram->proven >= end || !is_flat(end) ||
	    !shows(vcpu, ram->host, ram->proven & ~(PAGE - 1)))
		return false;
	ram->low = end_of_low(vcpu, ram->host, ram->proven, end);
	ram->high = 4 * GIB;
	if (ram->low < size && high_is_there(vcpu, ram, size))
		ram->high += size - ram->low;
	return true;
}

void ram_translates(struct plugin *plugin, u64 linear, const void *host)
{
	struct ram *ram = &plugin->ram;
	u64 gpa;

	/* Only a block in low RAM: one below 1 MiB may be in a ROM. */
	if (__atomic_load_n(&ram->host, __ATOMIC_RELAXED) || !host ||
	    !qemu_translate(linear, &gpa) || gpa < MIB || gpa >= ROMS)
		return;
	pthread_mutex_lock(&plugin->lock);
	if (!ram->host) {
		ram->proven = gpa;
		__atomic_store_n(&ram->host, (u8 *)(uintptr_t)host - gpa, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&plugin->lock);
}

/* This fails for a guest that was not started by its firmware. */
static void give_up(struct plugin *plugin)
{
	struct ram *ram = &plugin->ram;

	if (++ram->tries < TRIES)
		return;
	if (plugin->guest)
		fputs("vmpt: guest-view: cannot find out where the guest has its RAM: it gets no "
		      "trace\n",
		      stderr);
	ram->low = 0;
	ram->high = 4 * GIB;
	__atomic_store_n(&ram->known, true, __ATOMIC_RELEASE);
}

void ram_find(struct vcpu *vcpu)
{
	struct ram *ram = &vcpu->plugin->ram;
	u64 size;

	if (__atomic_load_n(&ram->known, __ATOMIC_ACQUIRE) ||
	    !__atomic_load_n(&ram->host, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&vcpu->plugin->lock);
	size = ram->known ? 0 : mapped((uintptr_t)ram->host) & ~(PAGE - 1);
	if (size && split(ram, vcpu, size))
		__atomic_store_n(&ram->known, true, __ATOMIC_RELEASE);
	else if (!ram->known)
		give_up(vcpu->plugin);
	pthread_mutex_unlock(&vcpu->plugin->lock);
}

bool ram_has(const struct plugin *plugin, u64 physical, size_t len)
{
	const struct ram *ram = &plugin->ram;
	u64 last = physical + len - 1;

	if (!__atomic_load_n(&ram->known, __ATOMIC_ACQUIRE) || !len || last < physical)
		return false;
	return last < VGA || (physical >= MIB && last < ram->low) ||
	       (physical >= 4 * GIB && last < ram->high);
}

const u8 *ram_page(const struct plugin *plugin, u64 physical)
{
	const struct ram *ram = &plugin->ram;

	if (!ram_has(plugin, physical, PAGE))
		return NULL;
	return ram->host + (physical < 4 * GIB ? physical : physical - 4 * GIB + ram->low);
}
