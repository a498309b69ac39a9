// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's packets and slices by the tests' reference, on any bytes. The input's first three bytes
 * choose mode, a gap and runs, the fourth is unused; the rest is the stream.
 */
#include "tests/decoder/rtit-walk.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_stream stream = { .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT };
	struct vmpt_options options = { 0 };
	struct vmpt_gap gap = { .flags = VMPT_GAP_LOST };
	struct vmpt_run runs[2] = { 0 };
	u64 where;

	if (size < 4)
		return 0;
	stream.data = data + 4;
	stream.size = size - 4;
	options.headless = data[0] & 1;
	options.cycle_acc = (data[0] >> 1) % 3;
	if (data[1]) {
		gap.offset = data[1];
		stream.gaps = &gap;
		stream.gap_count = gap.offset < stream.size;
	}
	if (data[2]) {
		runs[0] = (struct vmpt_run){ .at = data[2] & 15, .by_tsc = data[2] & 16 };
		runs[0].owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = 1 };
		runs[1] = (struct vmpt_run){ .at = data[2], .by_tsc = data[2] & 32 };
		options.runs = runs;
		options.run_count = 2;
	}
	if (rtit_walk(&stream, &options, &where))
		__builtin_trap();
	return 0;
}
