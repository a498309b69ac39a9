// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Blocks: straight code up to a branch or the page's end, decoded once. */
#include "decoder/flow/engine.h"

/* P of the ordered hash: 2^64 divided by the golden ratio. */
#define HASH_P 0x9e3779b97f4a7c15ULL

u64 vmpt_flow_pow(u64 n)
{
	u64 result = 1, p = HASH_P;

	for (; n; n >>= 1, p *= p)
		if (n & 1)
			result *= p;
	return result;
}

/* IPs of 16-bit and 32-bit code are of 32 bits. */
static u64 wrap(const struct engine *e, u32 space, u64 ip)
{
	return e->space[space].id.exec == 64 ? ip : ip & 0xffffffff;
}

static int decode(struct engine *e, struct block *b)
{
	struct vmpt_insn insn;
	u64 ip = b->ip;
	int ret;

	for (;;) {
		ret = vmpt_flow_insn(e, b->space, ip, &insn);
		if (ret != VMPT_INSN_OK)
			return ret;
		b->insns++;
		if (e->hash)
			b->hash = b->hash * HASH_P + vmpt_mix64(ip);
		b->end_ip = ip;
		ip = wrap(e, b->space, ip + insn.size);
		b->next = ip;
		b->class = insn.class;
		b->target = insn.target;
		/* Also after a MOV CR3: the flow may go on in another space. */
		if (insn.class != VMPT_INSN_OTHER)
			return 0;
		if (ip / VMPT_PAGE != b->end_ip / VMPT_PAGE || ip % VMPT_PAGE == 0)
			return 0;
	}
}

u32 vmpt_flow_block_at(struct engine *e, u32 space, u64 ip, u8 *end)
{
	u64 hash = vmpt_flow_ip_hash(e, space, ip);
	u32 n = vmpt_hash_find(&e->block_index, hash, i,
			       e->block[i].ip == ip && e->block[i].space == space);
	struct block b = { .ip = ip, .space = space };
	int ret;

	*end = 0;
	if (n != VMPT_HASH_NONE)
		return n;
	ret = decode(e, &b);
	if (!b.insns) {
		*end = (u8)ret;
		return NONE;
	}
	n = (u32)e->block_count;
	if (e->block_count >= VMPT_HASH_ENTRIES || vmpt_grow(&e->block, e->block_count) ||
	    vmpt_hash_add(&e->block_index, hash, n)) {
		e->error = -VMPT_E_NOMEM;
		*end = END_NO_CODE;
		return NONE;
	}
	e->block[e->block_count++] = b;
	return n;
}

int vmpt_flow_block_find(struct engine *e, const struct block *b, u64 ip)
{
	struct vmpt_insn insn;
	u64 at = b->ip;
	u32 n;

	for (n = 0; n < b->insns; n++) {
		if (at == ip)
			return (int)n;
		if (vmpt_flow_insn(e, b->space, at, &insn) != VMPT_INSN_OK)
			return -1;
		at = wrap(e, b->space, at + insn.size);
	}
	return -1;
}

struct hashes vmpt_flow_block_hash(struct engine *e, const struct block *b, u32 insns)
{
	struct hashes h = { 0, 1 };
	struct vmpt_insn insn;
	u64 at = b->ip;

	for (; insns; insns--) {
		h.hash = h.hash * HASH_P + vmpt_mix64(at);
		h.pow *= HASH_P;
		if (vmpt_flow_insn(e, b->space, at, &insn) != VMPT_INSN_OK)
			break;
		at = wrap(e, b->space, at + insn.size);
	}
	return h;
}
