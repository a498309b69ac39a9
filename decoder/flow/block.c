// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Blocks: straight code up to a branch or the page's end, decoded once. */
#include "decoder/flow/engine.h"

/* P of the ordered hash: 2^64 divided by the golden ratio. */
#define HASH_P 0x9e3779b97f4a7c15ULL

/* Room at first: see node.c. */
#define BLOCKS_FIRST 4096u

u64 vmpt_flow_pow(u64 n)
{
	u64 result = 1, p = HASH_P;

	for (; n; n >>= 1, p *= p)
		if (n & 1)
			result *= p;
	return result;
}

/* The most bytes of a block; the last instruction may begin at its page's last byte. */
#define BLOCK_BYTES (VMPT_PAGE + VMPT_FLOW_AHEAD)

/*
 * Most blocks: 64-bit code in a page of which all is known, which the table reads. It stops before
 * what needs more than that.
 */
static void decode_plain(struct engine *e, struct block *b)
{
	unsigned int first = b->ip % VMPT_PAGE, at = first, last = first, insns = 0;
	const u8 *page = vmpt_flow_page_bytes(e, b->space, b->ip - first);
	const u64 base = b->ip - first;
	struct vmpt_insn insn = { 0 };
	u64 hash = 0;

	if (!page || e->space[b->space].id.exec != 64)
		return;
	while (insn.class == VMPT_INSN_OTHER && at + VMPT_FLOW_AHEAD <= VMPT_PAGE &&
	       vmpt_insn_by_table(&insn, page + at, base + at)) {
		if (e->hash)
			hash = hash * HASH_P + vmpt_mix64(base + at);
		insns++;
		last = at;
		at += insn.size;
	}
	b->insns = (u16)insns;
	b->size = (u16)(at - first);
	b->hash = hash;
	b->end_ip = base + last;
	b->next = base + at;
	b->class = insn.class;
	b->target = insn.target;
	memcpy(e->bytes + b->code, page + first, at - first);
}

/* Its bytes go to engine.bytes, after those of all blocks. */
static int decode(struct engine *e, struct block *b)
{
	struct vmpt_insn insn;
	u64 ip;
	int ret;

	b->next = b->ip;
	decode_plain(e, b);
	/* Also after a MOV CR3: the flow may go on in another space. */
	if (b->class != VMPT_INSN_OTHER)
		return 0;
	for (ip = b->next;;) {
		ret = vmpt_flow_insn(e, b->space, ip, &insn, e->bytes + b->code + b->size);
		if (ret != VMPT_INSN_OK)
			return ret;
		b->insns++;
		b->size = (u16)(b->size + insn.size);
		if (e->hash)
			b->hash = b->hash * HASH_P + vmpt_mix64(ip);
		b->end_ip = ip;
		ip = vmpt_flow_wrap(e, b->space, ip + insn.size);
		b->next = ip;
		b->class = insn.class;
		b->target = insn.target;
		if (insn.class != VMPT_INSN_OTHER)
			return 0;
		if (ip / VMPT_PAGE != b->end_ip / VMPT_PAGE || ip % VMPT_PAGE == 0)
			return 0;
	}
}

static bool same_code(const struct engine *e, const struct block *a, const struct block *b)
{
	return a->size == b->size && !memcmp(e->bytes + a->code, e->bytes + b->code, a->size);
}

/*
 * Whether its bytes need not be kept: a block for each byte of a page, as hostile traces have them,
 * would be many.
 */
static bool in_page(struct engine *e, const struct block *b)
{
	unsigned int at = b->ip % VMPT_PAGE;

	return !e->versions && at + b->size <= VMPT_PAGE &&
	       vmpt_flow_page_bytes(e, b->space, b->ip - at);
}

static int block_add(struct engine *e, const struct block *b, u64 hash)
{
	u32 n = (u32)e->block_count;

	if (e->block_count >= VMPT_HASH_ENTRIES ||
	    vmpt_reserve(&e->block, &e->block_room, e->block_count ? n + 1 : BLOCKS_FIRST) ||
	    vmpt_hash_add(&e->block_index, hash, n))
		return -VMPT_E_NOMEM;
	e->block[e->block_count++] = *b;
	if (in_page(e, b))
		e->block[n].code = NONE;
	else
		e->byte_count += b->size;
	return 0;
}

u32 vmpt_flow_block_at(struct engine *e, u32 space, u64 ip, u8 *end)
{
	u64 hash = vmpt_flow_ip_hash(e, space, ip);
	u32 n = vmpt_hash_find(&e->block_index, hash, i,
			       e->block[i].ip == ip && e->block[i].space == space &&
				       !e->block[i].old);
	struct block b = { .ip = ip, .space = space, .code = (u32)e->byte_count };
	int ret;

	*end = 0;
	if (n != VMPT_HASH_NONE)
		return n;
	if (e->byte_count > NONE - BLOCK_BYTES ||
	    vmpt_reserve(&e->bytes, &e->byte_room, e->byte_count + BLOCK_BYTES)) {
		e->error = -VMPT_E_NOMEM;
		return NONE;
	}
	ret = decode(e, &b);
	if (!b.insns) {
		*end = (u8)ret;
		return NONE;
	}
	/* Code that is as it was before. */
	if (e->versions)
		n = vmpt_hash_find(&e->block_index, hash, i,
				   e->block[i].ip == ip && e->block[i].space == space &&
					   same_code(e, &e->block[i], &b));
	ret = 0;
	if (n == VMPT_HASH_NONE) {
		n = (u32)e->block_count;
		ret = block_add(e, &b, hash);
	}
	if (ret || (e->versions && vmpt_flow_link_block(e, n))) {
		e->error = -VMPT_E_NOMEM;
		*end = END_NO_CODE;
		return NONE;
	}
	e->block[n].old = false;
	return n;
}

static const u8 *bytes_of(struct engine *e, const struct block *b)
{
	unsigned int at = b->ip % VMPT_PAGE;

	if (b->code != NONE)
		return e->bytes + b->code;
	return vmpt_flow_page_bytes(e, b->space, b->ip - at) + at;
}

int vmpt_flow_block_find(struct engine *e, const struct block *b, u64 ip)
{
	const u8 *bytes = bytes_of(e, b);
	struct vmpt_insn insn;
	u64 at = b->ip;
	u32 n, done = 0;

	for (n = 0; n < b->insns; n++) {
		if (at == ip)
			return (int)n;
		if (vmpt_insn_read(&insn, bytes + done, b->size - done, at,
				   e->space[b->space].id.exec) != VMPT_INSN_OK)
			return -1;
		done += insn.size;
		at = vmpt_flow_wrap(e, b->space, at + insn.size);
	}
	return -1;
}

struct hashes vmpt_flow_block_hash(struct engine *e, const struct block *b, u32 insns)
{
	const u8 *bytes = bytes_of(e, b);
	struct hashes h = { 0, 1 };
	struct vmpt_insn insn;
	u64 at = b->ip;
	u32 done = 0;

	for (; insns; insns--) {
		h.hash = h.hash * HASH_P + vmpt_mix64(at);
		h.pow *= HASH_P;
		if (vmpt_insn_read(&insn, bytes + done, b->size - done, at,
				   e->space[b->space].id.exec) != VMPT_INSN_OK)
			break;
		done += insn.size;
		at = vmpt_flow_wrap(e, b->space, at + insn.size);
	}
	return h;
}
