// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Address spaces: which one it is, and its code as the images have it, by page. */
#include "decoder/flow/engine.h"

static u64 space_hash(const struct engine *e, const struct vmpt_space *s)
{
	u64 x = e->seed ^ s->owner.kind;

	if (s->owner.kind == VMPT_OWNER_VM)
		x = vmpt_mix64(x) ^ s->owner.vmcs;
	return vmpt_mix64(vmpt_mix64(x) ^ s->cr3 ^ (u64)s->no_cr3 << 1 ^ s->exec);
}

static bool same(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return vmpt_owner_same(&a->owner, &b->owner) && a->cr3 == b->cr3 &&
	       a->no_cr3 == b->no_cr3 && a->exec == b->exec;
}

u32 vmpt_flow_space_now(struct engine *e)
{
	struct vmpt_space id = {
		.owner = e->owner,
		.cr3 = e->c.no_cr3 ? 0 : e->c.cr3,
		.no_cr3 = e->c.no_cr3,
		.exec = e->c.exec,
	};
	u64 hash = space_hash(e, &id) ^ vmpt_mix64(e->c.epoch);
	u32 n = vmpt_hash_find(&e->space_index, hash, i,
			       e->space[i].epoch == e->c.epoch && same(&e->space[i].id, &id));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)e->space_count;
	if (vmpt_grow(&e->space, e->space_count) || vmpt_hash_add(&e->space_index, hash, n)) {
		e->error = -VMPT_E_NOMEM;
		return NONE;
	}
	memset(&e->space[n], 0, sizeof(e->space[n]));
	e->space[n].id = id;
	e->space[n].epoch = e->c.epoch;
	e->space_count++;
	return n;
}

/* The @nth version of a page; NULL: there is none. */
static const struct page *page_at(struct engine *e, u32 space, u64 linear, unsigned int nth)
{
	u64 hash;
	struct vmpt_space id;
	struct epoch *epoch;
	struct page *p = e->page ? &e->page[e->page_last] : NULL;
	u32 n;
	int ret;

	if (p && p->linear == linear && p->space == space && p->nth == nth)
		return p->here ? p : NULL;
	hash = vmpt_mix64(e->seed ^ linear ^ (u64)space << 40 ^ nth);
	n = vmpt_hash_find(&e->page_index, hash, i,
			   e->page[i].linear == linear && e->page[i].space == space &&
				   e->page[i].nth == nth);
	if (n != VMPT_HASH_NONE) {
		e->page_last = n;
		return e->page[n].here ? &e->page[n] : NULL;
	}
	if (!e->code)
		return NULL;
	n = (u32)e->page_count;
	if (vmpt_grow(&e->page, e->page_count) || vmpt_hash_add(&e->page_index, hash, n)) {
		e->error = -VMPT_E_NOMEM;
		return NULL;
	}
	p = &e->page[e->page_count++];
	*p = (struct page){ .linear = linear, .space = space, .nth = (u8)nth };
	id = e->space[space].id;
	id.tsc = e->c.tsc;
	ret = vmpt_code_page(e->code, &id, linear, nth, &p->page);
	if (ret < 0)
		e->error = ret;
	p->here = ret > 0;
	epoch = &e->epochs[e->space[space].epoch];
	if (p->here && !nth && p->page.to < epoch->to)
		epoch->to = p->page.to;
	return p->here ? p : NULL;
}

/* The known bytes from @ip to the end of its page. */
static size_t fetch_page(struct engine *e, u32 space, u64 ip, u8 *bytes, size_t room)
{
	unsigned int at = ip % VMPT_PAGE, nth;
	const struct page *p;
	size_t n;

	if (room > VMPT_PAGE - at)
		room = VMPT_PAGE - at;
	for (nth = 0; nth < VMPT_CODE_VERSIONS; nth++) {
		p = page_at(e, space, ip - at, nth);
		if (!p)
			return 0;
		for (n = 0; n < room && vmpt_page_knows(&p->page, at + (unsigned int)n); n++)
			bytes[n] = p->page.bytes[at + n];
		if (n)
			return n;
	}
	return 0;
}

size_t vmpt_flow_fetch(struct engine *e, u32 space, u64 ip, u8 *bytes, size_t room)
{
	size_t n = fetch_page(e, space, ip, bytes, room);

	if (n && n < room && (ip + n) % VMPT_PAGE == 0)
		n += fetch_page(e, space, ip + n, bytes + n, room - n);
	return n;
}

int vmpt_flow_insn(struct engine *e, u32 space, u64 ip, struct vmpt_insn *insn)
{
	unsigned int exec = e->space[space].id.exec;
	/* Short of a page's end no byte is copied. */
	u8 copy[VMPT_INSN_SIZE_MAX + 1];
	unsigned int at = ip % VMPT_PAGE;
	const struct page *p = page_at(e, space, ip - at, 0);
	const u8 *bytes = copy;
	size_t n = sizeof(copy);
	int ret;

	if (p && !p->page.valid && at + n <= VMPT_PAGE)
		bytes = p->page.bytes + at;
	else
		n = vmpt_flow_fetch(e, space, ip, copy, sizeof(copy));
	if (!n)
		return END_NO_CODE;
	ret = vmpt_insn_read(insn, bytes, n, ip, exec);
	if (ret == VMPT_INSN_OK)
		return ret;
	return ret == VMPT_INSN_MORE ? END_NO_CODE : END_BAD_CODE;
}
