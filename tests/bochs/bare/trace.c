// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Output to memory, and files of it. */
#include "trace.h"

void trace_prepare(void)
{
	u64 *table = (u64 *)OUT_TABLE;

	/* A trace that a scenario forgot ends here. */
	(void)try_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	for (u32 msr = VMPT_MSR_RTIT_ADDR0_A; msr < VMPT_MSR_RTIT_ADDR0_A + 8; msr++)
		(void)try_wrmsr(msr, 0);
	(void)try_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0);
	msr_write(VMPT_MSR_RTIT_STATUS, 0);
	memset((void *)OUT, 0, OUT_SIZE);
	table[0] = OUT | 9ULL << VMPT_TOPA_SIZE_SHIFT; /* 2 MiB */
	table[1] = OUT_TABLE | VMPT_TOPA_END;
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, OUT_TABLE);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
}

size_t trace_size(void)
{
	u64 status = msr_read(VMPT_MSR_RTIT_STATUS);

	if (msr_read(VMPT_MSR_RTIT_CTL) & VMPT_CTL_TRACE_EN)
		wrong("TraceEn is still 1");
	if (status & VMPT_STATUS_ERROR)
		wrong("IA32_RTIT_STATUS.Error");
	return (size_t)(msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS) >> 32);
}

void trace_save(const char *name)
{
	char file[64];
	size_t len = 0;

	while (len < sizeof(file) - 4 && name[len]) {
		file[len] = name[len];
		len++;
	}
	memcpy(file + len, ".pt", 4);
	host_file(file, (const void *)OUT, trace_size());
}

void trace_around(struct vm *vm, u64 ctl)
{
	vm->regs.in_msr = vm->regs.out_msr = VMPT_MSR_RTIT_CTL;
	vm->regs.in_value = ctl;
	vm->regs.out_value = 0;
	vm_run(vm);
}

const char *trace_name(const char *name, const char *letters, unsigned int flags)
{
	static char made[48];
	size_t n = 0;

	while (n < 32 && name[n]) {
		made[n] = name[n];
		n++;
	}
	made[n++] = '-';
	for (unsigned int i = 0; letters[i]; i++) {
		if (flags & 1u << i)
			made[n++] = letters[i];
	}
	if (made[n - 1] == '-')
		made[n++] = '0';
	made[n] = 0;
	return made;
}
