// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's TSC: the plugin's clock with the offset and the multiplier of the options, and with
 * each vCPU's IA32_TSC_ADJUST. RDTSC agrees with TSC packets.
 */
#include "qemu-plugin/guest/internal.h"

#define CR4_TSD 0x4ULL

void guest_clocks(const struct guest_vcpu *guest, struct vmpt_now *now)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	const struct options *options = &plugin->options;

	clock_read(&plugin->clock, now);
	now->tsc = (u64)((unsigned __int128)now->tsc * options->tsc_multiplier >> 48) +
		   options->tsc_offset + guest->tsc_adjust;
}

static u64 guest_tsc(const struct guest_vcpu *guest)
{
	struct vmpt_now now;

	guest_clocks(guest, &now);
	return now.tsc;
}

/*
 * The TSC that an instruction reads. The trace's clock moves to it: what executes afterwards has no
 * earlier time in packets, as on a processor, where both are one clock (SDM 3 33.4.2.11, TSC
 * packet).
 */
u64 guest_read_tsc(struct guest_vcpu *guest)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	struct vmpt_now now;

	guest_clocks(guest, &now);
	if (plugin->rtit)
		guest_rtit_tick(guest);
	else if (guest->unit.trigger_en)
		vmpt_unit_time(&guest->unit, &now);
	return now.tsc;
}

/* A write to the TSC changes IA32_TSC_ADJUST by the same amount (SDM 3 18.17.3). */
void guest_tsc_set(struct guest_vcpu *guest, u64 value)
{
	guest->tsc_adjust += value - guest_tsc(guest);
}

void guest_rdtsc(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	struct guest_result result;

	/* QEMU raises the #GP. */
	if (vcpu->plugin->options.rdtsc_qemu || (vcpu->mode.cpl && vcpu->cpu.cr4 & CR4_TSD))
		return;
	result = guest_edx_eax(guest_read_tsc(guest));
	/* RDTSCP: 0F 01 F9 */
	if (site->bytes[site->size - 2] == 0x01) {
		result.reg[result.count] = QREG_RCX;
		result.value[result.count++] = guest->aux.now;
	}
	guest_skip(guest, site, &result);
}
