// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The public interface of the flow decoder; see vmpt-flow.h. */
#include "decoder/vmpt-flow.h"

int vmpt_flow_open_abi(struct vmpt_flow **flow, const struct vmpt_stream *stream,
		       struct vmpt_code *code, const struct vmpt_flow_options *options, u64 abi)
{
	(void)flow, (void)stream, (void)code, (void)options;
	return abi == VMPT_FLOW_ABI ? -VMPT_E_UNSUPPORTED : -VMPT_E_VERSION;
}

void vmpt_flow_close(struct vmpt_flow *flow)
{
	(void)flow;
}

int vmpt_flow_next(struct vmpt_flow *flow, struct vmpt_flow_batch *batch)
{
	(void)flow, (void)batch;
	return 0;
}

void vmpt_flow_block(const struct vmpt_flow *flow, u32 id, struct vmpt_flow_block *block)
{
	(void)flow, (void)id, (void)block;
}

int vmpt_flow_code(struct vmpt_flow *flow, u32 id, u8 *bytes, size_t size)
{
	(void)flow, (void)id, (void)bytes, (void)size;
	return 0;
}

void vmpt_flow_total(struct vmpt_flow *flow, struct vmpt_flow_counts *counts, u64 *hash)
{
	(void)flow, (void)counts, (void)hash;
}

u32 vmpt_flow_spaces(const struct vmpt_flow *flow)
{
	(void)flow;
	return 0;
}

void vmpt_flow_space(struct vmpt_flow *flow, u32 i, struct vmpt_space *space,
		     struct vmpt_flow_counts *counts)
{
	(void)flow, (void)i, (void)space, (void)counts;
}

u32 vmpt_flow_blocks(const struct vmpt_flow *flow)
{
	(void)flow;
	return 0;
}

void vmpt_flow_executed(struct vmpt_flow *flow, u32 id, u64 *whole, u64 *instructions)
{
	(void)flow, (void)id, (void)whole, (void)instructions;
}
