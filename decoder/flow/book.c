// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From an engine's ids to those of the flow. What is new in an engine is sent with the job that
 * found it, and taken in the order of the jobs: so all have the numbers that one engine would give.
 * A flow of one engine uses its tables and its ids as they are.
 */
#include "decoder/flow/flow.h"

/* ---- sending ---- */

/* @array may be NULL where @count is 0. */
static void *copy(const void *array, size_t from, size_t count, size_t size, bool *failed)
{
	void *to = NULL;

	if (!count)
		return NULL;
	to = malloc(count * size);
	if (to)
		memcpy(to, (const u8 *)array + from * size, count * size);
	else
		*failed = true;
	return to;
}

#define COPY(array, from, to, failed) \
	copy((array), (from), (to) - (from), sizeof(*(array)), (failed))

/* The bytes that are kept of a block. */
static size_t kept(const struct block *b)
{
	return b->code == NONE ? 0 : b->size;
}

static int add_code(const struct engine *e, struct news *n)
{
	size_t i, at = 0;

	for (i = 0; i < n->blocks; i++)
		at += kept(&n->block[i]);
	n->code = malloc(at + 1);
	if (!n->code)
		return -VMPT_E_NOMEM;
	for (i = 0, at = 0; i < n->blocks; at += kept(&n->block[i++]))
		if (kept(&n->block[i]))
			memcpy(n->code + at, e->bytes + n->block[i].code, n->block[i].size);
	return 0;
}

static struct span *node_spans(const struct engine *e, size_t from, size_t n)
{
	struct span *s = malloc(n * sizeof(*s));
	size_t i;

	for (i = 0; s && i < n; i++)
		s[i] = (struct span){ e->nodes[from + i].list, e->nodes[from + i].count };
	return s;
}

static struct span *path_spans(const struct engine *e, size_t from, size_t n)
{
	struct span *s = malloc(n * sizeof(*s));
	size_t i;

	for (i = 0; s && i < n; i++)
		s[i] = (struct span){ e->paths[from + i].list, e->paths[from + i].count };
	return s;
}

/* Units, only where blocks are returned. */
static void add_units(struct maker *m, struct news *n, bool *failed)
{
	const struct engine *e = &m->e;

	n->nodes = e->node_count - m->sent.nodes;
	n->paths = e->path_count - m->sent.paths;
	n->lists = e->list_count - m->sent.lists;
	n->node = n->nodes ? node_spans(e, m->sent.nodes, n->nodes) : NULL;
	n->path = n->paths ? path_spans(e, m->sent.paths, n->paths) : NULL;
	n->list = COPY(e->lists, m->sent.lists, e->list_count, failed);
	if ((n->nodes && !n->node) || (n->paths && !n->path))
		*failed = true;
	m->sent.nodes = e->node_count;
	m->sent.paths = e->path_count;
	m->sent.lists = e->list_count;
}

int vmpt_flow_news_add(struct maker *m, struct news *n, size_t results)
{
	struct engine *e = &m->e;
	bool failed = false;
	size_t i;

	n->results = results;
	n->reset = m->reset;
	m->reset = false;
	n->spaces = e->space_count - m->sent.spaces;
	n->space = n->spaces ? malloc(n->spaces * sizeof(*n->space)) : NULL;
	if (n->spaces && !n->space)
		return -VMPT_E_NOMEM;
	for (i = 0; i < n->spaces; i++)
		n->space[i] = e->space[m->sent.spaces + i].id;
	n->blocks = e->block_count - m->sent.blocks;
	n->block = COPY(e->block, m->sent.blocks, e->block_count, &failed);
	if (failed || add_code(e, n))
		return -VMPT_E_NOMEM;
	m->sent.spaces = e->space_count;
	m->sent.blocks = e->block_count;
	if (e->blocks)
		add_units(m, n, &failed);
	return failed ? -VMPT_E_NOMEM : 0;
}

void vmpt_flow_news_free(struct news *n)
{
	free(n->space);
	free(n->block);
	free(n->code);
	free(n->node);
	free(n->path);
	free(n->list);
	*n = (struct news){ 0 };
}

/* ---- names ---- */

static bool same_space(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return vmpt_owner_same(&a->owner, &b->owner) && a->cr3 == b->cr3 &&
	       a->no_cr3 == b->no_cr3 && a->exec == b->exec;
}

static u32 space_name(struct names *names, const struct vmpt_space *s)
{
	u64 vmcs = s->owner.kind == VMPT_OWNER_VM ? s->owner.vmcs : s->owner.kind;
	u64 hash =
		vmpt_mix64(vmpt_mix64(names->seed ^ vmcs) ^ s->cr3 ^ (u64)s->no_cr3 << 1 ^ s->exec);
	u32 n = vmpt_hash_find(&names->space_index, hash, i, same_space(&names->space[i], s));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)names->space_count;
	if (vmpt_grow(&names->space, names->space_count) ||
	    vmpt_hash_add(&names->space_index, hash, n))
		return NONE;
	names->space[names->space_count++] = *s;
	return n;
}

/* Where code changes there may be other code at the same place. */
static bool same_block(const struct names *names, u32 i, const struct block *b, const u8 *code)
{
	const struct block *a = &names->block[i];

	return a->ip == b->ip && a->space == b->space && a->next == b->next &&
	       a->insns == b->insns && a->class == b->class && a->size == b->size &&
	       kept(a) == kept(b) && (!kept(a) || !memcmp(names->code + a->code, code, kept(a)));
}

static u32 block_name(struct names *names, const struct block *b, const u8 *code)
{
	u64 hash = vmpt_mix64(names->seed ^ b->ip ^ (u64)b->space << 48 ^ b->space >> 16);
	u32 n = vmpt_hash_find(&names->block_index, hash, i, same_block(names, i, b, code));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)names->block_count;
	if (vmpt_grow(&names->block, names->block_count) || names->code_count > NONE - b->size ||
	    vmpt_reserve(&names->code, &names->code_room, names->code_count + b->size + 1) ||
	    vmpt_hash_add(&names->block_index, hash, n))
		return NONE;
	names->block[n] = *b;
	names->block[n].whole = names->block[n].partial = 0;
	names->block_count++;
	if (!kept(b))
		return n;
	names->block[n].code = (u32)names->code_count;
	memcpy(names->code + names->code_count, code, b->size);
	names->code_count += b->size;
	return n;
}

void vmpt_flow_names_free(struct names *names)
{
	free(names->block);
	free(names->code);
	free(names->space);
	vmpt_hash_free(&names->block_index);
	vmpt_hash_free(&names->space_index);
}

/* ---- taking ---- */

static int take_spaces(struct book *b, struct names *names, const struct news *n)
{
	size_t i;

	if (vmpt_reserve(&b->space, &b->space_room, b->has.spaces + n->spaces))
		return -VMPT_E_NOMEM;
	for (i = 0; i < n->spaces; i++) {
		b->space[b->has.spaces] = space_name(names, &n->space[i]);
		if (b->space[b->has.spaces++] == NONE)
			return -VMPT_E_NOMEM;
	}
	return 0;
}

static int take_blocks(struct book *b, struct names *names, const struct news *n)
{
	const u8 *code = n->code;
	size_t i;

	if (vmpt_reserve(&b->block, &b->block_room, b->has.blocks + n->blocks))
		return -VMPT_E_NOMEM;
	for (i = 0; i < n->blocks; i++) {
		struct block block = n->block[i];

		block.space = b->space[block.space];
		b->block[b->has.blocks] = block_name(names, &block, code);
		if (b->block[b->has.blocks++] == NONE)
			return -VMPT_E_NOMEM;
		code += kept(&n->block[i]);
	}
	return 0;
}

static int take_units(struct book *b, const struct news *n)
{
	size_t i;
	u32 k;

	if (vmpt_reserve(&b->node, &b->node_room, b->has.nodes + n->nodes) ||
	    vmpt_reserve(&b->path, &b->path_room, b->has.paths + n->paths) ||
	    vmpt_reserve(&b->list, &b->list_room, b->has.lists + n->lists + LISTS_AHEAD))
		return -VMPT_E_NOMEM;
	if (n->nodes)
		memcpy(b->node + b->has.nodes, n->node, n->nodes * sizeof(*n->node));
	if (n->paths)
		memcpy(b->path + b->has.paths, n->path, n->paths * sizeof(*n->path));
	if (n->lists)
		memcpy(b->list + b->has.lists, n->list, n->lists * sizeof(*n->list));
	b->has.paths += n->paths;
	b->has.lists += n->lists;
	for (i = 0; i < n->nodes; i++, b->has.nodes++) {
		const struct span *s = &b->node[b->has.nodes];

		for (k = 0; k < s->count; k++)
			b->list[s->at + k] = b->block[b->list[s->at + k]];
	}
	return 0;
}

int vmpt_flow_news_take(struct book *b, struct names *names, const struct news *n)
{
	int ret;

	if (n->reset)
		vmpt_flow_book_reset(b);
	ret = take_spaces(b, names, n);
	ret = ret ? ret : take_blocks(b, names, n);
	return ret ? ret : take_units(b, n);
}

void vmpt_flow_book_reset(struct book *b)
{
	b->has.nodes = b->has.paths = b->has.lists = 0;
	b->flat_of = b->flats_count = 0;
}

void vmpt_flow_book_free(struct book *b)
{
	free(b->space);
	free(b->block);
	free(b->node);
	free(b->path);
	free(b->list);
	free(b->flat);
	free(b->flats);
}

/* ---- expanding units ---- */

static inline struct span node_of(const struct book *b, u32 id)
{
	const struct node *n;

	if (!b->direct)
		return b->node[id];
	n = &b->direct->nodes[id];
	return (struct span){ n->list, n->count };
}

static struct span path_of(const struct book *b, u32 id)
{
	const struct path *p;

	if (!b->direct)
		return b->path[id];
	p = &b->direct->paths[id];
	return (struct span){ p->list, p->count };
}

u32 vmpt_flow_node_count(const struct book *b, u32 node)
{
	return node_of(b, node).count;
}

/* Copied at once; arrays of blocks have room for as many more. */
#define CHUNK LISTS_AHEAD

static inline int room_for(struct blocks *out, size_t count)
{
	size_t want = out->count + count + CHUNK;

	return want > out->room ? vmpt_reserve(&out->id, &out->room, want) : 0;
}

static inline void put_flat(struct blocks *out, const u32 *id, size_t count)
{
	u32 *to = out->id + out->count;
	size_t i;

	memcpy(to, id, CHUNK * sizeof(*id));
	for (i = CHUNK; __builtin_expect(i < count, 0); i += CHUNK)
		memcpy(to + i, id + i, CHUNK * sizeof(*id));
	out->count += count;
}

static inline int put_node(const struct book *b, u32 node, struct blocks *out)
{
	const struct span s = node_of(b, node);

	if (room_for(out, s.count))
		return -VMPT_E_NOMEM;
	put_flat(out, (b->direct ? b->direct->lists : b->list) + s.at, s.count);
	return 0;
}

/* Keep the last @count blocks as those of a path; a path is expanded without that, too. */
static void keep_flat(struct book *b, u32 path, const struct blocks *out, size_t count)
{
	if (b->flats_count + count > b->flats_max)
		b->flats_count = b->flat_of = 0;
	if (count > b->flats_max || vmpt_reserve(&b->flat, &b->flat_room, path + (size_t)1) ||
	    vmpt_reserve(&b->flats, &b->flats_room, b->flats_count + count + CHUNK))
		return;
	if (b->flat_of <= path) {
		memset(b->flat + b->flat_of, 0, (path + 1 - b->flat_of) * sizeof(*b->flat));
		b->flat_of = path + (size_t)1;
	}
	if (count)
		memcpy(b->flats + b->flats_count, out->id + out->count - count,
		       count * sizeof(*b->flats));
	b->flat[path] = (struct span){ (u32)b->flats_count, (u32)count };
	b->flats_count += count;
}

/* A path that is not flat yet. Paths in paths are one deep. */
static int put_path(struct book *b, u32 path, struct blocks *out)
{
	const u32 *list = b->direct ? b->direct->lists : b->list;
	struct span s = path_of(b, path);
	size_t before = out->count;
	int ret = 0;
	u32 i, unit;

	for (i = 0; i < s.count && !ret; i++) {
		unit = list[s.at + i];
		ret = unit & UNIT_PATH ? put_path(b, unit & ~UNIT_PATH, out)
				       : put_node(b, unit, out);
	}
	if (!ret)
		keep_flat(b, path, out, out->count - before);
	return ret;
}

int vmpt_flow_expand(struct book *b, const u32 *units, u32 count, size_t enough, struct blocks *out)
{
	u32 i, path;
	int ret = 0;

	for (i = 0; i < count && out->count < enough && !ret; i++) {
		path = units[i] & ~UNIT_PATH;
		if (path == units[i])
			ret = put_node(b, path, out);
		else if (path >= b->flat_of || !b->flat[path].count)
			ret = put_path(b, path, out);
		else if (!(ret = room_for(out, b->flat[path].count)))
			put_flat(out, b->flats + b->flat[path].at, b->flat[path].count);
	}
	return ret ? ret : (int)i;
}
