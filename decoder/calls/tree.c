// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The tree of calls: a node for each function as called by its parent. */
#include "decoder/calls/engine.h"

#define NODES_DEFAULT (4u << 20)

static u32 add(struct vmpt_calls *e, u64 hash, const struct vmpt_call_node *n)
{
	u32 id = (u32)e->nodes;

	if (vmpt_grow(&e->node, e->nodes) || vmpt_hash_add(&e->node_of, hash, id)) {
		e->error = -VMPT_E_NOMEM;
		return 0;
	}
	e->node[e->nodes++] = *n;
	return id;
}

int vmpt_calls_tree_open(struct vmpt_calls *e)
{
	e->near = calloc(CALLS_NEAR, sizeof(*e->near));
	if (!e->near)
		return -VMPT_E_NOMEM;
	if (!e->options.nodes_max)
		e->options.nodes_max = NODES_DEFAULT;
	add(e, 0, &(struct vmpt_call_node){ .space = NONE, .kind = VMPT_CALL_ROOT });
	return e->error;
}

u32 vmpt_calls_child(struct vmpt_calls *e, u32 parent, u8 kind, u64 function, u32 space)
{
	u32 id = child_near(e, parent, kind, function);
	u64 hash;

	if (id)
		return id;
	hash = vmpt_mix64(function ^ vmpt_mix64((u64)parent << 8 | kind));
	id = vmpt_hash_find(&e->node_of, hash, k, is_child(&e->node[k], parent, kind, function));
	if (id == VMPT_HASH_NONE) {
		if (e->nodes >= e->options.nodes_max) {
			e->counts.folded++;
			return parent;
		}
		id = add(e, hash,
			 &(struct vmpt_call_node){ .parent = parent,
						   .kind = kind,
						   .function = function,
						   .space = space });
	}
	e->near[near_slot(parent, function)] = id;
	return id;
}

u32 vmpt_calls_root(struct vmpt_calls *e, u32 vm, u64 cr3, u32 space)
{
	const u64 hash = vmpt_mix64(cr3 ^ vmpt_mix64(vm ^ 1ULL << 63));
	u32 i, id;

	id = vmpt_hash_find(&e->root_of, hash, k, e->root[k].vm == vm && e->root[k].cr3 == cr3);
	if (id != VMPT_HASH_NONE)
		return e->root[id].node;
	i = (u32)e->roots;
	if (vmpt_grow(&e->root, e->roots) || vmpt_hash_add(&e->root_of, hash, i)) {
		e->error = -VMPT_E_NOMEM;
		return 0;
	}
	/* Its own number makes the hash of the node unlike that of other roots. */
	id = add(e, hash,
		 &(struct vmpt_call_node){
			 .space = space, .kind = VMPT_CALL_ROOT, .function = cr3 });
	e->root[e->roots++] = (struct root){ .cr3 = cr3, .vm = vm, .node = id };
	return id;
}
