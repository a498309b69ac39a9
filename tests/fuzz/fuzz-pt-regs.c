// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-regs.c: accesses to the PT MSRs in any sequence with any capabilities, step by step
 * against the oracle of the tests. tests/arch/regs-walk.c describes the input.
 */
#include "tests/arch/regs-walk.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct walk w = { 0 };

	regs_walk(&w, data, size);
	if (w.wrong)
		__builtin_trap();
	return 0;
}
