// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The RTIT unit of model/ under hostile MSR accesses and events. tests/model/rtit/hostile.h
 * describes the input and the checks.
 */
#include "tests/model/rtit/hostile.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct hostile h;

	hostile_walk(&h, data, size);
	if (h.wrong)
		__builtin_trap();
	return 0;
}
