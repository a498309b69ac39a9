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
	u64 hash = space_hash(e, &id);
	u32 n = vmpt_hash_find(&e->space_index, hash, i, same(&e->space[i].id, &id));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)e->space_count;
	if (vmpt_grow(&e->space, e->space_count) || vmpt_hash_add(&e->space_index, hash, n)) {
		e->error = -VMPT_E_NOMEM;
		return NONE;
	}
	memset(&e->space[n], 0, sizeof(e->space[n]));
	e->space[n].id = id;
	e->space_count++;
	return n;
}

u32 vmpt_flow_page(struct engine *e, u32 space, u64 linear)
{
	const struct page *p = e->page ? &e->page[e->page_last] : NULL;
	u64 hash;
	u32 n;

	if (p && p->linear == linear && p->space == space)
		return e->page_last;
	hash = vmpt_mix64(e->seed ^ linear ^ (u64)space << 40);
	n = vmpt_hash_find(&e->page_index, hash, i,
			   e->page[i].linear == linear && e->page[i].space == space);
	if (n == VMPT_HASH_NONE) {
		n = (u32)e->page_count;
		if (vmpt_grow(&e->page, e->page_count) || vmpt_hash_add(&e->page_index, hash, n)) {
			e->error = -VMPT_E_NOMEM;
			return NONE;
		}
		e->page[e->page_count++] =
			(struct page){ .linear = linear, .space = space, .to = ~0ULL };
	}
	e->page_last = n;
	return n;
}

/* Ask for one more version of @p. */
static void ask(struct engine *e, struct page *p)
{
	struct vmpt_space id = e->space[p->space].id;
	struct vmpt_page answer = { .to = ~0ULL };
	int ret = 0;

	id.tsc = e->c.tsc;
	if (e->code)
		ret = vmpt_code_page(e->code, &id, p->linear, p->count, &answer);
	if (ret > 0 && p->count && !p->other) {
		p->other = calloc(VMPT_CODE_VERSIONS - 1, sizeof(*p->other));
		if (!p->other)
			ret = -VMPT_E_NOMEM;
	}
	if (ret < 0)
		e->error = ret;
	if (e->timed)
		vmpt_flow_page_answered(e, p, &answer);
	p->complete = ret <= 0;
	if (p->complete)
		return;
	if (p->count)
		p->other[p->count - 1] = answer;
	else
		p->first = answer;
	p->count++;
}

const struct vmpt_page *vmpt_flow_version(struct engine *e, u32 page, unsigned int nth)
{
	struct page *p = &e->page[page];

	while (p->count <= nth && !p->complete)
		ask(e, p);
	if (nth >= p->count)
		return NULL;
	return nth ? &p->other[nth - 1] : &p->first;
}

/* The known bytes from @ip to the end of its page. */
static size_t fetch_page(struct engine *e, u32 space, u64 ip, u8 *bytes, size_t room)
{
	unsigned int at = ip % VMPT_PAGE, nth, prefer;
	u32 page = vmpt_flow_page(e, space, ip - at);
	const struct vmpt_page *p;
	size_t n;

	if (room > VMPT_PAGE - at)
		room = VMPT_PAGE - at;
	prefer = page == NONE ? 0 : e->page[page].prefer;
	for (nth = 0; page != NONE && nth < VMPT_CODE_VERSIONS; nth++) {
		p = vmpt_flow_version(e, page, !nth ? prefer : nth - (nth <= prefer));
		if (!p)
			return 0;
		for (n = 0; n < room && vmpt_page_knows(p, at + (unsigned int)n); n++)
			bytes[n] = p->bytes[at + n];
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

/* The same; each version knows some of the bytes. */
static size_t fetch_parts(struct engine *e, u32 space, u64 ip, u8 *bytes, size_t room)
{
	size_t n = 0, more;

	do {
		more = fetch_page(e, space, ip + n, bytes + n, room - n);
		n += more;
	} while (more && n < room);
	return n;
}

const u8 *vmpt_flow_page_bytes(struct engine *e, u32 space, u64 linear)
{
	u32 page = vmpt_flow_page(e, space, linear);
	const struct vmpt_page *p =
		page == NONE ? NULL : vmpt_flow_version(e, page, e->page[page].prefer);

	return p && !p->valid ? p->bytes : NULL;
}

int vmpt_flow_insn(struct engine *e, u32 space, u64 ip, struct vmpt_insn *insn,
		   u8 bytes[VMPT_FLOW_AHEAD])
{
	unsigned int exec = e->space[space].id.exec, at = ip % VMPT_PAGE;
	u32 page = vmpt_flow_page(e, space, ip - at);
	const struct vmpt_page *p =
		page == NONE ? NULL : vmpt_flow_version(e, page, e->page[page].prefer);
	size_t n = VMPT_FLOW_AHEAD;
	int ret;

	if (p && !p->valid && at + n <= VMPT_PAGE)
		memcpy(bytes, p->bytes + at, n);
	else
		n = vmpt_flow_fetch(e, space, ip, bytes, n);
	if (!n)
		return END_NO_CODE;
	ret = vmpt_insn_read(insn, bytes, n, ip, exec);
	if (ret == VMPT_INSN_MORE && n < VMPT_FLOW_AHEAD) {
		n = fetch_parts(e, space, ip, bytes, VMPT_FLOW_AHEAD);
		ret = vmpt_insn_read(insn, bytes, n, ip, exec);
	}
	if (ret == VMPT_INSN_OK)
		return ret;
	return ret == VMPT_INSN_MORE ? END_NO_CODE : END_BAD_CODE;
}
