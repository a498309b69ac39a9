// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A CPU made of a trace unit; see unit-cpu.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/unit-cpu.h"
#include "tests/support/support.h"
#include "util/array.h"

static int take(void *opaque, const u8 *bytes, size_t len)
{
	struct unit_cpu *c = opaque;

	if (vmpt_reserve(&c->bytes, &c->room, c->size + len))
		ck_abort_msg("no memory");
	memcpy(c->bytes + c->size, bytes, len);
	c->size += len;
	return 0;
}

void unit_cpu_init(struct unit_cpu *c, u64 cr3, u64 tsc)
{
	struct vmpt_unit_config config = { 0 };
	unsigned int cap;

	memset(c, 0, sizeof(*c));
	config.cpuid.present = 1;
	config.cpuid.maxphyaddr = 46;
	config.cpuid.linear_bits = 48;
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(&config.cpuid, cap, ~0u);
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_RANGES, 4);
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_FABRIC, 0);
	c->sink = (struct vmpt_sink){ .write = take, .opaque = c };
	config.sink = &c->sink;
	ck_assert_int_eq(vmpt_unit_init(&c->unit, &config), 0);
	c->unit.mode = (struct vmpt_mode){ .cr3 = cr3, .cs_l = true };
	c->unit.vmx = (struct vmpt_unit_vmx){ .on = true, .vmcs = VMPT_PT_VMCS_NONE };
	unit_cpu_skip(c, tsc);
}

void unit_cpu_free(struct unit_cpu *c)
{
	free(c->bytes);
}

u64 unit_cpu_now(const struct unit_cpu *c)
{
	return c->unit.now.tsc;
}

void unit_cpu_skip(struct unit_cpu *c, u64 tsc)
{
	vmpt_unit_time(&c->unit, &(struct vmpt_now){
					 .tsc = tsc,
					 .art = tsc / UNIT_CPU_P,
					 .fast = (u32)(tsc % UNIT_CPU_P),
					 .cycles = tsc,
					 .cbr = UNIT_CPU_NOMINAL,
				 });
}

void unit_cpu_pass(struct unit_cpu *c, u64 tsc, unsigned int mtc_freq)
{
	u64 period = (u64)UNIT_CPU_P << mtc_freq, now = unit_cpu_now(c);

	while (now < tsc) {
		now = (now / period + 1) * period;
		now = now < tsc ? now : tsc;
		unit_cpu_skip(c, now);
	}
}

bool unit_cpu_load(struct unit_cpu *c, u64 vmcs)
{
	if (c->vmcs == vmcs)
		return false;
	vmpt_unit_vmptrld(&c->unit, vmcs);
	c->vmcs = vmcs;
	return true;
}

const struct vmpt_stream *unit_cpu_stream(struct unit_cpu *c, unsigned int number)
{
	vmpt_unit_flush(&c->unit);
	c->stream = (struct vmpt_stream){
		.data = c->bytes, .size = c->size, .cpu = (int)number, .tid = -1, .isa = VMPT_ISA_PT
	};
	return &c->stream;
}
